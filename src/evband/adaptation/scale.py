"""How noisy a car's log is: the offset of the log scale, as a density over a grid.

Each trip has a level of its own about its car's, with a deviation that cars differ in (one of `TRIP_SCALE_SDS`, chosen on
simulated cars 40,000 to 40,079 of `benchmarks.fleet.simulated` with an eye on nine measured ones; the least of them on
the very cars of `benchmarks.fleet.quality`). The likelihood of the grid is the slowest step of
`adapt`, so it is compiled, and softplus is read from a table whose nodes lie as far apart as the grid's: then all
offsets of a row lie alike between nodes, and four weights (cubic Lagrange, error under 2e-8) serve them all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evband.compiled import compiled, unchecked
from evband.network.heads.base import SCALE_FLOOR
from evband.network.inference import softplus

Array = NDArray[np.float64]

DIGITS = 9  # of moments that are kept
SCALE_CORRELATED = 10.0  # rows that count as one, at 1 Hz
TRIP_SCALE_SDS = np.array([0.05, 0.1, 0.2, 0.4])  # of the log scale, from trip to trip; a car's is any of them alike
OFFSETS = np.linspace(-3.0, 3.0, 121)  # of the log scale
_SD = TRIP_SCALE_SDS[:, None, None]
# [deviations, car's level, trip's level], a density of the latter but for a constant
NEAR = np.exp(-((OFFSETS[:, None] - OFFSETS) ** 2) / (2 * _SD**2)) / _SD
_ABOUT = NEAR.reshape(-1, len(OFFSETS)).T.copy()  # [trip's level, deviations x car's level]

_STEP = 0.05
_FIRST, _NODES = -40.0, 2400  # softplus from -40 to 80
_SCALES = softplus(_FIRST + _STEP * np.arange(_NODES)) + SCALE_FLOOR
_AT_ONCE = 32  # rows whose factors are multiplied before their powers of two are counted apart: logarithms are dear
_LOG_2 = math.log(2.0)
SQUARE = 1e8  # squared errors in standardised units: no product of `_AT_ONCE` leaves the range of a float


@dataclass(frozen=True)
class Offsets:
    """What members know of the offset: densities [members, deviations, offsets] over `TRIP_SCALE_SDS` and `OFFSETS`."""

    both: Array

    @property
    def density(self) -> Array:
        """[members, offsets]"""
        return np.asarray(self.both.sum(1))

    def of_a_trip(self, ranks: Array) -> Array:
        """[members], each member's quantile of the next trip's level, which has a level of its own."""
        blurred = self.both.reshape(len(self.both), -1) @ NEAR.reshape(-1, len(OFFSETS))
        summed = np.cumsum(blurred / blurred.sum(1, keepdims=True), 1)
        return np.array([np.interp(rank, one, OFFSETS) for rank, one in zip(ranks, summed, strict=True)])

    @property
    def likeliest(self) -> Array:
        return np.asarray(OFFSETS[self.density.argmax(1)])

    @property
    def moments(self) -> tuple[float, float]:
        """Of all members together; the last digits depend on how many threads multiply, so they are not kept."""
        density = self.density.mean(0)
        mean = float(density @ OFFSETS)
        return round(mean, DIGITS), round(max(0.05, float(density @ (OFFSETS - mean) ** 2) ** 0.5), DIGITS)


@dataclass(frozen=True)
class ScalePrior:
    """Of the offset over cars, or what earlier logs left of it."""

    mean: float
    sd: float

    def posterior(
        self, raw: Array, error: Array, nu: Array, trips: Sequence[NDArray[np.int64]], every: int = 1
    ) -> Offsets:
        """Given errors [members, rows] of these rows of each trip, every so manieth of its own: trips are draws about the
        car's level."""
        prior = -((OFFSETS - self.mean) ** 2) / (2 * self.sd**2)
        log = np.tile(prior, (len(raw), len(TRIP_SCALE_SDS), 1))
        for rows in trips:
            fit = np.zeros((len(raw), len(OFFSETS)))
            add_log_likelihood(raw, error, nu, rows, _SCALES, fit)
            fit *= every / SCALE_CORRELATED
            log += np.log((np.exp(fit - fit.max(1, keepdims=True)) @ _ABOUT).reshape(log.shape) + 1e-300)
        density = np.exp(log - log.max((1, 2), keepdims=True))
        return Offsets(density / density.sum((1, 2), keepdims=True))


def ranks_of(offsets: Array) -> Array:
    """Where members stand among each other, 0 to 1: one that was drawn as a noisy log stays one of the noisy ones."""
    order = np.argsort(np.argsort(offsets))
    return np.asarray((order + 0.5) / len(offsets))


@compiled(fastmath=True, error_model="numpy", boundscheck=False)
def add_log_likelihood(raw: Array, error: Array, nu: Array, rows: NDArray[np.int64], scales: Array, out: Array) -> None:
    """out[m, k] += sum over rows of the log density of a Student-t, s = softplus(raw + OFFSETS[k]) + SCALE_FLOOR.

    But for a constant it is  nu log s - (nu + 1)/2 log(s^2 + e^2 / nu).
    """
    members, count = out.shape
    one, two = np.ones(count), np.ones(count)
    powers = np.zeros((2, count), np.int64)
    for m in range(members):
        total = out[m]
        for number in range(len(rows)):
            row = rows[number]
            place = (raw[m, row] - 3.0 - _FIRST) / _STEP
            place = min(max(place, 1.0), float(_NODES - count - 3))
            node = int(place)
            f = place - node
            w0, w1 = -f * (f - 1.0) * (f - 2.0) / 6.0, (f + 1.0) * (f - 1.0) * (f - 2.0) / 2.0
            w2, w3 = -(f + 1.0) * f * (f - 2.0) / 2.0, (f + 1.0) * f * (f - 1.0) / 6.0
            square = min(error[m, row] * error[m, row], SQUARE) / nu[m]
            s0, s1 = scales[node - 1 : node - 1 + count], scales[node : node + count]
            s2, s3 = scales[node + 1 : node + 1 + count], scales[node + 2 : node + 2 + count]
            for k in range(count):
                s = w0 * s0[k] + w1 * s1[k] + w2 * s2[k] + w3 * s3[k]
                one[k] *= s
                two[k] *= s * s + square
            if (number + 1) % _AT_ONCE == 0:
                take_powers(one.view(np.int64), powers[0])
                take_powers(two.view(np.int64), powers[1])
        for k in range(count):
            first, second = math.log(one[k]) + _LOG_2 * powers[0, k], math.log(two[k]) + _LOG_2 * powers[1, k]
            total[k] += nu[m] * first - 0.5 * (nu[m] + 1.0) * second
            one[k] = two[k] = 1.0
            powers[:, k] = 0


@unchecked
def take_powers(bits: NDArray[np.int64], powers: NDArray[np.int64]) -> None:
    """Move the powers of two of positive floats, given as their bits, into `powers`: 1 to 2 is left of each."""
    for k in range(len(bits)):
        powers[k] += (bits[k] >> 52) - 1023
        bits[k] = bits[k] & ((1 << 52) - 1) | (1023 << 52)
