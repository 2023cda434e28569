"""What a format reader hands over: one drive as it was logged, channel by channel, before any cleaning.

A format module has three names, and `evband.logs.formats` lists the modules in the order in which they are asked:

    NAME: str                                                               what `evband inspect` calls the format
    def detect(head: bytes) -> bool                                         by content: the first 64 KiB, decompressed
    def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]

A reader converts units and signs to those of `evband.channels`, and leaves glitches, fills and gaps as they are: cleaning
is one place's work (`evband.trips.quality`), so that it is reported alike for every format. Where a log has a power of its
own that is worse than current times voltage (a phone app's), its reader leaves that power out and says so in `notes`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Series = tuple[NDArray[np.float64], NDArray[np.float64]]  # (time_s sorted, value), both [readings]


def not_empty(series: Mapping[str, Series]) -> dict[str, Series]:
    """Those that hold a reading."""
    return {name: readings for name, readings in series.items() if len(readings[0])}


def trapezoids(readings: Series) -> NDArray[np.float64]:
    """[readings - 1]: the integral over each step from one reading to the next, the value straight in between."""
    time, value = readings
    return np.asarray(np.diff(time) * (value[1:] + value[:-1]) / 2)


def integral(readings: Series) -> NDArray[np.float64]:
    """[readings]: from the first reading up to each."""
    return np.concatenate([[0.0], np.cumsum(trapezoids(readings))])


@dataclass(frozen=True)
class Readings:
    """One drive as logged. Channels may be read at instants of their own; a missing value is simply not there."""

    trip_id: str
    series: Mapping[str, Series]  # our channel name -> its readings, in our units and signs
    format: str
    notes: tuple[str, ...] = ()  # what a user should know: units converted, duplicates dropped, which PID was chosen
    hz: float | None = None  # set only by a table that already is on the grid
    segment: tuple[NDArray[np.float64], NDArray[np.int32]] | None = None  # with hz: (time_s, segment) of every row
    truth: pl.DataFrame | None = None  # time_s and the columns true_* of a simulated table
    # a unit of the speed that the log does not name and that was assumed: a finding, which `fit` repeats
    doubt: str = ""


@dataclass(frozen=True)
class ReadOptions:
    """What the user may tell a reader about a log."""

    aliases: Mapping[str, Sequence[str]] = field(default_factory=dict)  # our channel -> further names it has in logs
    map: Mapping[str, Any] | None = None  # a parsed map.toml: their column -> our channel, unit, sign
    dbc: Path | None = None  # describes the frames in an MF4 bus log
