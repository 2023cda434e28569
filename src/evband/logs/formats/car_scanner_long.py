"""Car Scanner's long export: `"SECONDS";"PID";"VALUE";"UNITS";`, one reading per row, optionally with its place.

SECONDS counts from local midnight; the date is only in the file's name. Names and units are the phone's. The app writes
each reading again 10 ms later; the copy is dropped.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evband.logs import border
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims, clock, text
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "Car Scanner long"
_COLUMNS = ("SECONDS", "PID", "VALUE", "UNITS")


def detect(head: bytes) -> bool:
    """A header with SECONDS, PID and VALUE."""
    names = {cell.upper() for cell in text.header(head)[0]}
    return {"SECONDS", "PID", "VALUE"} <= names


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive per file."""
    names = [cell.upper() for cell in text.header(data[: border.HEAD])[0]]
    where = {name: names.index(name) for name in _COLUMNS if name in names}
    table = text.table(path, data, keep=sorted(where.values()), numeric=(where["SECONDS"], where["VALUE"]))
    frame = table.frame.rename({str(i): name for name, i in where.items()})
    if "UNITS" not in where:
        frame = frame.with_columns(UNITS=pl.lit(""))
    frame = frame.with_columns(pl.col("UNITS").fill_null(""), pl.col("PID").fill_null(""))
    time, notes = clock.unroll(path, frame["SECONDS"].to_numpy(), table.first_line)
    aliases = alias_table.table(options.aliases)
    frame = frame.with_columns(time=pl.Series(time))
    pids = frame.group_by("PID").agg("time", "VALUE", pl.col("UNITS").unique()).sort("PID")
    parts = _parts(frame, pids.filter([alias_table.claims_any(pid, aliases) for pid in pids["PID"]]))
    found = claims.find([(f"{pid}\x00{unit}", pid, unit) for pid, unit in parts], aliases)
    wanted = {claim.column for claim in found}
    found_series = {key: claims.series(*s) for (pid, unit), s in parts.items() if (key := f"{pid}\x00{unit}") in wanted}
    readings, repeats = claims.without_repeats(found_series)
    series, chosen = claims.settle(path, found, readings, aliases, app_power=True, columns=pids["PID"].to_list())
    name = f"{NAME} with GPS" if any(cell.startswith("LATITUDE") for cell in names) else NAME
    return [Readings(trip_id(path), series, name, (*chosen, *notes, *repeats, *table.notes))]


def _parts(frame: pl.DataFrame, pids: pl.DataFrame) -> dict[tuple[str, str], Series]:
    """The raw readings of each PID and unit. Grouped by PID first: a key of two texts costs five times as much."""
    parts: dict[tuple[str, str], Series] = {}
    for pid, at, value, units in zip(pids["PID"], pids["time"], pids["VALUE"], pids["UNITS"], strict=True):
        for unit in sorted(units):
            if len(units) > 1:
                rows = frame.filter((pl.col("PID") == pid) & (pl.col("UNITS") == unit))
                at, value = rows["time"], rows["VALUE"]
            parts[pid, unit] = (at.to_numpy(), value.to_numpy())
    return parts
