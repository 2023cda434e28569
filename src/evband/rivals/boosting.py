"""Gradient boosting as a distribution, alone and on top of least squares."""

from __future__ import annotations

from typing import Self

import numpy as np

from evband.bands.quantile_sets import LEVELS, QuantileSet
from evband.rivals.base import Rival, known
from evband.rivals.quantile_boosting import BoostedQuantiles
from evband.rivals.rows import Rows, lagged
from evband.rivals.student import cross_fit, linear, solve_ridge


class Boosting(Rival):
    """Boosting on channels and road-load terms of the moment."""

    def fit_rows(self, rows: Rows) -> Self:
        mask = known(rows)
        self.booster_ = BoostedQuantiles(self.seed).fit(rows.plain[mask], rows.y[mask], rows.group[mask])
        return self

    def predict_rows(self, rows: Rows) -> QuantileSet:
        mean, q = self.booster_.predict(rows.plain)
        return _stretched(mean, q, self.booster_.stretch_)


class ResidualBoosting(Rival):
    """Least squares with hinges, and boosting of its residual with lags: the strongest simple rival."""

    hinges = True

    def fit_rows(self, rows: Rows) -> Self:
        mask = known(rows)
        x, taught = lagged(rows)[mask], rows.take(mask)
        ridge, _ = cross_fit(taught.r, taught.y, taught.group, self.seed)
        self.weights_ = solve_ridge(taught.r, taught.y, ridge)
        self.booster_ = BoostedQuantiles(self.seed).fit(x, taught.y - linear(taught.r, self.weights_), taught.group)
        return self

    def predict_rows(self, rows: Rows) -> QuantileSet:
        mean, q = self.booster_.predict(lagged(rows))
        base = linear(rows.r, self.weights_)
        return _stretched(base + mean, base + q, self.booster_.stretch_)


def _stretched(mean: np.ndarray, q: np.ndarray, factor: float) -> QuantileSet:
    """Quantiles stretched about their median; the mean is that of the squared-error model."""
    q = np.sort(q, 0)
    middle = q[len(LEVELS) // 2]
    return QuantileSet((middle + factor * (q - middle))[None], centre=mean[None])
