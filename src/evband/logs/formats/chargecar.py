"""ChargeCar's drives: no header, eleven numbers per row, every 2 s: clock hhmmss (GMT), seconds, elevation m, way on the map m, way m,
speed m/s, acceleration, modelled kW, measured kW, A, V; what leaves the battery is negative and is inverted.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl

from evband.logs import border
from evband.logs.formats import claims, clock, columns, text
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "ChargeCar"
_ROW = re.compile(r"^\s*\d{1,6}(?:\.0+)?(?:\s*,\s*-?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?){10}\s*,?\s*$")
_COLUMNS = {
    2: ("elevation_m", 1.0),
    5: ("speed_kmh", 3.6),
    9: ("battery_current_a", -1.0),
    10: ("battery_voltage_v", 1.0),
}


def detect(head: bytes) -> bool:
    """Two first rows of eleven numbers, the first of them a clock."""
    lines = [line for line in text.lines(head, 3) if line.strip()][:2]
    return len(lines) == 2 and all(_ROW.match(line) and _is_clock(line.split(",")[0]) for line in lines)


def _is_clock(cell: str) -> bool:
    number = int(float(cell))
    return number < 240_000 and number % 10_000 < 6_000 and number % 100 < 60


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive per file."""
    with border.parsing(path):
        frame = pl.read_csv(
            data, has_header=False, schema={str(i): pl.String for i in range(12)}, truncate_ragged_lines=True,
        )  # fmt: skip
    time, notes = clock.unroll(path, columns.numbers(frame, 1), 1, daily=False)
    found: dict[str, Series] = {}
    for number, (channel, scale) in _COLUMNS.items():
        at, value = claims.series(time, scale * columns.numbers(frame, number))
        if len(at):
            found[channel] = (at, value)
    notes.append(columns.INVERTED)
    return columns.drives(path, NAME, found, tuple(notes), silence_s=np.inf)
