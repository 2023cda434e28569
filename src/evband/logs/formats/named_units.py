"""Any table with a time and a speed whose names end in their units: `time_ms,speed_mps,battery_power_w`, `Timestamp;Speed [mph];Power [kW]`.

It is asked last. A unit stands in brackets or after the last underscore; a column without a unit is taken only where its name leaves no
doubt, as in every other format.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import from_unit
from evband.errors import LogError
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims, clock, columns, text
from evband.logs.formats.units import is_unit, unit_for
from evband.logs.telemetry import MILLISECONDS
from evband.trips.readings import Readings, ReadOptions

NAME = "table with units"
TIMES = ("time", "timestamp", "date time", "datetime", "date", "utc", "elapsed time", "elapsed", "epoch", "t")


def split(header: str) -> tuple[str, str]:
    """Name and unit, from brackets or after the last underscore.

    >>> split("Speed [mph]"), split("battery_power_w"), split("motor_speed")
    (('Speed', 'mph'), ('battery_power', 'w'), ('motor_speed', ''))
    """
    name, unit = claims.split_unit(header)
    if unit:
        return name, unit
    name, _, unit = header.strip().rpartition("_")
    return (name, unit) if name and is_unit(unit) else (header.strip(), "")


def detect(head: bytes) -> bool:
    """A time, and a speed with its unit."""
    header = [split(cell) for cell in text.header(head)[0] if cell]
    aliases = alias_table.table({})
    speeds = [c for c in claims.find([(n, n, u) for n, u in header if u], aliases) if c.channel == "speed_kmh"]
    return any(claim.unit for claim in speeds) and _time_column(header) is not None


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a table, cut where it is silent."""
    table = text.table(path, data)
    header = [split(cell) for cell in table.header]
    when = _time_column(header)
    if when is None:
        raise LogError(f"{path}: no column is named time or timestamp; name it in a --map file.")
    time, notes = _time(path, table, when, header[when][1])
    aliases = alias_table.table(options.aliases)
    found = claims.find([(str(i), *own) for i, own in enumerate(header) if i != when and own[0]], aliases)
    readings = {claim.column: claims.series(time, columns.numbers(table.frame, int(claim.column))) for claim in found}
    series, chosen = claims.settle(path, found, readings, aliases, app_power=False, columns=table.header)
    return columns.drives(path, NAME, series, (*chosen, *notes, *table.notes))


def _time_column(header: list[tuple[str, str]]) -> int | None:
    """The best name of a time whose unit, if it has one, is a time's."""
    ranks = {
        TIMES.index(plain): i
        for i, (name, unit) in reversed(list(enumerate(header)))
        if (plain := alias_table.plain(name)) in TIMES and (not unit or unit_for("time_s", unit))
    }
    return ranks[min(ranks)] if ranks else None


def _time(path: Path, table: text.Table, column: int, unit: str) -> tuple[NDArray[np.float64], list[str]]:
    cells = table.frame[str(column)].cast(pl.String)
    known = unit_for("time_s", unit) if unit else None
    value = columns.numbers(table.frame, column)
    if known is None and not np.isfinite(value).any():
        return clock.unroll(path, clock.since_first_day(cells), table.first_line)
    if known is None:
        known = "ms" if float(np.nanmedian(np.abs(value))) > MILLISECONDS else "s"
    return clock.unroll(path, from_unit("time_s", value, known), table.first_line, daily=False)
