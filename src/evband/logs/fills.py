"""Straight-line fills: stretches in which every channel runs exactly straight, because a hole was interpolated over.

A window of a few seconds is straight if each channel stays within its own rounding step of the chord from the window's
first to its last sample, and at least two channels move by many steps on the way. (A standing car is not a fill: nothing
moves. Nor is a cruising car: its current is never straight.) Power is not looked at where current and voltage are: a
product of two straight lines is not straight.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from evband.trips.power import steady_step
from evband.trips.readings import Series

Array = NDArray[np.float64]

WINDOW_S = 5.0
MOVES_STEPS = 5.0  # a channel moves if it runs this many rounding steps within a window
LEAST_SAMPLES = 10  # in a window: with fewer, straight is nothing special
_WATCHED = (
    "speed_kmh", "acceleration_ms2", "motor_torque_nm", "motor_rpm", "force_n", "battery_voltage_v", "battery_current_a", "power_kw",
)  # fmt: skip


def straight_line_fills(series: Mapping[str, Series], least_s: float) -> list[tuple[float, float]]:
    """The (start_s, end_s) of every fill of at least `least_s`, in a log whose channels are sampled together."""
    names = [name for name in _WATCHED if name in series]
    if {"battery_voltage_v", "battery_current_a"} <= set(names) and "power_kw" in names:
        names.remove("power_kw")
    if "speed_kmh" not in names or len(names) < 2:
        return []
    time = series["speed_kmh"][0]
    step = steady_step(time)
    # Only channels sampled with speed; a glitch dropped here and there must not hide a fill, so they are interpolated.
    names = [name for name in names if len(series[name][0]) >= 0.9 * len(time)]
    if step is None or len(names) < 2:
        return []
    window = max(round(WINDOW_S / step), LEAST_SAMPLES)
    if len(time) <= window:
        return []
    values = [
        series[name][1] if len(series[name][0]) == len(time) else np.interp(time, *series[name]) for name in names
    ]
    steps = [rounding_step(value) for value in values]
    coarse = np.arange(0, len(time) - window, max(window // 2, 1))
    candidates = coarse[_straight(values, steps, coarse, window)]
    if not len(candidates):
        return []
    near = np.unique((candidates[:, None] + np.arange(-window, window + 1)).ravel())  # where to look sample by sample
    fine = near[(near >= 0) & (near < len(time) - window)]
    inside = np.zeros(len(time), bool)
    for start in fine[_straight(values, steps, fine, window)]:
        inside[start : start + window + 1] = True
    edges = np.flatnonzero(np.diff(np.concatenate([[0], inside.astype(np.int8), [0]])))
    stretches = [(float(time[a]), float(time[b - 1])) for a, b in edges.reshape(-1, 2)]
    return [(a, b) for a, b in stretches if b - a >= least_s]


def rounding_step(values: Array) -> float:
    """The step to which a channel was rounded: the smallest difference between two of its values."""
    distinct = np.unique(values)
    if len(distinct) < 2:
        return 0.0
    return max(float(np.min(np.diff(distinct))), 1e-9 * float(distinct[-1] - distinct[0]))


def _straight(values: list[Array], steps: list[float], starts: NDArray[np.intp], window: int) -> NDArray[np.bool_]:
    """[starts]: whether all channels run straight over [start, start + window], two of them moving."""
    share = np.linspace(0.0, 1.0, window + 1)
    straight = np.ones(len(starts), bool)
    moving = np.zeros(len(starts), int)
    for value, step in zip(values, steps, strict=True):
        views = sliding_window_view(value, window + 1)[starts]  # [starts, window + 1]
        first, last = views[:, :1], views[:, -1:]
        off = np.abs(views - (first + (last - first) * share)).max(axis=1)
        straight &= off <= 1.05 * step + 1e-9 * (1 + np.abs(first[:, 0]))
        moving += np.abs(last - first)[:, 0] > MOVES_STEPS * step
    return straight & (moving >= 2)
