"""The motion of each bin of the grid, from the speed readings around it (`evband.trips.between`)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evband.trips import between
from evband.trips.readings import Series

Array = NDArray[np.float64]
Places = NDArray[np.intp]

SAME = 1e-6  # instants closer than this share of a bin are the same instant: times are decimals in binary


def last_reading(time: Array, instants: Array, width: float) -> Places:
    """Index of the last reading at or before each instant; -1 where there is none."""
    return np.searchsorted(time, instants + SAME * width, side="right") - 1


def bin_edges(time: Array, ends: Array, width: float) -> tuple[Places, Places]:
    """(last reading at or before each bin's start, the same of its end); one bin starts where the one before it ends."""
    upto = last_reading(time, ends, width)
    alone = np.append(True, np.diff(ends) > 1.5 * width)  # no bin just before it
    before = np.append(-1, upto[:-1])
    before[alone] = last_reading(time, ends[alone] - width, width)
    return before, upto


class Motion:
    """Which speed readings each bin hangs on, by their number: a gap is any step between readings over `max_gap_s`."""

    def __init__(self, readings: Series, ends: Array, width: float, max_gap_s: float) -> None:
        self.time, self.speed = readings
        self.ends, self.width = ends, width
        self.gaps = np.concatenate([[0], np.cumsum(np.diff(self.time) > max_gap_s)])  # [readings]: gaps before each
        self.before, self.end = bin_edges(self.time, ends, width)
        unbroken = np.searchsorted(self.gaps, self.gaps)[self.end]  # the first of the stretch without a gap
        self.start = np.maximum(self.before, unbroken)  # a bin that begins in a gap starts after it
        self.after = np.minimum(self.start + 1, self.end)  # the first one after the bin's start
        self.earlier = np.maximum(self.end - 1, unbroken)  # the last but one, if no gap parts them

    def _at(self, which: Places) -> tuple[Array, Array]:
        return self.time[which], self.speed[which]

    @property
    def acceleration(self) -> Array:
        """(v at the bin's end - v at its start) / D in m/s2, with v the last reading at that instant."""
        return np.asarray((self.speed[self.end] - self.speed[self.start]) / 3.6 / self.width)

    @property
    def edges(self) -> tuple[Array, Array]:
        """Speed at each bin's start and end from the readings up to its end."""
        start = between.start_speed(self.ends - self.width, *self._at(self.start), *self._at(self.after))
        return start, between.end_speed(self.ends, *self._at(self.end), *self._at(self.earlier))

    @property
    def ages(self) -> Array:
        """Seconds since the last reading at each bin's end; 0 where the bin has one."""
        return np.where(self.end > self.before, 0.0, self.ends - self.time[self.end])

    @property
    def slow(self) -> Places:
        """Rows whose readings lie further apart than the grid."""
        far = self.time[self.after] - self.time[self.start] > between.SLOW_BINS * self.width
        return np.flatnonzero((self.before == self.end) | far)

    def between(self, rows: Places, measured: Series | None) -> tuple[Array, Array, Array, Array, Array]:
        """Speed, acceleration, the speeds at the edges of slow rows, and 1 where acceleration is that `measured` in the row."""
        ends, width, last = self.ends[rows], self.width, self._at(self.end[rows])
        slope = between.slope_of(*last, *self._at(self.earlier[rows]), width)
        own = np.full(len(rows), np.nan)  # in the bin
        if measured is not None:
            at, value = measured
            since, newest = (last_reading(at, instants, width) for instants in (ends - width, ends))
            came = (newest >= 0) & (at[np.maximum(newest, 0)] > last[0] - width)
            slope = np.where(came, 3.6 * value[np.maximum(newest, 0)], slope)
            own = np.where(newest > since, mean_of(value, since, newest), np.nan)
        end = between.speed_at(ends, *last, slope)
        late, early = self._at(self.after[rows]), self._at(self.start[rows])
        empty = self.before[rows] == self.end[rows]
        back = np.where(empty, slope, between.slope_of(*late, *early, width))
        start = between.speed_at(ends - width, *late, back)
        acceleration = np.where(np.isnan(own), (end - start) / 3.6 / width, own)
        return (start + end) / 2, acceleration, start, end, 1.0 - np.isnan(own)


def mean_of(value: Array, before: Places, upto: Places) -> Array:
    """Mean of the readings after `before` up to `upto`; of none, a number that means nothing."""
    known = np.append(value[: upto[-1] + 1], 0.0)
    sums = np.add.reduceat(known, np.stack([before, upto], axis=1).ravel() + 1)[::2]
    return np.asarray(sums / np.maximum(upto - before, 1))
