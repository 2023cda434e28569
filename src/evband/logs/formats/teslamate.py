"""TeslaMate's table `positions`: a CSV export, or the part of a database dump between `COPY public.positions (...)` and `\\.`.

Power is in whole kW, positive when it leaves the battery; speed in km/h; one row every few seconds while driving. Rows of no drive
(`drive_id` empty) are charging or standing and are left out.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl

from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import columns, text
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions

NAME = "TeslaMate"
_COPY = re.compile(rb"^COPY (?:public\.)?positions \(([^)\n]*)\) FROM stdin;[^\n]*\n", re.MULTILINE)
_NEEDED = {"date", "speed", "power"}
_THEIRS = {"drive_id", "car_id", "ideal_battery_range_km", "rated_battery_range_km", "est_battery_range_km"}


def detect(head: bytes) -> bool:
    """A dump with the table, or its names for date, speed, power and one that only it has."""
    return _is_dump(head) or (columns.has(head, *_NEEDED) and any(columns.has(head, name) for name in _THEIRS))


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive for each drive_id; where the export lacks it, cut where speed is silent."""
    if _is_dump(data):
        frame, header = _dump(path, data)
    else:
        table = text.table(path, data)
        frame, header = table.frame, table.header
    where = columns.names(header)
    if not set(where) >= _NEEDED:
        raise LogError(f"{path}: the table positions lacks date, speed or power; export all of its columns.")
    frame = columns.dated(frame, where["date"])
    if "drive_id" in where:
        drive = str(where["drive_id"])
        parts = frame.filter(pl.col(drive).is_not_null() & (pl.col(drive) != "")).partition_by(
            drive, maintain_order=True, as_dict=True
        )
    else:
        parts = {(trip_id(path),): frame}
    if not parts or len(parts) > border.MOST_TRIPS:
        raise LogError(f"{path}: it holds {len(parts)} drives; export rows of 1 to {border.MOST_TRIPS} drives.")
    trips: list[Readings] = []
    for key, part in parts.items():
        found = columns.series(part, header, columns.TESLA, part["when"].to_numpy())
        if len(found.get("speed_kmh", (np.empty(0),))[0]) >= 2:
            name = f"drive_{key[0]}" if "drive_id" in where else str(key[0])
            trips += columns.drives(path, NAME, found, ("power in whole kW, as the car reports it",), name)
    if not trips:
        raise LogError(f"{path}: no drive in it has two speed readings; export more of the table positions.")
    return trips


def _is_dump(data: bytes) -> bool:
    return _COPY.search(data) is not None or data.startswith(b"--\n-- PostgreSQL database dump")


def _dump(path: Path, data: bytes) -> tuple[pl.DataFrame, list[str]]:
    """The rows of `positions` in a dump: tabs between cells, \\N for none."""
    found = _COPY.search(data)
    if found is None:
        raise LogError(f"{path}: this dump holds no table positions; dump that table, or export it as CSV.")
    header = [name.strip().strip('"') for name in found.group(1).decode("utf-8", "replace").split(",")]
    border.check_width(path, len(header))
    end = data.find(b"\n\\.", found.end() - 1)
    rows = data[found.end() : end if end >= 0 else len(data)]
    with border.parsing(path, "table positions"):
        frame = pl.read_csv(
            rows, separator="\t", has_header=False, quote_char=None, null_values=["\\N"], raise_if_empty=False,
            schema={str(i): pl.String for i in range(len(header))}, truncate_ragged_lines=True,
        )  # fmt: skip
    return frame, header
