"""How noisy a car's log is: the offset of the log scale, as a density over a grid.

Each trip has a level of its own, `TRIP_SCALE_SD` about its car's. The likelihood of the grid is the dearest step of
`adapt`, so it is compiled, and softplus is read from a table whose nodes lie as far apart as the grid's: then all
offsets of a row lie alike between nodes, and four weights (cubic Lagrange, error under 2e-8) serve them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from evband.network.heads.base import SCALE_FLOOR
from evband.network.inference import softplus
from evband.network.kernels.jit import compiled

Array = NDArray[np.float64]

SCALE_CORRELATED = 10.0  # rows that count as one, at 1 Hz
TRIP_SCALE_SD = 0.45  # of the log scale, from trip to trip
OFFSETS = np.linspace(-3.0, 3.0, 121)  # of the log scale
NEAR = np.exp(
    -((OFFSETS[:, None] - OFFSETS) ** 2) / (2 * TRIP_SCALE_SD**2)
)  # a trip's (columns) about its car's (rows)

_STEP = 0.05
_FIRST, _NODES = -40.0, 2400  # softplus from -40 to 80
_SCALES = softplus(_FIRST + _STEP * np.arange(_NODES)) + SCALE_FLOOR
_AT_ONCE = 32  # rows whose factors are multiplied before a logarithm is taken
_MOST = 1e8  # squared errors in standardised units: no product of `_AT_ONCE` leaves the range of a float


@dataclass(frozen=True)
class Offsets:
    """What is known of the offset, as a density over `OFFSETS`."""

    density: Array

    def of_a_trip(self) -> Offsets:
        """Of the next trip, which has a level of its own."""
        blurred = NEAR @ self.density
        return Offsets(blurred / blurred.sum())

    def at(self, rank: float) -> float:
        """Quantile."""
        return float(np.interp(rank, np.cumsum(self.density), OFFSETS))

    @cached_property
    def likeliest(self) -> float:
        return float(OFFSETS[self.density.argmax()])

    @property
    def moments(self) -> tuple[float, float]:
        mean = float(self.density @ OFFSETS)
        return mean, max(0.05, float(self.density @ (OFFSETS - mean) ** 2) ** 0.5)


@dataclass(frozen=True)
class ScalePrior:
    """Of the offset over cars, or what earlier logs left of it."""

    mean: float
    sd: float
    correlated: float = SCALE_CORRELATED  # rows that count as one

    def posterior(self, raw: Array, error: Array, nu: float, groups: Sequence[NDArray[np.int64]]) -> Offsets:
        """Given errors of rows: each trip is a draw about the car's level."""
        log = -((OFFSETS - self.mean) ** 2) / (2 * self.sd**2)
        for group in groups:
            fit = np.zeros(len(OFFSETS))
            add_log_likelihood(raw[group], error[group], nu, _SCALES, fit)
            fit /= self.correlated
            log += np.log(NEAR @ np.exp(fit - fit.max()) + 1e-300)
        density = np.exp(log - log.max())
        return Offsets(density / density.sum())


def ranks_of(offsets: Array) -> Array:
    """Where members stand among each other, 0 to 1: one that was drawn as a noisy log stays one of the noisy ones."""
    order = np.argsort(np.argsort(offsets))
    return np.asarray((order + 0.5) / len(offsets))


@compiled(fastmath=True, error_model="numpy", boundscheck=False)
def add_log_likelihood(raw: Array, error: Array, nu: float, scales: Array, out: Array) -> None:
    """out[k] += sum over rows of the log density of a Student-t, s = softplus(raw + OFFSETS[k]) + SCALE_FLOOR.

    But for a constant it is  nu log s - (nu + 1)/2 log(s^2 + e^2 / nu).
    """
    count, rows = len(out), len(raw)
    one, two = np.ones(count), np.ones(count)
    for row in range(rows):
        place = (raw[row] - 3.0 - _FIRST) / _STEP
        place = min(max(place, 1.0), float(_NODES - count - 3))
        node = int(place)
        f = place - node
        w0, w1 = -f * (f - 1.0) * (f - 2.0) / 6.0, (f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0
        w2, w3 = -(f + 1.0) * f * (f - 2.0) / 2.0, (f + 1.0) * f * (f - 1.0) / 6.0
        square = min(error[row] * error[row], _MOST) / nu
        s0, s1 = scales[node - 1 : node - 1 + count], scales[node : node + count]
        s2, s3 = scales[node + 1 : node + 1 + count], scales[node + 2 : node + 2 + count]
        for k in range(count):
            s = w0 * s0[k] + w1 * s1[k] + w2 * s2[k] + w3 * s3[k]
            one[k] *= s
            two[k] *= s * s + square
        if (row + 1) % _AT_ONCE == 0 or row == rows - 1:
            for k in range(count):
                out[k] += nu * math.log(one[k]) - 0.5 * (nu + 1.0) * math.log(two[k])
                one[k] = two[k] = 1.0
