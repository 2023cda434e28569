"""What features remember of a drive, and how they read a row: compiled, and one rule for a whole trip, a tick and a fleet.

The slope is that of a regression of past elevation on distance. Each metre weighs ``exp(-distance since / GRADE_LENGTH_M)``,
so standing still changes nothing, and ``grade = S_se / (S_ss + prior W)``: zero until the car has moved, hardly moved by the
1 m steps of many logs. Weighted moments are updated in place, distances are counted back from where the car is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.compiled import compiled
from evband.features.map import HELD, FeatureMap
from evband.features.road_load import GRADE_LENGTH_M, GRADE_PRIOR_M2

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Rule = tuple[NDArray[np.int64], float, float, Array, Flags]

# Columns of a vehicle's memory; behind them the last reading of each channel
NAMES = ("w", "s", "e", "sss", "see", "last_end", "ticks", "seen")
W, S, E, SSS, SEE, END, TICKS, SEEN, LAST = range(9)
PLAIN, HOLDS, GRADE, GRADE_IF_SEEN, ACCELERATION = range(5)  # kinds of channels


def rule_of(features: FeatureMap) -> Rule:
    """What `advance` takes first: kinds of the channels, rows per second, what acceleration holds of a slope, their bounds
    [5, channels] (training range, what stands in for an unknown value, how far a value counts), and whether unknown is a value
    of them."""
    grade = GRADE_IF_SEEN if "elevation_m" in features.optional else GRADE
    kinds = {"elevation_m": grade, "acceleration_ms2": ACCELERATION} | dict.fromkeys(HELD, HOLDS)
    limits = [features.weather_limits(i) if c in HELD else (-np.inf, np.inf) for i, c in enumerate(features.channels)]
    return (
        np.array([kinds.get(c, PLAIN) for c in features.channels]),
        features.hz,
        features.tilt,
        np.stack([features.low, features.high, features.typical, *np.transpose(limits)]),
        np.array([c in features.optional for c in features.channels]),
    )


@compiled()
def slope(m: Array, elevation_m: float, moved_m: float) -> Any:
    """The grade (rise over run) after `moved_m` more metres; NaN elevation: road unseen."""
    seen = elevation_m == elevation_m
    m[S] -= moved_m
    if m[W] == 0.0:
        if seen:
            m[W], m[S], m[E] = 1.0, 0.0, elevation_m
        return 0.0
    if moved_m > 0.0:
        fade = math.exp(-moved_m / GRADE_LENGTH_M)
        m[W] *= fade
        m[SSS] *= fade
        m[SEE] *= fade
        if seen:
            total = m[W] + moved_m
            ds, de, share = -m[S], elevation_m - m[E], moved_m / total
            m[S] += share * ds
            m[E] += share * de
            m[SSS] += m[W] * share * ds * ds
            m[SEE] += m[W] * share * ds * de
            m[W] = total
    return m[SEE] / (m[SSS] + GRADE_PRIOR_M2 * m[W]) if m[W] != 0.0 else 0.0


@compiled()
def slopes(elevation_m: Array, moved_m: Array, start: Flags, m: Array, out: Array) -> None:
    """The grade after every row of a trip, anew at each `start`, with a memory [LAST] of zeros."""
    for t in range(len(out)):
        if start[t]:
            m[:] = 0.0
        out[t] = slope(m, elevation_m[t], moved_m[t])


@compiled()
def remember(
    kinds: NDArray[np.int64], hz: float, tilt: float, memory: Array, cars: NDArray[np.int64], values: Array
) -> None:
    """The next row of each of `cars`: fill `values` [cars, channels + 3] with what their memories [vehicles, LAST + channels]
    tell, and remember. Behind the channels lie speed and the speeds at the bin's start and end; speed becomes the row's number.

    Elevation becomes the grade of the road just driven, a slow channel holds its last reading, an acceleration that is not
    known is the change of speed and what a sensor would have felt of the grade, and the speeds at the edges, where not known,
    those of the rows.
    """
    channels = len(kinds)
    for i in range(len(cars)):
        m, row = memory[cars[i]], values[i]
        speed, felt, derived = row[channels], 0.0, -1
        for j in range(channels):
            if kinds[j] == GRADE or kinds[j] == GRADE_IF_SEEN:
                if row[j] == row[j]:
                    m[SEEN] = 1.0
                row[j] = slope(m, row[j], speed / 3.6 / hz if speed == speed else 0.0)
                felt = tilt * row[j]
                if kinds[j] == GRADE_IF_SEEN and m[SEEN] == 0.0:
                    row[j] = np.nan
            elif kinds[j] == ACCELERATION and row[j] != row[j]:
                derived = j
            elif kinds[j] == HOLDS:
                if row[j] == row[j]:
                    m[LAST + j] = row[j]
                row[j] = m[LAST + j]
        if row[channels + 2] != row[channels + 2]:
            row[channels + 2] = speed
        if row[channels + 1] != row[channels + 1]:
            row[channels + 1] = m[END] if m[END] == m[END] else row[channels + 2]
        if derived >= 0:
            row[derived] = (row[channels + 2] - row[channels + 1]) / 3.6 * hz + felt
        m[END], row[channels] = row[channels + 2], m[TICKS]
        m[TICKS] += 1.0


@compiled()
def place(bounds: Array, optional: Flags, values: Array, which: Flags) -> None:
    """Make `values` [rows, channels or more] fit for features, and tell `which` are unknown or beyond their training range (see `rule_of`)."""
    low, high, typical, least, most = bounds
    for i in range(len(values)):
        for j in range(len(low)):
            value = values[i, j]
            if not math.isfinite(value):
                which[i, j] = not optional[j]
                value = np.nan if optional[j] else typical[j]
            else:
                which[i, j] = value < low[j] or value > high[j]
            if value < least[j]:
                value = least[j]
            elif value > most[j]:
                value = most[j]
            values[i, j] = value


@compiled()
def advance(
    kinds: NDArray[np.int64], hz: float, tilt: float, bounds: Array, optional: Flags, memory: Array,
    cars: NDArray[np.int64], values: Array, which: Flags,
) -> None:  # fmt: skip
    """`remember`, then `place`."""
    remember(kinds, hz, tilt, memory, cars, values)
    place(bounds, optional, values, which)
