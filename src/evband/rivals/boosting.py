"""Gradient boosting as a distribution: 19 quantile models and one of squared error for the mean."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from evband.quantile_sets import LEVELS, QuantileSet
from evband.rivals.base import Rival, known
from evband.rivals.least_squares import cross_fit, solve_ridge
from evband.rivals.rows import Rows, inner_folds, lagged

MOST_TREES = 300
TRIED = (  # leaves, smallest leaf, rate
    {"max_leaf_nodes": 31, "min_samples_leaf": 20, "learning_rate": 0.1},
    {"max_leaf_nodes": 15, "min_samples_leaf": 100, "learning_rate": 0.1},
    {"max_leaf_nodes": 63, "min_samples_leaf": 200, "learning_rate": 0.05},
)
_TAIL = (0.05, 0.5, 0.95)  # levels on which the quantile models' trees are counted and their band is stretched


def _booster(loss: str, level: float | None, trees: int, setting: dict[str, Any], seed: int) -> Any:
    return HistGradientBoostingRegressor(
        loss=loss, quantile=level, max_iter=trees, early_stopping=False, random_state=seed, **setting
    )


def pinball(y: np.ndarray, q: np.ndarray, level: float) -> float:
    """Mean of max(level (y - q), (level - 1)(y - q))."""
    e = y - q
    return float(np.mean(np.maximum(level * e, (level - 1) * e)))


class BoostedQuantiles:
    """Numerics of both boosting rivals: tuned on inner held-out trips, trees counted there as well."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, x: np.ndarray, y: np.ndarray, group: np.ndarray) -> Self:
        """Tune, then fit the mean and 19 quantiles on all rows."""
        outs = inner_folds(group, seed=self.seed)
        paths = [self._errors(x, y, outs, "squared_error", None, setting)[0] for setting in TRIED]
        self.setting_ = TRIED[int(np.argmin([path.min() for path in paths]))]
        trees = 1 + int(np.argmin(min(paths, key=np.min)))
        self.mean_ = _booster("squared_error", None, trees, self.setting_, self.seed).fit(x, y)

        staged = {p: self._errors(x, y, outs, "quantile", p, self.setting_) for p in _TAIL}
        best = {p: 1 + int(np.argmin(path)) for p, (path, _) in staged.items()}
        counts = np.interp(LEVELS, _TAIL, [best[p] for p in _TAIL]).round().astype(int)
        self.quantiles_ = [
            _booster("quantile", float(p), int(n), self.setting_, self.seed).fit(x, y)
            for p, n in zip(LEVELS, counts, strict=True)
        ]
        low, middle, high = (staged[p][1][best[p] - 1] for p in _TAIL)
        self.stretch_ = stretch(y, low, middle, high)
        return self

    def _errors(
        self,
        x: np.ndarray,
        y: np.ndarray,
        outs: list[np.ndarray],
        loss: str,
        level: float | None,
        setting: dict[str, Any],
    ) -> tuple[np.ndarray, np.ndarray]:
        """Held-out error after each tree [trees], and the held-out predictions [trees, n]."""
        staged = np.empty((MOST_TREES, len(y)), dtype=np.float32)
        for out in outs:
            model = _booster(loss, level, MOST_TREES, setting, self.seed).fit(x[~out], y[~out])
            for stage, predicted in enumerate(model.staged_predict(x[out])):
                staged[stage, out] = predicted
        if level is None:
            errors = np.array([np.mean((y - predicted) ** 2) for predicted in staged])
        else:
            errors = np.array([pinball(y, predicted, level) for predicted in staged])
        return errors, staged

    def predict(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(mean [n], quantiles [19, n])."""
        return self.mean_.predict(x), np.stack([model.predict(x) for model in self.quantiles_])


def stretch(y: np.ndarray, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> float:
    """Factor that makes cross-fitted [low, high] cover 90 % of rows when stretched about the median."""
    above, below = np.maximum(high - middle, 1e-3), np.maximum(middle - low, 1e-3)
    return float(np.quantile(np.where(y > middle, (y - middle) / above, (middle - y) / below), 0.9))


class Boosting(Rival):
    """Boosting on channels and road-load terms of the moment."""

    def fit_rows(self, rows: Rows) -> Self:
        mask = known(rows)
        self.booster_ = BoostedQuantiles(self.seed).fit(self._design(rows)[mask], rows.y[mask], rows.group[mask])
        return self

    def predict_rows(self, rows: Rows) -> QuantileSet:
        mean, q = self.booster_.predict(self._design(rows))
        return _stretched(mean, q, self.booster_.stretch_)

    def _design(self, rows: Rows) -> np.ndarray:
        return rows.plain


class ResidualBoosting(Rival):
    """Least squares with hinges, and boosting of its residual with lags: the strongest simple rival."""

    hinges = True

    def fit_rows(self, rows: Rows) -> Self:
        mask = known(rows)
        x, taught = lagged(rows)[mask], rows.take(mask)
        ridge, _ = cross_fit(taught.r, taught.y, taught.group, self.seed)
        self.weights_ = solve_ridge(taught.r, taught.y, ridge)
        self.booster_ = BoostedQuantiles(self.seed).fit(x, taught.y - self._base(taught), taught.group)
        return self

    def predict_rows(self, rows: Rows) -> QuantileSet:
        mean, q = self.booster_.predict(lagged(rows))
        base = self._base(rows)
        return _stretched(base + mean, base + q, self.booster_.stretch_)

    def _base(self, rows: Rows) -> np.ndarray:
        return np.asarray(rows.r @ self.weights_[:-1] + self.weights_[-1])


def _stretched(mean: np.ndarray, q: np.ndarray, factor: float) -> QuantileSet:
    """Quantiles stretched about their median; the mean is that of the squared-error model."""
    q = np.sort(q, 0)
    middle = q[len(LEVELS) // 2]
    return QuantileSet((middle + factor * (q - middle))[None], centre=mean[None])
