"""What gridded training trips tell of their readings, for feeds that have fewer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.channels import DERIVED_MS2, EDGES
from evband.features.rows import power_of
from evband.vehicles.physics import GRAVITY

if TYPE_CHECKING:
    from evband.trips import Trip

Array = NDArray[np.float64]

ALIKE = 0.9  # share of the variance of (end - mean speed) that one lag explains where every bin has several readings
AROUND_S = 31.0  # power is compared with its mean over so long
LEVEL = 0.9
LEAST_MS = 2.0  # on the move
DERIVED, FEW_ROWS = 0.01, 100  # share of rows, and how many it takes to tell
CLIMB_S, FEW_WINDOWS, LEAST_CLIMB_M = 60.0, 10, 1.0
LEAST_TILT = 3.0  # m/s2 per unit of grade: a sensor that feels gravity has 9.8


def readings_of(trips: Sequence[Trip]) -> tuple[float, float, float]:
    """(lag, hidden kW, how acceleration follows speed), as below."""
    return lag_of(trips), hidden_of(trips), follows_of(trips)


def lag_of(trips: Sequence[Trip]) -> float:
    """How long before its end a bin's mean speed was reached, as a share of the bin: by least squares of (end - mean) on
    (end - start). 0 where readings lie a bin apart, or where some bins have one and others many."""
    if not has_edges(trips):
        return 0.0
    columns = [[trip.table[name].to_numpy() for trip in trips] for name in ("speed_kmh", *EDGES)]
    speed, start, end = (np.concatenate(column) for column in columns)
    known = np.isfinite(speed) & np.isfinite(start) & np.isfinite(end)
    behind, change = (end - speed)[known], (end - start)[known]
    if not (change @ change > 0.0 and behind @ behind > 0.0):
        return 0.0
    lag = float(behind @ change / (change @ change))
    explained = lag * lag * float(change @ change) / float(behind @ behind)
    return min(max(lag, 0.0), 0.5) if explained > ALIKE else 0.0


def has_edges(trips: Sequence[Trip]) -> bool:
    """Whether all have the speeds at the edges of their bins."""
    return all(set(EDGES) <= set(trip.table.columns) for trip in trips)


def hidden_of(trips: Sequence[Trip]) -> float:
    """By how much power strays from its mean over half a minute, in kW per root of speed (m/s): the normal deviation of which
    90 % of moving rows show no more. It is what readings far apart leave unknown; 0 where nothing tells.

    Mass times acceleration times speed would grow with speed itself, but the faster a car, the more steadily it is driven: of
    a BMW i3, a Tesla and two Leafs the deviation grows with about the root.
    """
    from scipy.ndimage import uniform_filter1d  # only fits need them: loading a model is quick
    from scipy.special import ndtri

    found = []
    for trip in trips:
        power, speed = power_of(trip), trip.table["speed_kmh"].to_numpy() / 3.6
        known = np.isfinite(power) & np.isfinite(speed)
        power, speed = power[known], speed[known]
        rows = max(int(AROUND_S * (trip.hz or 1.0)), 3)
        if len(power) > rows:
            moving = speed > LEAST_MS
            found.append(np.abs(power - uniform_filter1d(power, rows))[moving] / np.sqrt(speed[moving]))
    strays = np.concatenate(found) if found else np.empty(0)
    return float(np.quantile(strays, LEVEL) / ndtri(0.5 + LEVEL / 2)) if len(strays) else 0.0


def follows_of(trips: Sequence[Trip]) -> float:
    """Correlation of measured acceleration with the change of speed, which stands for it in a feed without; 1 where it was not
    measured."""
    found = _measured(trips)
    if found is None:
        return 1.0
    _, measured, change = found
    return float(np.clip(np.corrcoef(measured, change)[0, 1], 0.0, 1.0))


def tilt_of(trips: Sequence[Trip]) -> float:
    """What measured acceleration holds beside the change of speed, per unit of grade: an accelerometer on a slope feels gravity.
    Over windows of `CLIMB_S`, where noise of elevation matters little, by least squares of

        sum (measured - change) v dt = tilt climb + bias way

    0 where a sensor does not feel it, or acceleration was not measured."""
    if _measured(trips) is None or not all(trip.has("elevation_m") for trip in trips):
        return 0.0
    found = []
    for trip in trips:
        hz = trip.hz or 1.0
        start, end = (trip.column(name) / 3.6 for name in EDGES)
        way = trip.column("speed_kmh") / 3.6 / hz
        beside, height = (trip.column("acceleration_ms2") - (end - start) * hz) * way, trip.column("elevation_m")
        size = int(CLIMB_S * hz) + 1
        for k in range(0, len(trip) - size, size - 1):
            rows = slice(k + 1, k + size)
            found.append((height[k + size - 1] - height[k], way[rows].sum(), beside[rows].sum()))
    windows = np.array(found).reshape(-1, 3)
    climb, driven, felt = windows[np.isfinite(windows).all(1)].T
    if len(climb) < FEW_WINDOWS or climb.std() < LEAST_CLIMB_M:
        return 0.0
    tilt = float(np.linalg.lstsq(np.stack([climb, driven], 1), felt)[0][0])
    return min(tilt, GRAVITY) if tilt >= LEAST_TILT else 0.0


def _measured(trips: Sequence[Trip]) -> tuple[NDArray[np.intp], Array, Array] | None:
    """(rows where speed changes, acceleration there, the change of speed in m/s2); None where acceleration was not measured:
    derived ones equal that change in many rows, to the bit."""
    if not (has_edges(trips) and all(trip.has("acceleration_ms2") for trip in trips)):
        return None
    columns = [np.concatenate([trip.column(name) for trip in trips]) for name in ("acceleration_ms2", *EDGES)]
    measured, change = columns[0], (columns[2] - columns[1]) / 3.6 * (trips[0].hz or 1.0)
    rows = np.flatnonzero(np.isfinite(measured) & np.isfinite(change) & (change != 0.0))
    measured, change = measured[rows], change[rows]
    if (
        len(rows) < FEW_ROWS
        or np.mean(np.abs(measured - change) < DERIVED_MS2) > DERIVED
        or not (measured.std() and change.std())
    ):
        return None
    return rows, measured, change
