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
* `speed_readings` counts the speed readings in the bin: how closely a log follows the car.
* `acceleration_sensed` is 1 where acceleration is the measured one, 0 where it was made from the speeds.
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

from evband.channels import AGE, CHANNELS, EDGES, ELECTRICAL, ON_GRID, READINGS, SENSED, VALUES, require
from evband.errors import SettingsError
from evband.trips import between
from evband.trips.motion import SAME, Motion, bin_edges, mean_of
from evband.trips.power import PowerCurve
from evband.trips.readings import Series, not_empty

Array = NDArray[np.float64]

MAX_GAP_S = 10.0
"""Readings further apart than this have a gap between them, by default."""

LONGEST_BRIDGE_S = 120.0
"""No grid bridges a longer silence."""


UNCOUNTED = ELECTRICAL | {"speed_kmh", "acceleration_ms2", *ON_GRID, AGE}
"""Columns whose coming and going begins no segment of a stream: power comes when it comes, and motion is known in every row."""


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
    series = not_empty(series)
    require("speed_kmh", series, where)
    width = 1.0 / hz
    time = series["speed_kmh"][0]
    rows = row_numbers(time, width, held_s("speed_kmh", bridge_s))
    ends = time[0] + width * rows  # [rows]

    columns = {name: bin_inputs(series[name], ends, width, held_s(name, bridge_s)) for name in series}
    motion = Motion(series["speed_kmh"], ends, width, max(max_gap_s, bridge_s))
    measured = columns.get("acceleration_ms2", np.full(len(ends), np.nan))
    columns["acceleration_ms2"] = np.where(np.isnan(measured), motion.acceleration, measured)
    columns[SENSED] = 1.0 - np.isnan(measured)
    columns |= dict(zip(EDGES, motion.edges, strict=True))
    if lag:
        mean = between.mean_speed(columns[EDGES[0]], columns[EDGES[1]], lag)
        columns["speed_kmh"] = np.where(motion.end - motion.before == 1, mean, columns["speed_kmh"])
    if len(slow := motion.slow):
        found = motion.between(slow, series.get("acceleration_ms2"))
        for name, values in zip(("speed_kmh", "acceleration_ms2", *EDGES, SENSED), found, strict=True):
            columns[name][slow] = np.where(np.isnan(columns[name][slow]), np.nan, values)
    columns[READINGS] = (motion.end - motion.before).astype(np.float64)
    if bridge_s:
        columns[AGE] = motion.ages
    if "power_kw" in series:
        columns["power_kw"] = PowerCurve.of(series["power_kw"], max_gap_s).bin_means(ends, width)

    kept = np.flatnonzero(~np.isnan(columns["speed_kmh"]))
    known = np.array([~np.isnan(c[kept]) for name, c in columns.items() if name not in ELECTRICAL])  # [inputs, kept]
    gaps = motion.gaps[motion.end[kept]]
    breaks = (np.diff(rows[kept]) > 1) | (np.diff(gaps) > 0) | np.any(known[:, 1:] != known[:, :-1], axis=0)
    segment = np.concatenate([[0], np.cumsum(breaks)]).astype(np.int32)
    table = {"time_s": ends[kept]} | {name: columns[name][kept] for name in (*VALUES, *ON_GRID, AGE) if name in columns}
    table = {name: column for name, column in table.items() if not np.isnan(column).all()}
    return pl.DataFrame(table | {"segment": segment}, nan_to_null=True)


def row_numbers(time: Array, width: float, max_age_s: float) -> NDArray[np.int64]:
    """The rows, counted from the first reading, at which a speed may be known: a clock that jumps by years makes none."""
    after = np.flatnonzero(np.diff(time) > max_age_s + 4 * width)
    number = np.floor((time - time[0]) / width + SAME).astype(np.int64)  # [readings]: the last row at or before each
    aged = int(max_age_s / width) + 1
    starts, stops = number[np.concatenate([[0], after + 1])], number[np.append(after, len(time) - 1)]
    pieces = [np.arange(a, min(b + aged, number[-1]) + 1) for a, b in zip(starts, stops, strict=True)]
    return np.concatenate(pieces)


def bin_inputs(readings: Series, ends: Array, width: float, max_age_s: float) -> Array:
    """Mean of a channel's readings in each bin, else its last reading if young enough, else NaN."""
    time, value = readings
    before, upto = bin_edges(time, ends, width)
    last = np.maximum(upto, 0)
    young = (upto >= 0) & (ends - time[last] <= max_age_s)
    held = np.where(young, value[last], np.nan)
    return np.where(upto > before, mean_of(value, before, upto), held)
