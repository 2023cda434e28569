"""TeslaLogger's table `pos` as CSV: `id,Datum,lat,lng,speed,power,odometer,ideal_battery_range_km,outside_temp,altitude,battery_level,...`.

Speed is in km/h, power in whole PS (the car's kW times 1.36), positive when it leaves the battery; one row every few seconds while
driving. Drives are cut where the table is silent.
"""

from __future__ import annotations

from pathlib import Path

from evband.errors import LogError
from evband.logs.formats import columns, text
from evband.logs.formats.columns import Column
from evband.trips.readings import Readings, ReadOptions

NAME = "TeslaLogger"
_KNOWN: columns.Known = columns.TESLA | {
    "power": Column("power_kw", "ps"), "altitude": "elevation_m", "lat": "latitude_deg", "lng": "longitude_deg",
}  # fmt: skip


def detect(head: bytes) -> bool:
    """Its German name for the date beside its short ones for the place."""
    return columns.has(head, "datum", "lat", "lng", "speed", "power")


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a table, cut where it is silent."""
    table = text.table(path, data)
    frame = columns.dated(table.frame, columns.names(table.header)["datum"])
    if not frame.height:
        raise LogError(
            f"{path}: no Datum in it can be read; export the table pos with dates such as 2024-01-05 11:26:58."
        )
    found = columns.series(frame, table.header, _KNOWN, frame["when"].to_numpy())
    return columns.drives(path, NAME, found, ("power is in PS in this format", *table.notes))
