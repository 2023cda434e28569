"""Speed between readings: one rule for files, streams and live columns.

At a bin's start speed lies straight between the readings around it (`start_speed`), at its end it is the last reading carried on
along the slope of the last two (`end_speed`). A row is slow where no reading fell into its bin, or where its bin begins in a step longer than `SLOW_BINS` bins. Held
readings would give it no acceleration at all, and then the whole change of several seconds in one row. Instead its speed runs
along a curve that the readings up to its end allow: back from a reading along the mean slope since the one before it, and on
from it along that slope as it dies away,

    v(t) = v1 + s min(t - t1, 0) + s L (1 - exp(-max(t - t1, 0) / L)),     s = trust (v1 - v0) / (t1 - t0),

after t1 the measured acceleration in place of s where that came with the reading. The row's speed is the mean of this curve at the
bin's two edges, its acceleration their difference. The slope of two readings close together is mostly their rounding, and that of
two far apart hides what was driven between them: both are trusted less. Arrays or floats throughout; where there is no other
reading, the same one stands for it.

The constants come from speeds of four cars at 1 Hz (BMW i3, Tesla, two of the VED and ChargeCar fleets) read every 1 to 15 s:
regression of the acceleration in a row on the slope shown, by step and age; they differ little from car to car.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

Value = TypeVar("Value", float, np.ndarray)

SLOW_BINS = 1.5
CARRIED = 1.5  # a slope is extrapolated by at most this multiple of the time between its readings
LASTS_S = 2.0  # how long an acceleration goes on
FADES_S = 35.0  # how slowly the mean over a step loses its correlation with the end of it
DOUBT_AGE_S, DOUBT_STEP_S = 3.0, 13.0  # of `sureness`


def start_speed(instant: Value, last_t: Value, last_v: Value, next_t: Value, next_v: Value) -> Value:
    """km/h at an instant between a reading and the next one."""
    share = np.minimum(np.maximum((instant - last_t) / np.maximum(next_t - last_t, 1e-9), 0.0), 1.0)
    speed: Value = last_v + share * (next_v - last_v)
    return speed


def end_speed(instant: Value, last_t: Value, last_v: Value, before_t: Value, before_v: Value) -> Value:
    """km/h at an instant after a reading and the one before it."""
    step = last_t - before_t
    ahead = np.minimum(np.maximum(instant - last_t, 0.0), CARRIED * step)
    speed: Value = np.maximum(last_v + (last_v - before_v) / np.maximum(step, 1e-9) * ahead, 0.0)
    return speed


def slope_of(last_t: Value, last_v: Value, before_t: Value, before_v: Value, width: float) -> Value:
    """km/h per second from a reading and the one before it, as far as it can be trusted."""
    step = last_t - before_t
    trust = np.minimum(step / width, 1.0) * np.exp(-np.maximum(step - width, 0.0) / FADES_S)
    slope: Value = trust * (last_v - before_v) / np.maximum(step, 1e-9)
    return slope


def speed_at(instant: Value, last_t: Value, last_v: Value, slope: Value) -> Value:
    """km/h at an instant in view of a reading and the slope at it."""
    since = instant - last_t
    on = LASTS_S * (1.0 - np.exp(-np.maximum(since, 0.0) / LASTS_S))
    speed: Value = np.maximum(last_v + slope * (np.minimum(since, 0.0) + on), 0.0)
    return speed


def mean_speed(start: Value, end: Value, lag: float) -> Value:
    """A bin's mean speed from the speeds at its edges. A bin with one reading has that for its mean, as a model has learned it
    from readings as far apart as its rows; for one that has seen means of many, the mean lies `lag` of the change before the
    end: 0.5 of continuous readings, 0.375 of four in a bin, the last of them at its end."""
    speed: Value = end - lag * (end - start)
    return speed


def sureness(step_s: Value, age_s: Value, width: float) -> Value:
    """Correlation of the acceleration in a row with the one shown: 1 where readings are as dense as the grid."""
    sure: Value = np.exp(-np.maximum(step_s - width, 0.0) / DOUBT_STEP_S - age_s / DOUBT_AGE_S)
    return sure
