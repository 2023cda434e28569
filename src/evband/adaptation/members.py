"""The members' part in `evband adapt`: normal equations of their weights, with trips' own effects integrated out.

Members go through the rounds side by side, as many at once as `MOST_BYTES` hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.location import location
from evband.adaptation.scale import Offsets, ScalePrior
from evband.network.heads.base import SCALE_FLOOR
from evband.network.inference import softplus

Array = NDArray[np.float64]

CORRELATED, MOST_CORRELATED = 2.5, 15.0  # rows that count as one, at 1 Hz, once the trip's own effects are apart
LAGS = 30  # rows over which errors are compared
FARTHEST = 4.0  # scales that an error counts there
ROUNDS = 4  # of reweighting the Student-t's rows; all but the last on the thinned rows
EARLY, MANY_ROWS = 5, 400  # rows that are thinned to one, where there are many
THINNED = np.float32  # precision of thinned rows' tables: they only find the weights of the last round
FEWEST_ROWS = 30
EFFECTS = 3  # of a trip
NEXT_TRIP = 0.004  # variance of trips' effects before any trip is known, in units of their prior variance
NEXT_TRIP_COUNTS = 6.0  # trips that this counts as
MOST_BYTES = 4 << 20  # of the tables of members that go side by side: they stay in a cache
TINY = 1e-10  # of the mean information, where a direction has none


@dataclass(frozen=True)
class Evidence:
    """Rows with measured power, in standardised units, trip by trip."""

    r: Array  # [rows, roads]
    h: Any  # [members, rows, hidden] float32: an array, or a tensor on a GPU
    y: Array  # [rows]
    trip: NDArray[np.int64]  # [rows]
    moving: NDArray[np.bool_]  # [rows]
    effect: Array  # [rows, 3], z
    readings: Array  # [rows], of speed per second
    every: int = 1  # of the grid's rows, this one is here

    @property
    def states(self) -> NDArray[np.float32]:
        """h as an array."""
        return np.asarray(self.h if isinstance(self.h, np.ndarray) else self.h.cpu())

    @cached_property
    def groups(self) -> list[slice]:
        """The rows of each trip."""
        first = np.flatnonzero(np.diff(self.trip, prepend=self.trip[:1] - 1))
        return [slice(int(a), int(b)) for a, b in zip(first, [*first[1:], len(self.trip)], strict=True)]

    @cached_property
    def moving_rows(self) -> list[NDArray[np.int64]]:
        """Rows on the move of each trip that has enough of them: a parked car says nothing about the scale."""
        whole = [np.arange(group.start, group.stop) for group in self.groups]
        found = [group[self.moving[group]] for group in whole]
        return [group for group in found if len(group) * self.every >= FEWEST_ROWS]

    def of(self, rows: slice | NDArray[np.int64], every: int = 1) -> Evidence:
        """Some of the rows."""
        h = some_of(self.h, rows)
        return Evidence(
            self.r[rows], h, self.y[rows], self.trip[rows], self.moving[rows], self.effect[rows], self.readings[rows], every
        )  # fmt: skip

    @cached_property
    def thinned(self) -> Evidence:
        """One row in `EARLY`, where there are many: errors last as long, so it says nearly the same in less time."""
        if len(self.y) < MANY_ROWS:
            return self
        kept = [np.arange(group.start, group.stop, EARLY) for group in self.groups]
        return self.of(np.concatenate(kept), EARLY)


def some_of(h: Any, rows: Any) -> Any:
    """[members, some rows, hidden]: on the host, where a GPU has no memory left for them."""
    try:
        return h[:, rows]
    except RuntimeError:  # as torch.cuda.OutOfMemoryError is
        return h.cpu()[:, rows]


class _Trip(NamedTuple):
    """What the normal equations keep of a trip: of its effects b the posterior's parts, of every member."""

    covariance: Array  # [members, 3, 3]
    cross: Array  # [members, Q, 3], phi' W z
    moment: Array  # [members, 3], z' W (y - prior . phi)


@dataclass(frozen=True)
class Normal:
    """Information [members, Q, Q] and gain [members, Q] of weighted rows."""

    information: Array
    gain: Array
    trips: tuple[_Trip, ...]

    def step(self, precision: Array, more: Array | float = 0.0) -> Array:
        """[members, Q]: how far the weights move from their prior."""
        return np.asarray(np.linalg.solve(self.information + precision, (self.gain + more)[..., None])[..., 0])

    def drawn(self, precision: Array, noise: Array) -> Array:
        """The same with perturbed data: a draw from the posterior where the prior's weights are one from the prior."""
        size = self.gain.shape[1]
        tiny = TINY * np.trace(self.information, axis1=1, axis2=2) / size + 1e-30
        root = np.linalg.cholesky(self.information + tiny[:, None, None] * np.eye(size))
        return self.step(precision, _times(root, noise))


class Members:
    """Some members' view of the rows."""

    def __init__(
        self, rows: Evidence, some: slice, views: dict[str, Any], neutral: NDArray[np.float32], nu: Array
    ) -> None:
        self.groups, self.moving, self.every = rows.groups, rows.moving_rows, rows.every
        self.nu = nu[some, None]
        self.prior = location(views, some)
        roads, size = rows.r.shape[1], self.prior.shape[1]
        shape, exact = (len(self.prior), len(rows.y), size + EFFECTS + 1), rows.every == 1
        table = np.empty(shape, np.float64 if exact else THINNED)  # phi, z and the error of the prior's weights
        table[..., :roads], table[..., roads:size], table[..., size:-1] = rows.r, rows.states[some], rows.effect
        table[..., -1] = rows.y - views["head_b"][some, :1] - _times(table[..., :size], self.prior)
        self.table, self.size = table, size
        self.raw = _times(table[..., roads:size], views["head_w"][some, 1].astype(float)) + neutral[some, None]

    def reweighted(self, error: Array, scale: ScalePrior) -> tuple[Normal, Offsets]:
        """One round: the offset of the log scale given the last errors, and the normal equations of Student-t's rows."""
        offsets = scale.posterior(self.raw, error, self.nu[:, 0], self.moving, self.every)
        s = softplus(self.raw + offsets.likeliest[:, None]) + SCALE_FLOOR
        count = max(1.0, self.correlated(error / s) / self.every)
        return self.normal((self.nu + 1) / (self.nu * s**2 + error**2) / count), offsets

    def correlated(self, error: Array) -> float:
        """Rows of the grid that count as one: 1 + 2 times the sum of the autocorrelations within trips."""
        from scipy.fft import irfft, next_fast_len, rfft  # only adapting needs them: loading a model is quick

        error, lags = np.clip(error, -FARTHEST, FARTHEST), LAGS // self.every + 1
        sums = np.zeros(lags)
        for rows in self.groups:
            size = next_fast_len(rows.stop - rows.start + lags, real=True)
            wave = rfft(error[:, rows] - error[:, rows].mean(1, keepdims=True), size)
            sums += irfft((wave.real**2 + wave.imag**2).sum(0), size)[:lags]
        found = self.every * (1.0 + 2.0 * float(sums[1:].sum()) / max(float(sums[0]), 1e-12))
        return float(np.clip(found, CORRELATED, MOST_CORRELATED))

    def normal(self, weight: Array) -> Normal:
        """One product of the table with itself per member and trip holds every term."""
        size = self.size
        gram = np.empty((len(self.groups), len(self.table), size + EFFECTS + 1, size + EFFECTS + 1), self.table.dtype)
        scaled = np.empty(self.table.shape[1:], self.table.dtype)
        for m, (table, root) in enumerate(zip(self.table, np.sqrt(weight).astype(scaled.dtype), strict=True)):
            np.multiply(table, root[:, None], out=scaled)
            for g, rows in enumerate(self.groups):
                np.matmul(scaled[rows].T, scaled[rows], out=gram[g, m])
        gram = gram.astype(float, copy=False)
        cross, moment = gram[..., :size, size:-1], gram[..., size:-1, -1]
        covariance = np.asarray(np.linalg.inv(gram[..., size:-1, size:-1] + np.eye(EFFECTS)), np.float64)
        half = cross @ covariance
        information = (gram[..., :size, :size] - half @ np.swapaxes(cross, -1, -2)).sum(0)
        gain = (gram[..., :size, -1] - _times(half, moment)).sum(0)
        return Normal(
            (information + np.swapaxes(information, 1, 2)) / 2, gain, tuple(map(_Trip, covariance, cross, moment))
        )

    def errors(self, normal: Normal, precision: Array) -> tuple[Array, Array]:
        """After a step: errors [members, rows] without the trips' own effects, and these, [trips, members, 3]."""
        step = normal.step(precision)
        error, effects = np.empty(self.table.shape[:2]), np.empty((len(self.groups), len(step), EFFECTS))
        for rows, (covariance, cross, moment), effect in zip(self.groups, normal.trips, effects, strict=True):
            effect[:] = _times(covariance, moment - _times(np.swapaxes(cross, 1, 2), step))
            moved = np.concatenate([-step, -effect, np.ones((len(step), 1))], 1)
            error[:, rows] = _times(self.table[:, rows], moved)
        return error, effects

    def ahead(self, error: Array, effects: Array, known: int) -> Array:
        """Errors as large as those of the next trip, whose effects are its own, where `known` trips were learned from before."""
        variance = of_next(effects.sum(0), (effects**2).sum(0), len(effects), known)
        more = _times(self.table[..., self.size : -1] ** 2, variance)
        return np.asarray(np.copysign(np.sqrt(error**2 + more), error))


def of_next(total: Any, squares: Any, count: Any, known: Any) -> Any:
    """Variance v of trips' effects about their mean, from the sums of n new effects b and of b^2, m trips known before:

        v = (k t + sum b^2 - (sum b)^2 / (n + m)) / (k + n - [m = 0])

    Effects count from the mean of the earlier trips, which is off by v/m: E sum b^2 = n v (1 + 1/m), E (sum b)^2 =
    n v (1 + n/m), so that n v is left. With none before, the mean is the new trips' own. A prior t counts as k trips.
    """
    freedom = count - 1.0 * (known == 0)  # of the GPU's tensors, too, which subtract no booleans
    return (NEXT_TRIP_COUNTS * NEXT_TRIP + squares - total**2 / (count + known)) / (NEXT_TRIP_COUNTS + freedom)


def _times(matrices: Array, vectors: Array) -> Array:
    """Products of stacked matrices with vectors."""
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def together(members: int, rows: int, width: int) -> Iterator[slice]:
    """Members that go side by side."""
    most = max(1, MOST_BYTES // (8 * max(1, rows) * width))
    for first in range(0, members, most):
        yield slice(first, min(first + most, members))
