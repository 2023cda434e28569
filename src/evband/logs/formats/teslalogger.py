"""TeslaLogger's table `pos` as CSV: `id,Datum,lat,lng,speed,power,odometer,ideal_battery_range_km,outside_temp,altitude,battery_level,...`.

Speed is in km/h, power in whole PS (the car's kW times 1.36), positive when it leaves the battery; one row every few seconds while
driving. Drives are cut where the table is silent.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evband.errors import LogError
from evband.logs.formats import columns, text
from evband.logs.formats.columns import Column
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions

NAME = "TeslaLogger"
_KNOWN = {
    "speed": Column("speed_kmh", "km/h"),
    "power": Column("power_kw", "ps"),
    "altitude": Column("elevation_m", "m"),
    "outside_temp": Column("ambient_temp_c", "C"),
    "odometer": Column("distance_km", "km"),
    "battery_level": Column("soc_pct", "%"),
    "lat": Column("latitude_deg", "deg"),
    "lng": Column("longitude_deg", "deg"),
}


def detect(head: bytes) -> bool:
    """Its German name for the date beside its short ones for the place."""
    return {"datum", "lat", "lng", "speed", "power"} <= set(columns.names(text.header(head)[0]))


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a table, cut where it is silent."""
    table = text.table(path, data)
    when = columns.seconds(table.frame[str(columns.names(table.header)["datum"])])
    frame = table.frame.with_columns(pl.Series("when", when)).filter(pl.col("when").is_finite())
    if not frame.height:
        raise LogError(
            f"{path}: no Datum in it can be read; export the table pos with dates such as 2024-01-05 11:26:58."
        )
    frame = frame.sort("when", maintain_order=True)
    found = columns.series(frame, table.header, _KNOWN, frame["when"].to_numpy())
    return columns.drives(path, trip_id(path), NAME, found, ("power is in PS in this format", *table.notes))
