"""What a rival learns from: plain arrays, so that the numerics run where little else is installed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from evband.features.folds import balanced
from evband.features.rows import age

LAGS_S = (1, 2, 3, 5, 10)
MEANS_S = (10, 30, 120)
AGE_LIMIT_S = 1200.0  # a car is warm by then


@dataclass(frozen=True)
class Rows:
    """Rows of several trips, one after the other."""

    x: np.ndarray  # [n, F] scaled inputs
    r: np.ndarray  # [n, K] standardised road-load features, hinges last
    y: np.ndarray  # [n] kW, nan where not measured
    group: np.ndarray  # [n] number of the trip
    start: np.ndarray  # [n] bool: a trip's start or a gap
    terms: int  # how many columns of r come before the hinges
    hz: float

    def __len__(self) -> int:
        return len(self.y)

    def take(self, which: np.ndarray) -> Self:
        """Some rows; only whole segments keep their lags, so take before or after, not between."""
        return type(self)(
            self.x[which], self.r[which], self.y[which], self.group[which], self.start[which], self.terms, self.hz
        )

    @property
    def plain(self) -> np.ndarray:
        """[n, F + terms]: inputs and road-load terms without hinges, what trees need no help beyond."""
        return np.concatenate([self.x, self.r[:, : self.terms]], 1)


def lagged(rows: Rows) -> np.ndarray:
    """`rows.plain` with the past beside it: values 1 to 10 s ago, means over 10 s to 2 min, time since the start.

    What lies before a start is unknown (nan), never another drive's.
    """
    now, since = rows.plain, age(rows.start)
    columns = [now, np.minimum(since / rows.hz, AGE_LIMIT_S)[:, None]]
    for lag in sorted({max(1, round(s * rows.hz)) for s in LAGS_S}):
        past = np.full_like(rows.x, np.nan)
        past[lag:] = rows.x[:-lag]
        past[since < lag] = np.nan
        columns.append(past)
    total = np.concatenate([np.zeros((1, now.shape[1])), np.cumsum(now, 0, dtype=float)])
    at = np.arange(len(now))
    for span in sorted({max(2, round(s * rows.hz)) for s in MEANS_S}):
        first = np.maximum(at - span + 1, at - since)
        columns.append((total[at + 1] - total[first]) / (at + 1 - first)[:, None])
    return np.concatenate(columns, 1).astype(np.float32)


def inner_folds(group: np.ndarray, folds: int = 3, seed: int = 0) -> list[np.ndarray]:
    """Masks [n] of the rows held out in turn: whole trips, dealt out so that every fold has about as many rows.

    A single trip is cut in time instead.
    """
    _, which, counts = np.unique(group, return_inverse=True, return_counts=True)
    if len(counts) == 1:
        part = np.minimum(np.arange(len(group)) * folds // len(group), folds - 1)
        return [part == k for k in range(folds)]
    order = np.random.default_rng(seed).permutation(len(counts))
    fold = np.empty_like(order)
    fold[order] = balanced(counts[order], folds)
    return [fold[which] == k for k in range(min(folds, len(counts)))]
