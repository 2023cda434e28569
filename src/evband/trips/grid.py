"""The grid: row t covers (t - D, t], and none of its inputs knows anything later than t.

* `power_kw` is the mean over the bin, from the energy F(t) of `PowerCurve`: energy survives any grid.
* An input is the mean of its readings in the bin, else its last reading if that is younger than the channel's
  `max_age_s` (`evband.channels`), else unknown.
* Where speed readings lie further apart than the grid, motion is that of `evband.trips.between`; elsewhere:
* Acceleration is the measured one where there is one; else (v at the bin's end - v at its start) / D, with v the last
  reading at that instant.
* `speed_start_kmh` and `speed_end_kmh` are the speeds at the bin's two edges as known at t: what changes kinetic energy.
  The end is the last reading carried on along the slope of the last two, the start lies between its two readings. Where
  readings fall on the grid both are readings; where they come every second or so they are far better than held ones.
* Rows stand at t0, t0 + D, t0 + 2D, ..., with t0 the first speed reading, so that a log already at this rate keeps its
  rows. A row without a speed is left out.
* A new segment begins after a gap in speed, after left-out rows, and where an input goes stale or comes back.

A grid may bridge silences of up to `bridge_s` (slow feeds, phone apps): rows go on with the last values, `age_s` counts
the seconds since the last speed reading, and the segment goes on.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import AGE, CHANNELS, EDGES, ELECTRICAL, VALUES, require
from evband.errors import SettingsError
from evband.trips import between
from evband.trips.power import PowerCurve
from evband.trips.readings import Series

Array = NDArray[np.float64]

MAX_GAP_S = 10.0
"""Readings further apart than this have a gap between them, by default."""

LONGEST_BRIDGE_S = 120.0
"""No grid bridges a longer silence."""

_SAME = 1e-6  # instants closer than this share of a bin are the same instant: times are decimals in binary


def held_s(name: str, bridge_s: float) -> float:
    """How long a reading of this channel stands for those that follow, on a grid that bridges silences or does not (0)."""
    own = CHANNELS[name].max_age_s
    if not bridge_s or name in ELECTRICAL or name == "acceleration_ms2":
        return own
    return max(own, bridge_s)


def to_grid(
    series: Mapping[str, Series],
    hz: float,
    max_gap_s: float = MAX_GAP_S,
    where: str = "trip",
    bridge_s: float = 0.0,
    lag: float = 0.0,
) -> pl.DataFrame:
    """Readings on the grid of `hz` rows per second: `time_s`, the channels that have readings, and `segment`.

    `lag` is that of a model (`FeatureMap.lag`) whose training had several speed readings in a bin: see `between.mean_speed`.
    """
    if not (np.isfinite(hz) and 0 < hz <= 1000):
        raise SettingsError(f"The grid rate is {hz} Hz; give one above 0 and at most 1000.")
    series = {name: s for name, s in series.items() if len(s[0])}
    require("speed_kmh", series, where)
    width = 1.0 / hz
    time, speed = series["speed_kmh"]
    rows = row_numbers(time, width, held_s("speed_kmh", bridge_s))
    ends = time[0] + width * rows  # [rows]

    columns = {name: bin_inputs(series[name], ends, width, held_s(name, bridge_s)) for name in series}
    gaps = np.concatenate([[0], np.cumsum(np.diff(time) > max(max_gap_s, bridge_s))])  # [readings]: gaps before each
    measured = columns.get("acceleration_ms2", np.full(len(ends), np.nan))
    derived = derived_acceleration(time, speed, gaps, ends, width)
    columns["acceleration_ms2"] = np.where(np.isnan(measured), derived, measured)
    columns["speed_start_kmh"], columns["speed_end_kmh"] = speed_edges(time, speed, gaps, ends, width)
    if lag:
        before, upto = bin_edges(time, ends, width)
        start, end = columns["speed_start_kmh"], columns["speed_end_kmh"]
        columns["speed_kmh"] = np.where(upto - before == 1, between.mean_speed(start, end, lag), columns["speed_kmh"])
    slow, *motion = slow_motion(series, gaps, ends, width)
    for name, values in zip(("speed_kmh", "acceleration_ms2", *EDGES), motion, strict=True):
        columns[name][slow] = np.where(np.isnan(columns[name][slow]), np.nan, values)
    if bridge_s:
        columns[AGE] = ages(time, ends, width)
    if "power_kw" in series:
        columns["power_kw"] = PowerCurve.of(series["power_kw"], max_gap_s).bin_means(ends, width)

    kept = np.flatnonzero(~np.isnan(columns["speed_kmh"]))
    known = np.array([~np.isnan(c[kept]) for name, c in columns.items() if name not in ELECTRICAL])  # [inputs, kept]
    gaps_so_far = gaps[last_reading(time, ends[kept], width)]
    breaks = (np.diff(rows[kept]) > 1) | (np.diff(gaps_so_far) > 0) | np.any(known[:, 1:] != known[:, :-1], axis=0)
    segment = np.concatenate([[0], np.cumsum(breaks)]).astype(np.int32)
    table = {"time_s": ends[kept]} | {name: columns[name][kept] for name in (*VALUES, *EDGES, AGE) if name in columns}
    table = {name: column for name, column in table.items() if not np.isnan(column).all()}
    return pl.DataFrame(table).fill_nan(None).with_columns(segment=pl.Series(segment, dtype=pl.Int32))


def row_numbers(time: Array, width: float, max_age_s: float) -> NDArray[np.int64]:
    """The rows, counted from the first reading, at which a speed may be known: a clock that jumps by years makes none."""
    after = np.flatnonzero(np.diff(time) > max_age_s + 4 * width)
    number = np.floor((time - time[0]) / width + _SAME).astype(np.int64)  # [readings]: the last row at or before each
    aged = int(max_age_s / width) + 1
    starts, stops = number[np.concatenate([[0], after + 1])], number[np.append(after, len(time) - 1)]
    pieces = [np.arange(a, min(b + aged, number[-1]) + 1) for a, b in zip(starts, stops, strict=True)]
    return np.concatenate(pieces)


def bin_edges(time: Array, ends: Array, width: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(last reading at or before each bin's start, the same of its end); one bin starts where the one before it ends."""
    upto = last_reading(time, ends, width)
    alone = np.append(True, np.diff(ends) > 1.5 * width)  # no bin just before it
    before = np.append(-1, upto[:-1])
    before[alone] = last_reading(time, ends[alone] - width, width)
    return before, upto


def last_reading(time: Array, instants: Array, width: float) -> NDArray[np.intp]:
    """Index of the last reading at or before each instant; -1 where there is none."""
    return np.searchsorted(time, instants + _SAME * width, side="right") - 1


def bin_inputs(readings: Series, ends: Array, width: float, max_age_s: float) -> Array:
    """Mean of a channel's readings in each bin, else its last reading if young enough, else NaN."""
    time, value = readings
    before, upto = bin_edges(time, ends, width)  # readings 0..upto are known at the bin's end
    known = np.append(value[: upto[-1] + 1], 0.0)
    sums = np.add.reduceat(known, np.stack([before, upto], axis=1).ravel() + 1)[::2]  # [rows]; of an empty bin not used
    count = upto - before
    last = np.maximum(upto, 0)
    young = (upto >= 0) & (ends - time[last] <= max_age_s)
    return np.where(count > 0, sums / np.maximum(count, 1), np.where(young, value[last], np.nan))


def derived_acceleration(time: Array, speed: Array, gaps: NDArray[np.int64], ends: Array, width: float) -> Array:
    """(v at the bin's end - v at its start) / D in m/s2; a bin that begins in a gap starts at the first reading after it."""
    at_start, at_end = unbroken_edges(time, gaps, ends, width)
    acceleration: Array = (speed[at_end] - speed[at_start]) / 3.6 / width
    return acceleration


def unbroken_edges(
    time: Array, gaps: NDArray[np.int64], ends: Array, width: float
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """`bin_edges`, but the first reading after a gap at the start of a bin that begins in one."""
    at_start, at_end = bin_edges(time, ends, width)
    first_after_gap = np.searchsorted(gaps, gaps)  # [readings]: first reading of each reading's unbroken stretch
    return np.maximum(at_start, first_after_gap[at_end]), at_end


def slow_motion(
    series: Mapping[str, Series], gaps: NDArray[np.int64], ends: Array, width: float
) -> tuple[NDArray[np.intp], Array, Array, Array, Array]:
    """Rows whose speed readings lie further apart than the grid; their speed, acceleration, and speeds at the edges."""
    time, speed = series["speed_kmh"]
    at_start, at_end = unbroken_edges(time, gaps, ends, width)
    empty = bin_edges(time, ends, width)[0] == at_end
    after = np.minimum(at_start + 1, at_end)  # the first reading after the bin's start
    rows = np.flatnonzero(empty | (time[after] - time[at_start] > between.SLOW_BINS * width))
    if not len(rows):
        return rows, *(4 * (np.empty(0),))
    last, before = at_end[rows], np.maximum(at_end - 1, np.searchsorted(gaps, gaps)[at_end])[rows]
    slope = between.slope_of(time[last], speed[last], time[before], speed[before], width)
    measured = np.full(len(rows), np.nan)  # in the bin
    if "acceleration_ms2" in series:
        at, value = series["acceleration_ms2"]
        newest = np.maximum(last_reading(at, ends[rows], width), 0)
        came = (at[newest] <= ends[rows] + _SAME * width) & (at[newest] > time[last] - width)
        slope = np.where(came, 3.6 * value[newest], slope)
        measured = np.where(ages(at, ends, width)[rows] == 0.0, bin_inputs((at, value), ends, width, 0.0)[rows], np.nan)
    end = between.speed_at(ends[rows], time[last], speed[last], slope)
    late, early = after[rows], at_start[rows]
    back = between.slope_of(time[late], speed[late], time[early], speed[early], width)
    back = np.where(empty[rows], slope, back)
    start = between.speed_at(ends[rows] - width, time[late], speed[late], back)
    acceleration = np.where(np.isnan(measured), (end - start) / 3.6 / width, measured)
    return rows, (start + end) / 2, acceleration, start, end


def ages(time: Array, ends: Array, width: float) -> Array:
    """Seconds since the last reading at each bin's end; 0 where the bin has one."""
    before, upto = bin_edges(time, ends, width)
    return np.where(upto > before, 0.0, ends - time[np.maximum(upto, 0)])


def speed_edges(time: Array, speed: Array, gaps: NDArray[np.int64], ends: Array, width: float) -> tuple[Array, Array]:
    """Speed at each bin's start and end from the readings up to its end."""
    at_start, at_end = unbroken_edges(time, gaps, ends, width)
    before = np.maximum(at_end - 1, 0)
    step = time[at_end] - time[before]
    steady = (step > 0) & (gaps[at_end] == gaps[before])
    slope = np.where(steady, (speed[at_end] - speed[before]) / np.where(steady, step, 1.0), 0.0)
    age = np.maximum(ends - time[at_end], 0.0)
    end = np.maximum(
        speed[at_end] + slope * np.minimum(age, 1.5 * step), 0.0
    )  # not much further than the two are apart

    after = np.minimum(at_start + 1, at_end)
    span = time[after] - time[at_start]
    share = np.clip((ends - width - time[at_start]) / np.where(span > 0, span, 1.0), 0.0, 1.0)
    return speed[at_start] + share * (speed[after] - speed[at_start]), end
