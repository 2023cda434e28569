"""Torque Pro's log: `GPS Time, Device Time, Longitude, Latitude,GPS Speed (Meters/second), ...,Speed (OBD)(km/h)`.

One row per sample with every PID's latest value, `-` where there is none yet. Device Time is the clock that counts; months
are in the phone's language. The app writes a new header into the file when it starts again or its PIDs change.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.errors import LogError
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims, clock, columns, text
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "Torque Pro"
_TIMES = ("device time", "gps time")


def detect(head: bytes) -> bool:
    """A header with Device Time or GPS Time among its first cells."""
    return any(cell.casefold() in _TIMES for cell in text.header(head)[0][:3])


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive per file; the sections between repeated headers are joined."""
    tables = _tables(path, data)
    time, notes = _times(path, tables)
    aliases = alias_table.table(options.aliases)
    parts: dict[str, list[Series]] = {}
    found: dict[tuple[str, str], claims.Claim] = {}
    start = 0
    for table in tables:
        part = time[start : start + table.frame.height]
        start += table.frame.height
        named = [(name, *claims.split_unit(name)) for name in table.header if name and name.casefold() not in _TIMES]
        for name, *_ in named:
            parts.setdefault(name, [])
        for claim in claims.find(named, aliases):
            found[claim.column, claim.channel] = claim
        for name in {claim.column for claim in found.values()} & set(table.header):
            parts[name].append((part, columns.numbers(table.frame, table.header.index(name))))
    readings = {
        name: claims.series(np.concatenate([t for t, _ in pieces]), np.concatenate([v for _, v in pieces]))
        for name, pieces in parts.items()
        if pieces
    }
    ordered = sorted(found.values(), key=lambda claim: claim.rank)
    series, chosen = claims.settle(path, ordered, readings, aliases, app_power=True, columns=list(parts))
    return [Readings(trip_id(path), series, NAME, (*chosen, *notes))]


def _tables(path: Path, data: bytes) -> list[text.Table]:
    """The file cut before every repeated header; a header with no rows under it is passed over."""
    marker = data[:64].lstrip(b'\xef\xbb\xbf "').split(b",")[0].rstrip(b' "')
    first, *rest = data.split(b"\n" + marker)
    tables = []
    line = 0
    for section in (first, *(marker + part for part in rest)):
        if len(section.splitlines()) > 1:
            table = text.table(path, section)
            tables.append(text.Table(table.frame, table.header, line + table.first_line))
        line += section.count(b"\n") + 1
    if not tables:
        raise LogError(f"{path}: it has a header but no rows; record or export the drive again.")
    return tables


def _times(path: Path, tables: list[text.Table]) -> tuple[NDArray[np.float64], list[str]]:
    """Seconds of all sections' rows since the first day's midnight."""
    clocks = []
    for table in tables:
        lower = [name.casefold() for name in table.header]
        column = next((lower.index(name) for name in _TIMES if name in lower), None)
        if column is None:
            raise LogError(
                f"{path}: the header at line {table.first_line - 1} names no Device Time; repair or remove that section."
            )
        clocks.append(table.frame[str(column)])
    seconds = clock.since_first_day(pl.concat([c.alias("t") for c in clocks]))
    if not np.isfinite(seconds).any():
        raise LogError(
            f"{path}: line {tables[0].first_line} has the time {clocks[0][0]!r}, which cannot be read; "
            "export it again or describe it in a --map file."
        )
    return clock.unroll(path, seconds, tables[0].first_line)
