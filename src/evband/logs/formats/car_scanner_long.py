"""Car Scanner's long export: `"SECONDS";"PID";"VALUE";"UNITS";`, one reading a row, optionally with its place.

SECONDS counts from local midnight; the date is only in the file's name. Names and units are the phone's. The app writes
each reading again 10 ms later; the copy is dropped.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims, clock, text
from evband.logs.formats.naming import trip_id
from evband.logs.readings import Readings, ReadOptions, Series

NAME = "Car Scanner long"
_COLUMNS = ("SECONDS", "PID", "VALUE", "UNITS")


def detect(head: bytes) -> bool:
    """A header with SECONDS, PID and VALUE."""
    names = {cell.upper() for cell in text.header(head)[0]}
    return {"SECONDS", "PID", "VALUE"} <= names


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive a file."""
    names = [cell.upper() for cell in text.header(data[: 1 << 16])[0]]
    where = {name: names.index(name) for name in _COLUMNS if name in names}
    table = text.table(path, data, keep=sorted(where.values()))
    frame = table.frame.rename({str(i): name for name, i in where.items()})
    if "UNITS" not in where:
        frame = frame.with_columns(UNITS=pl.lit(""))
    frame = frame.with_columns(pl.col("UNITS").fill_null(""), pl.col("PID").fill_null(""))
    seconds = text.numbers(frame, ["SECONDS"])["SECONDS"].fill_null(np.nan).to_numpy()
    time, notes = clock.unroll(path, seconds, table.first_line)

    pids = frame.select("PID", "UNITS").unique().sort("PID", "UNITS")
    aliases = alias_table.table(options.aliases)
    columns = [(f"{pid}\x00{unit}", pid, unit) for pid, unit in pids.iter_rows()]
    found = claims.find(columns, aliases)
    readings, repeats = _readings(frame, time, {claim.column for claim in found})
    labels = [f"{pid} ({unit})" if unit else pid for _, pid, unit in columns]
    series, chosen = claims.settle(path, found, readings, aliases, app_power=True, columns=labels)
    if repeats:
        notes.append(f"{repeats} readings repeated 10 ms later were dropped")
    name = f"{NAME} with GPS" if any(cell.startswith("LATITUDE") for cell in names) else NAME
    return [Readings(trip_id(path), series, name, (*chosen, *notes))]


def _readings(frame: pl.DataFrame, time: NDArray[np.float64], wanted: set[str]) -> tuple[dict[str, Series], int]:
    """The raw series of every wanted PID and unit, without repeats."""
    if not wanted:
        return {}, 0
    names = sorted({column.split("\x00")[0] for column in wanted})
    rows = frame.select("PID", "UNITS", "VALUE").with_columns(time=pl.Series(time))
    rows = rows.filter(pl.col("PID").is_in(names))
    rows = rows.with_columns(text.numbers(rows, ["VALUE"]))
    series: dict[str, Series] = {}
    repeats = 0
    for (pid, unit), part in rows.partition_by("PID", "UNITS", maintain_order=True, as_dict=True).items():
        at, value = claims.series(part["time"].to_numpy(), part["VALUE"].fill_null(np.nan).to_numpy())
        keep = claims.drop_repeats(at, value)
        repeats += int(keep.size - keep.sum())
        series[f"{pid}\x00{unit}"] = (at[keep], value[keep])
    empty = (np.empty(0), np.empty(0))
    return {column: series.get(column, empty) for column in wanted}, repeats
