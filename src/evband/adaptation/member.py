"""One member's part in `evband adapt`: the normal equations of its weights, with trips' own effects integrated out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.scale import Offsets, ScalePrior
from evband.network.heads.base import SCALE_FLOOR
from evband.network.inference import softplus

Array = NDArray[np.float64]

CORRELATED = 5.0  # rows that count as one, at 1 Hz, once the trip's own effects are apart
ROUNDS = 4  # of reweighting the Student-t's rows; all but the last on the thinned rows
EARLY, MANY_ROWS = 3, 300  # rows that are thinned to one, where there are many
FEWEST_ROWS = 30
EFFECTS = 3  # of a trip
TINY = 1e-10  # of the mean information, where a direction has none


@dataclass(frozen=True)
class Evidence:
    """Rows with measured power, in standardised units, trip by trip."""

    r: Array  # [rows, roads]
    h: NDArray[np.float32]  # [members, rows, hidden]
    y: Array  # [rows]
    trip: NDArray[np.int64]  # [rows]
    moving: NDArray[np.bool_]  # [rows]
    effect: Array  # [rows, 3], z
    every: int = 1  # of the grid's rows, this one is here

    @property
    def groups(self) -> list[slice]:
        """The rows of each trip."""
        first = np.flatnonzero(np.diff(self.trip, prepend=self.trip[:1] - 1))
        return [slice(int(a), int(b)) for a, b in zip(first, [*first[1:], len(self.trip)], strict=True)]

    @property
    def moving_rows(self) -> list[NDArray[np.int64]]:
        """Rows on the move of each trip that has enough of them: a parked car tells nothing of the scale."""
        whole = [np.arange(group.start, group.stop) for group in self.groups]
        found = [group[self.moving[group]] for group in whole]
        return [group for group in found if len(group) * self.every >= FEWEST_ROWS] or whole

    def of(self, rows: slice | NDArray[np.int64], every: int = 1) -> Evidence:
        """Some of the rows."""
        return Evidence(
            self.r[rows], self.h[:, rows], self.y[rows], self.trip[rows], self.moving[rows], self.effect[rows], every
        )

    @property
    def thinned(self) -> Evidence:
        """Every third row, where there are many: errors last longer, so it says nearly the same for a third of the time."""
        if len(self.y) < MANY_ROWS:
            return self
        kept = [np.arange(group.start, group.stop, EARLY) for group in self.groups]
        return self.of(np.concatenate(kept), EARLY)


class _Trip(NamedTuple):
    """What the normal equations keep of a trip: of its effects b the posterior's parts."""

    covariance: Array  # [3, 3]
    cross: Array  # [Q, 3], phi' W z
    moment: Array  # [3], z' W (y - prior . phi)


@dataclass(frozen=True)
class Normal:
    """Information [Q, Q] and gain [Q] of weighted rows."""

    information: Array
    gain: Array
    trips: tuple[_Trip, ...]

    def step(self, precision: Array) -> Array:
        """How far the weights move from their prior."""
        return np.asarray(np.linalg.solve(self.information + precision, self.gain))

    def drawn(self, precision: Array, rng: np.random.Generator) -> Array:
        """The same with perturbed data: a draw from the posterior where the prior's weights are one from the prior."""
        size = len(self.gain)
        tiny = TINY * np.trace(self.information) / size + 1e-30
        root = np.linalg.cholesky(self.information + tiny * np.eye(size))
        perturbed = self.gain + root @ rng.standard_normal(size)
        return np.asarray(np.linalg.solve(self.information + precision, perturbed))


class Member:
    """One member's view of the rows."""

    def __init__(self, rows: Evidence, m: int, views: dict[str, Any], neutral: float, nu: float) -> None:
        self.nu, self.groups, self.correlated = nu, rows.groups, CORRELATED / rows.every
        self.prior = np.concatenate([views["road_w"][m], views["head_w"][m, 0]]).astype(float)
        roads, size = rows.r.shape[1], len(self.prior)
        table = np.empty((len(rows.y), size + EFFECTS + 1))  # phi, z and the error of the prior's weights
        table[:, :roads], table[:, roads:size], table[:, size:-1] = rows.r, rows.h[m], rows.effect
        table[:, -1] = rows.y - float(views["head_b"][m, 0]) - table[:, :size] @ self.prior
        self.table, self.size = table, size
        self.raw = table[:, roads:size] @ views["head_w"][m, 1].astype(float) + neutral

    def reweighted(self, error: Array, scale: ScalePrior, moving: list[NDArray[np.int64]]) -> tuple[Normal, Offsets]:
        """One round: the offset of the log scale given the last errors, and the normal equations of a Student-t's rows."""
        offsets = scale.posterior(self.raw, error, self.nu, moving)
        s = softplus(self.raw + offsets.likeliest) + SCALE_FLOOR
        return self.normal((self.nu + 1) / (self.nu * s**2 + error**2) / self.correlated), offsets

    def normal(self, weight: Array) -> Normal:
        """One product of the table with itself per trip holds every term."""
        size = self.size
        information, gain, trips = np.zeros((size, size)), np.zeros(size), []
        scaled = self.table * np.sqrt(weight)[:, None]
        for rows in self.groups:
            gram = scaled[rows].T @ scaled[rows]
            cross, moment = gram[:size, size:-1], gram[size:-1, -1]
            covariance = np.asarray(np.linalg.inv(gram[size:-1, size:-1] + np.eye(EFFECTS)), np.float64)
            half = cross @ covariance
            information += gram[:size, :size] - half @ cross.T
            gain += gram[:size, -1] - half @ moment
            trips.append(_Trip(covariance, cross, moment))
        return Normal((information + information.T) / 2, gain, tuple(trips))

    def errors(self, normal: Normal, precision: Array) -> Array:
        """Of every row after a step, the trip's own effects apart."""
        step = normal.step(precision)
        error = np.empty(len(self.table))
        for rows, (covariance, cross, moment) in zip(self.groups, normal.trips, strict=True):
            effects = covariance @ (moment - cross.T @ step)
            error[rows] = self.table[rows] @ np.concatenate([-step, -effects, [1.0]])
        return error
