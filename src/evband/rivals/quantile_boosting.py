"""Boosting as a distribution on plain arrays: 19 quantile models and one of squared error for the mean."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from evband.network import heads
from evband.network.quantiles import pinball
from evband.rivals.rows import inner_folds

LEVELS = np.array(heads.quantile.LEVELS)
MOST_TREES = 120
TRIED = (  # leaves, smallest leaf, rate
    {"max_leaf_nodes": 31, "min_samples_leaf": 20, "learning_rate": 0.1},
    {"max_leaf_nodes": 15, "min_samples_leaf": 100, "learning_rate": 0.1},
)
_TAIL = (0.05, 0.5, 0.95)  # levels on which the quantile models' trees are counted and their band is stretched


def _booster(loss: str, level: float | None, trees: int, setting: dict[str, Any], seed: int) -> Any:
    return HistGradientBoostingRegressor(
        loss=loss, quantile=level, max_iter=trees, early_stopping=False, random_state=seed, **setting
    )


class BoostedQuantiles:
    """Numerics of both boosting rivals: tuned on inner held-out trips, trees counted there as well."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def fit(self, x: np.ndarray, y: np.ndarray, group: np.ndarray) -> Self:
        """Tune, then fit the mean and 19 quantiles on all rows."""
        outs = inner_folds(group, seed=self.seed)[:1]  # a third of the trips: 25 fits instead of 60
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
        self.stretch_ = stretch(np.concatenate([y[out] for out in outs]), low, middle, high)
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
        """Held-out error after each tree [trees], and the held-out predictions [trees, held-out rows]."""
        parts = []
        for out in outs:
            model = _booster(loss, level, MOST_TREES, setting, self.seed).fit(x[~out], y[~out])
            parts.append(np.stack([p.astype(np.float32) for p in model.staged_predict(x[out])]))
        staged, target = np.concatenate(parts, 1), np.concatenate([y[out] for out in outs])
        if level is None:
            errors = np.array([np.mean((target - predicted) ** 2) for predicted in staged])
        else:
            errors = np.array([pinball(target - predicted, level).mean() for predicted in staged])
        return errors, staged

    def predict(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(mean [n], quantiles [19, n])."""
        return self.mean_.predict(x), np.stack([model.predict(x) for model in self.quantiles_])


def stretch(y: np.ndarray, low: np.ndarray, middle: np.ndarray, high: np.ndarray) -> float:
    """Factor about the median with which held-out [low, high] have the least pinball loss.

    Not the factor that reaches 90 % coverage: where inner folds hold out speeds never seen (a motorway cycle on a
    dynamometer), that one would widen every row tenfold and spoil the rival's CRPS.
    """
    factors = np.geomspace(0.5, 4.0, 61)

    def loss(k: float) -> float:
        ends = zip((low, high), (_TAIL[0], _TAIL[-1]), strict=True)
        return sum(float(pinball(y - (middle + k * (end - middle)), p).mean()) for end, p in ends)

    return float(min(factors, key=loss))
