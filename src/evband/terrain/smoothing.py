"""Elevation along a way, made fit for slopes: spikes out, noise smoothed over distance.

A slope is a difference: 3 m of noise between points 20 m apart is a grade of 15 %. So fine profiles are smoothed with a
Gaussian of `SIGMA_M` metres, which keeps hills (they are longer) and takes the noise of tiles and receivers out; coarse
ones (a planner's points, kilometres apart) stay as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

SIGMA_M = 75.0
STEP_M = 25.0
COARSE_M = 100.0  # profiles with points farther apart than this are not smoothed
MOST_POINTS = 200_000
SPIKE_M, SPIKE_GRADE = 12.0, 0.4  # farther than this from its neighbours' median, and steeper than this, is a spike
SPAN_M = 600.0  # neighbours lie within this, so that a broken pixel of a tile (90 m) is still the exception
NEIGHBOURS = (7, 101)  # at least, at most


def tidy_elevation(km: Array, elevation_m: Array) -> tuple[Array, Array, int]:
    """(km, elevation_m, spikes): known points only, spikes replaced by their neighbours' median, fine ones smoothed."""
    from scipy.ndimage import gaussian_filter1d

    known = np.isfinite(km) & np.isfinite(elevation_m)
    km, height = km[known], elevation_m[known]
    if len(km) < 3:
        return km, height, 0
    height, spikes = _without_spikes(1000.0 * km, height)
    if np.median(np.diff(km)) * 1000.0 > COARSE_M:
        return km, height, spikes
    length = 1000.0 * (km[-1] - km[0])
    points = int(min(max(round(length / STEP_M), 2), MOST_POINTS)) + 1
    even = np.linspace(km[0], km[-1], points)
    step = length / (points - 1)
    near = np.round((km - km[0]) * 1000.0 / max(step, 1e-9)).astype(int)  # the mean of all points near each even one
    count = np.bincount(near, minlength=points)
    mean = np.bincount(near, weights=height, minlength=points) / np.maximum(count, 1)
    filled = np.interp(even, even[count > 0], mean[count > 0])
    smooth = gaussian_filter1d(filled, min(SIGMA_M / max(step, 1e-9), points), mode="nearest")
    return even, np.asarray(smooth), spikes


def _without_spikes(metres: Array, height: Array) -> tuple[Array, int]:
    """Points that stand out from the median of their neighbours by more than any road climbs between them."""
    from scipy.ndimage import binary_dilation, median_filter

    step = max(float(np.median(np.diff(metres))), 1e-3)
    near = min(2 * (int(np.clip(SPAN_M / step, *NEIGHBOURS)) // 2) + 1, len(height))
    median = median_filter(height, size=near, mode="nearest")
    reach = np.gradient(metres) * (near // 2)
    off = np.abs(height - median)
    spike = binary_dilation(
        off > np.maximum(SPIKE_M, SPIKE_GRADE * reach), iterations=3, mask=off > SPIKE_M
    )  # and its flanks
    return np.where(spike, median, height), int(spike.sum())
