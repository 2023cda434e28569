"""Any table with a time and a speed whose names end in their units: `time_ms,speed_mps,battery_power_w`, `Timestamp;Speed [mph];Power [kW]`.

It is asked last. A unit stands in brackets, after the last underscore or blank, in a row of its own under the names, or in every cell; a
column without a unit is taken only where its name leaves no doubt, as in every other format. Columns that number trips or cars keep them apart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import COORDINATES, VALUES, from_unit
from evband.errors import LogError
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import cell_units, claims, clock, columns, gbt_32960, text
from evband.logs.formats.naming import trip_id
from evband.logs.formats.units import is_unit, unit_for, units_row
from evband.trips.readings import Readings, ReadOptions

NAME = "table with units"
TIMES = (
    "time", "timestamp", "timestamps", "time stamp", "date time", "datetime", "utc", "elapsed time", "elapsed", "epoch", "t", "local time", "time utc",
    "zeit", "zeitstempel", "datum uhrzeit", "uhrzeit", "temps", "horodatage", "hora", "czas", "cas", "tijd", "date", "datum",
)  # fmt: skip
_DAYS = ("date", "datum")
_KEYS = (
    "vehicle id",
    "vehicle",
    "vehid",
    "car id",
    "car",
    "vin",
    "trip id",
    "trip",
    "tripid",
    "drive id",
    "session id",
    "session",
)
_PACK = {
    "voltage": "battery voltage",
    "current": "battery current",
    "spannung": "batteriespannung",
    "strom": "batteriestrom",
}
_ELECTRICAL = {"battery_voltage_v", "battery_current_a", "power_kw"}

Names = list[tuple[str, str]]  # name and unit of each column


def split(header: str) -> tuple[str, str]:
    """Name and unit, from brackets or after the last underscore or blank.

    >>> split("Speed [mph]"), split("battery_power_w"), split("Leistung in kW"), split("Motor RPM")
    (('Speed', 'mph'), ('battery_power', 'w'), ('Leistung', 'kW'), ('Motor RPM', ''))
    """
    name, unit = claims.split_unit(header)
    if unit:
        return name, unit
    for sign, least in (("_", 1), (" ", 2)):
        name, _, unit = header.strip().rpartition(sign)
        if name and len(unit) >= least and is_unit(unit) and unit_for("motor_rpm", unit) is None:
            return name.removesuffix(" in"), unit
    return header.strip(), ""


def _names(header: list[str], below: list[str]) -> Names:
    units = units_row(below) or [cell_units.unit_of(cell) for cell in below]
    units += [""] * (len(header) - len(units))
    standard = gbt_32960.names(header)
    named = [standard.get(name) or split(name) for name in header]
    return [(name, unit or under) for (name, unit), under in zip(named, units, strict=False)]


def detect(head: bytes, aliases: Mapping[str, Sequence[str]] | None = None) -> bool:
    """A time, and a speed with its unit, which the user's own `aliases` may name."""
    below = text.below_header(head)
    names = _names(text.header(head)[0], below)
    found = claims.find(_claimable(names), alias_table.table(aliases or {}))
    return any(c.channel == "speed_kmh" and c.unit for c in found) and _time_column(names, below) is not None


def bare_speed(head: bytes) -> str | None:
    """The speed of a table that lacks nothing but its unit."""
    below = text.below_header(head)
    names = _names(text.header(head)[0], below)
    found = claims.bare_speed(_claimable(names), alias_table.table({}))
    return found.column if found and _time_column(names, below) is not None else None


def _claimable(names: Names) -> list[tuple[str, str, str]]:
    return [(name, name, unit) for name, unit in names if name]


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a table, cut where it is silent, those of each trip and car apart."""
    table = text.table(path, data)
    below = [str(cell or "") for cell in table.frame.row(0)]
    frame = table.frame if units_row(below) is None else table.frame[1:]
    first = [str(cell or "") for cell in frame.select(pl.all().drop_nulls().first()).row(0)] if frame.height else []
    names = _names(table.header, below if units_row(below) else first)
    when = _time_column(names, below)
    if when is None or not frame.height:
        raise LogError(f"{path}: no column is named time or timestamp; name it in a --map file.")
    frame = frame.with_columns(cell_units.bare(frame[str(i)], names[i][1]) for i in range(len(names)) if i != when)
    aliases = alias_table.table(options.aliases)
    found = _found(names, when, aliases)
    ours = _ours(names, {claim.channel for claim in found})
    trips = []
    parts = _parts(path, frame, names)
    bare, guess = _bare(pl.concat([part for _, part in parts]), names, when, found)
    guess += [gbt_32960.NOTE] if gbt_32960.names(table.header) else []
    ends = np.cumsum([part.height for _, part in parts])
    for (name, part), end in zip(parts, ends, strict=True):
        known = None if bare is None else bare[end - part.height : end]
        time, notes = _time(path, text.Table(part, table.header, table.first_line), names, when, known)
        readings = {claim.column: claims.series(time, columns.numbers(part, int(claim.column))) for claim in found}
        series, chosen = claims.settle(path, found, readings, aliases, app_power=False, columns=table.header)
        more = {channel: claims.series(time, columns.numbers(part, i)) for channel, i in ours.items()}
        series |= {channel: own for channel, own in more.items() if own[0].size}
        trips += columns.drives(path, NAME, series, (*chosen, *guess, *notes, *table.notes), name)
    return trips


def _found(names: Names, when: int, aliases: dict[str, alias_table.Alias]) -> list[claims.Claim]:
    """The claims; where none is of the battery, a bare `Voltage [V]` and `Current [A]` are its."""
    named = [(str(i), *own) for i, own in enumerate(names) if i != when and own[0]]
    found = claims.find(named, aliases)
    if not any(claim.channel in _ELECTRICAL for claim in found):
        found = claims.find([(i, _PACK.get(alias_table.plain(name), name), unit) for i, name, unit in named], aliases)
    return found


def _ours(names: Names, claimed: set[str]) -> dict[str, int]:
    """Columns in our own names for which nobody else has one: wind, grade, the cabin."""
    whole = {f"{name}_{unit}" if unit else name: i for i, (name, unit) in enumerate(names)}
    return {name: i for name, i in whole.items() if name in (*VALUES, *COORDINATES) and name not in claimed}


def _parts(path: Path, frame: pl.DataFrame, names: Names) -> list[tuple[str, pl.DataFrame]]:
    """The rows of each trip of each car, and what they are called; all of them where no column numbers either."""
    keys = [
        str(i)
        for i, (name, unit) in enumerate(names)
        if not unit and alias_table.plain(name) in _KEYS and 1 < frame[str(i)].n_unique() <= frame.height // 10
    ]
    if not keys:
        return [(trip_id(path), frame)]
    parts = frame.partition_by(keys, maintain_order=True, as_dict=True)
    return [("_".join(map(str, key)), part) for key, part in parts.items() if part.height > 1]


def _time_column(names: Names, below: list[str]) -> int | None:
    """The best name of a time whose unit, if it has one, is a time's; else a first column of clocks without a name, a frame's index."""
    ranks = {
        TIMES.index(plain): i
        for i, (name, unit) in reversed(list(enumerate(names)))
        if (plain := alias_table.plain(name)) in TIMES and (not unit or unit_for("time_s", unit))
    }
    if ranks:
        return ranks[min(ranks)]
    return 0 if below and not names[0][0] and re.search(r"\d:\d\d", below[0]) else None


def _bare(
    frame: pl.DataFrame, names: Names, column: int, found: Sequence[claims.Claim]
) -> tuple[NDArray[np.float64] | None, list[str]]:
    """Times that are numbers, in seconds: their unit is the same in all drives of a table. None where they are dates."""
    value = columns.numbers(frame, column)
    unit = unit_for("time_s", names[column][1]) if names[column][1] else None
    if unit is not None:
        return from_unit("time_s", value, unit), []
    return columns.bare_seconds(frame, column, found) if np.isfinite(value).any() else (None, [])


def _time(
    path: Path, table: text.Table, names: Names, column: int, bare: NDArray[np.float64] | None
) -> tuple[NDArray[np.float64], list[str]]:
    if bare is not None:
        return clock.unroll(path, bare, table.first_line, daily=False)
    cells = table.frame[str(column)].cast(pl.String)
    days = [i for i, (name, _) in enumerate(names) if i != column and alias_table.plain(name) in _DAYS]
    if days:
        cells = table.frame[str(days[0])].cast(pl.String).str.replace(r"\s+\d{1,2}:\d{2}.*$", "") + " " + cells
    if cells.str.contains(r":\d{2}(\.\d+)?\s*[+-]\d{2}:?\d{2}$").any():  # a zone, which may change
        seconds = columns.seconds(cells)
        return clock.unroll(path, seconds, table.first_line, daily=bool(np.nanmax(seconds, initial=0.0) < clock.DATED))
    return clock.unroll(path, clock.since_first_day(cells), table.first_line)
