"""Any other table, described by a map: their column -> our channel, unit and sign.

    [columns]
    "t"       = { channel = "time_s", unit = "ms" }          # or unit = "clock": HH:MM:SS, with or without a date
    "Veh Spd" = { channel = "speed_kmh", unit = "mph" }
    "I_batt"  = { channel = "battery_current_a", sign = -1 }  # positive is discharge here
    "run"     = "trip_id"

`unit` defaults to the channel's own and `sign` to 1. `delimiter` and `skip_rows` (lines before the header) may stand above
`[columns]` where they cannot be seen from the file.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import CHANNELS, known_units
from evband.errors import LogError, SettingsError
from evband.logs import border
from evband.logs.formats import claims, clock, text
from evband.logs.formats.columns import Column, numbers
from evband.logs.formats.naming import trip_id
from evband.logs.formats.units import unit_for
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "mapped table"
_SETTINGS = ("columns", "delimiter", "skip_rows")
_CLOCKS = ("clock", "datetime", "date", "hh:mm:ss")


Line = tuple[str, Column]  # of the map: what a column is called, and what it is


def detect(head: bytes) -> bool:
    """A map is the user's word for it: anything but unknown binary."""
    return head.startswith((border.PARQUET, *border.MDF)) or not text.is_binary(head)


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a table; with a trip_id column one for each of its values."""
    columns = parse_map(options.map or {})
    if data.startswith(border.MDF):
        from evband.logs.formats import mdf

        return mdf.read(path, data, options)
    frame, first_line = _frame(path, data, options.map or {})
    lines = {column.channel: (name, column) for name, column in columns}
    for name, _ in columns:
        _require(path, name, frame.columns)
    for needed in ("time_s", "speed_kmh"):
        if needed not in lines:
            raise SettingsError(
                f"{path}: the map names no column for {needed}; add one, for example of {claims.some(frame.columns)}."
            )
    if "trip_id" not in lines:
        return [_trip(path, frame, lines, trip_id(path), first_line)]
    ids, _ = lines["trip_id"]
    if nameless := frame[ids].null_count():
        raise LogError(f"{path}: {nameless} rows have no {ids!r} (trip_id); give every row one, or unmap it.")
    groups = frame.partition_by(ids, maintain_order=True, as_dict=True)
    return [_trip(path, part, lines, str(key[0]), first_line) for key, part in groups.items()]


def parse_map(table: Mapping[str, Any]) -> list[Line]:
    """The map's columns, checked. `[speed_kmh] column = "Veh Spd"` is taken too."""
    _check_settings(table)
    entries = table.get("columns", {name: entry for name, entry in table.items() if name not in _SETTINGS})
    if not isinstance(entries, Mapping) or not entries:
        raise SettingsError(
            'The map has no [columns]; write one line per column, such as "Veh Spd" = {channel = "speed_kmh"}.'
        )
    columns = []
    for name, entry in entries.items():
        entry = {"channel": entry} if isinstance(entry, str) else entry
        if not isinstance(entry, Mapping):
            raise SettingsError(
                f"The map's entry for {name!r} must be a channel or a table with channel, unit and sign."
            )
        if "column" in entry and name in CHANNELS:
            name, entry = entry["column"], {**entry, "channel": name}
        columns.append(_column(str(name), entry))
    channels = [column.channel for _, column in columns]
    if doubled := {channel for channel in channels if channels.count(channel) > 1}:
        raise SettingsError(f"The map names several columns for {', '.join(sorted(doubled))}; keep one.")
    return columns


def _check_settings(table: Mapping[str, Any]) -> None:
    """An error for a setting that would do nothing, or nothing sensible."""
    unknown = [name for name in table if "columns" in table and name not in _SETTINGS]
    if unknown:
        raise SettingsError(f"The map has a setting {unknown[0]!r}; known are {', '.join(_SETTINGS)}.")
    delimiter, skip = table.get("delimiter"), table.get("skip_rows", 0)
    if delimiter is not None and not (isinstance(delimiter, str) and len(delimiter.encode()) == 1):
        raise SettingsError(f"The map's delimiter is {delimiter!r}; give one plain sign, such as ';'.")
    if not isinstance(skip, int) or skip < 0:
        raise SettingsError(f"The map's skip_rows is {skip!r}; give the number of lines before the header.")


def _column(name: str, entry: Mapping[str, Any]) -> Line:
    unknown = [key for key in entry if key not in ("channel", "unit", "sign", "column")]
    if unknown:
        raise SettingsError(f"The map's entry for {name!r} has {unknown[0]!r}; known are channel, unit and sign.")
    channel = str(entry.get("channel", ""))
    if channel not in CHANNELS:
        near = difflib.get_close_matches(channel, CHANNELS, n=1)
        hint = f"; did you mean {near[0]}?" if near else "."
        raise SettingsError(
            f"The map gives {name!r} the channel {channel!r}, which is none of {', '.join(CHANNELS)}{hint}"
        )
    unit = str(entry.get("unit", CHANNELS[channel].unit))
    if channel == "time_s" and unit.casefold() in _CLOCKS:
        return name, Column(channel, "clock")
    ours = unit if channel == "trip_id" else unit_for(channel, unit)
    if ours is None:
        raise SettingsError(
            f"The map gives {name!r} the unit {unit!r}, which is unknown for {channel}; use one of {', '.join(known_units(channel))}."
        )
    sign = entry.get("sign", 1)
    if sign not in (1, -1):
        raise SettingsError(f"The map gives {name!r} the sign {sign!r}; it must be 1 or -1.")
    return name, Column(channel, ours, float(sign))


def _frame(path: Path, data: bytes, settings: Mapping[str, Any]) -> tuple[pl.DataFrame, int]:
    if data.startswith(border.PARQUET):
        return border.parquet(path, data), 1
    table = text.table(path, data, row=settings.get("skip_rows"), delimiter=settings.get("delimiter"))
    names = {str(i): name for i, name in enumerate(table.header) if name and name not in table.header[:i]}
    return table.frame.select(list(names)).rename(names), table.first_line


def _require(path: Path, name: str, found: list[str]) -> None:
    if name not in found:
        near = difflib.get_close_matches(name, found, n=1, cutoff=0.4)
        hint = f"; the nearest is {near[0]!r}" if near else ""
        raise LogError(
            f"{path}: the map names a column {name!r}, but there are {claims.some(found)}{hint}; correct the map."
        )


def _trip(path: Path, frame: pl.DataFrame, lines: Mapping[str, Line], name: str, first_line: int) -> Readings:
    at, when = lines["time_s"]
    if when.unit == "clock":
        seconds = clock.since_first_day(frame[at].cast(pl.String))
    else:
        seconds = when.values(_floats(frame, at))
    time, notes = clock.unroll(path, seconds, first_line, daily=when.unit == "clock")
    series: dict[str, Series] = {}
    for channel, (theirs, column) in lines.items():
        if CHANNELS[channel].kind not in ("time", "id"):
            series[channel] = claims.series(time, column.values(_floats(frame, theirs)))
    if series["speed_kmh"][1].size == 0:
        raise LogError(f"{path}: all values of {lines['speed_kmh'][0]!r} (speed_kmh) are missing; map another column.")
    return Readings(name, {channel: s for channel, s in series.items() if s[1].size}, NAME, tuple(notes))


def _floats(frame: pl.DataFrame, column: str) -> NDArray[np.float64]:
    if frame.schema[column] == pl.String:
        return numbers(frame, column)
    return frame[column].cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
