"""What `evband.trips.bin_columns` keeps of each vehicle and gives back: tuples of columns, as compiled loops take them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EARLY = 8  # readings before the first speed that count in its row, at most


class Layout(NamedTuple):
    """Which column is what, and how old a value may be."""

    width: float
    max_gap_s: float
    lag: float  # see `evband.trips.between.mean_speed`
    speed: int
    acceleration: int
    power: int
    current: int
    voltage: int
    max_age: Array  # [channels]
    counted: NDArray[np.bool_]  # [channels] whether its coming and going breaks a segment


class Bins(NamedTuple):
    """What is remembered of each vehicle; NaN where nothing is."""

    origin: Array  # [vehicles] the first speed reading
    open: NDArray[np.int64]  # [vehicles] number of the bin being filled
    newest: Array  # [vehicles] time of the last reading
    last_t: Array  # [vehicles, channels]
    last_v: Array
    sums: Array
    counts: NDArray[np.int64]
    mark: Array  # [vehicles, 2] last speed reading at the open bin's start
    next: Array  # [vehicles, 2] the speed reading after that
    before: Array  # [vehicles, 2] the speed reading before the last, if no gap parts them
    broken: NDArray[np.bool_]
    known: NDArray[np.int64]  # bit mask of counted channels in the last row; -1 before any
    idle: NDArray[np.bool_]  # no rows until it moves
    early_t: Array  # [vehicles, EARLY] the last readings before the first speed; -inf where there is none
    early_v: Array  # [vehicles, EARLY, channels]


class Rows(NamedTuple):
    """Rows that were completed, in the order of their completion."""

    car: NDArray[np.int64]
    time: Array
    values: Array  # [rows, channels + 2]: the last two are the speeds at the bin's edges
    start: NDArray[np.bool_]  # a segment starts
    first: NDArray[np.bool_]  # a drive starts
    age: Array  # s from the last speed reading to the row's end
    sure: Array  # correlation of the acceleration in the row with what its speed readings show: 1 where they are dense
    readings: NDArray[np.int64]  # of speed in the bin
    sensed: NDArray[np.bool_]  # its acceleration was measured
    sampled: NDArray[np.bool_]  # its power is a single reading, not the mean of several
