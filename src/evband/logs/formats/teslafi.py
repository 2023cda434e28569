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
from evband.trips.readings import Readings, ReadOptions

NAME = "TeslaFi"
_KNOWN: columns.Known = columns.TESLA | {"speed": Column("speed_kmh", "mph"), "odometer": Column("distance_km", "mi")}
_DRIVING = ("D", "R", "N")


def detect(head: bytes) -> bool:
    """Its number of a row beside date and gear."""
    return columns.has(head, "data_id", "date", "shift_state")


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a month, cut where the car is in no gear for long."""
    table = text.table(path, data)
    where = columns.names(table.header)
    gear = pl.col(str(where["shift_state"])).str.strip_chars()
    frame = columns.dated(table.frame, where["date"]).filter(gear.is_in(_DRIVING))
    if not frame.height:
        raise LogError(f"{path}: no row in it is in a gear (shift_state D, R or N); export a month with drives.")
    found = columns.series(frame, table.header, _KNOWN, frame["when"].to_numpy())
    return columns.drives(path, NAME, found, ("speed and odometer are in miles in this format", *table.notes))
