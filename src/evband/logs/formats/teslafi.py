"""TeslaFi's monthly export: `data_id,Date,...,speed,...,power,...,shift_state,...`, about one row per minute.

Speed is in mph and the odometer in miles, whatever the account shows; `None` and empty cells are missing. Rows in which the car is in no gear
are left out, so that charging and parking are not drives.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evband.errors import LogError
from evband.logs.formats import columns, text
from evband.logs.formats.columns import Column
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions

NAME = "TeslaFi"
_KNOWN = {
    "speed": Column("speed_kmh", "mph"),
    "power": Column("power_kw", "kW"),
    "elevation": Column("elevation_m", "m"),
    "outside_temp": Column("ambient_temp_c", "C"),
    "odometer": Column("distance_km", "mi"),
    "battery_level": Column("soc_pct", "%"),
    "latitude": Column("latitude_deg", "deg"),
    "longitude": Column("longitude_deg", "deg"),
}
_DRIVING = ("D", "R", "N")


def detect(head: bytes) -> bool:
    """Its number of a row beside date and gear."""
    return {"data_id", "date", "shift_state"} <= set(columns.names(text.header(head)[0]))


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a month, cut where the car is in no gear for long."""
    table = text.table(path, data)
    where = columns.names(table.header)
    frame = table.frame.with_columns(pl.Series("when", columns.seconds(table.frame[str(where["date"])])))
    gear = pl.col(str(where["shift_state"])).str.strip_chars()
    frame = frame.filter(gear.is_in(_DRIVING) & pl.col("when").is_finite()).sort("when", maintain_order=True)
    if not frame.height:
        raise LogError(f"{path}: no row in it is in a gear (shift_state D, R or N); export a month with drives.")
    found = columns.series(frame, table.header, _KNOWN, frame["when"].to_numpy())
    return columns.drives(
        path, trip_id(path), NAME, found, ("speed and odometer are in miles in this format", *table.notes)
    )
