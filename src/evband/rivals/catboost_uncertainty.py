"""CatBoost with uncertainty: boosted mean and variance, and a virtual ensemble for what the model does not know."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from evband.bands.bands import needed_stretch
from evband.bands.mixtures import GaussianMixture
from evband.errors import require
from evband.rivals.base import Rival, known
from evband.rivals.rows import Rows, inner_folds, lagged

TRIED = ((4, False), (6, False), (4, True))  # depth, with lags
MOST_TREES = 1000
VIRTUAL = 10


class CatBoost(Rival):
    """`RMSEWithUncertainty` with posterior sampling (Malinin et al. 2021); the band is stretched to cover held-out trips, on
    which depth, trees and whether it sees the past are chosen, too. A faster rate scored worse."""

    def fit_rows(self, rows: Rows) -> Self:
        mask = known(rows)
        y = rows.y[mask]
        out = inner_folds(rows.group[mask], seed=self.seed)[0]
        best = np.inf
        for depth, lags in TRIED:
            x = _design(rows, lags)[mask]
            model = self._model(depth, MOST_TREES)
            model.fit(x[~out], y[~out], eval_set=(x[out], y[out]), early_stopping_rounds=50, use_best_model=True)
            if (score := float(model.best_score_["validation"]["RMSEWithUncertainty"])) < best:
                best, self.depth_, self.lags_ = score, depth, lags
                self.trees_ = max(int(model.tree_count_), 2 * VIRTUAL)
                self.stretch_ = _stretch(_mixture(model, x[out]), y[out])
        self.model_ = self._model(self.depth_, self.trees_).fit(_design(rows, self.lags_)[mask], y)
        return self

    def _model(self, depth: int, trees: int) -> Any:
        catboost = require("catboost", "CatBoost")
        return catboost.CatBoostRegressor(
            loss_function="RMSEWithUncertainty",
            posterior_sampling=True,
            depth=depth,
            iterations=trees,
            learning_rate=0.03,
            random_seed=self.seed,
            thread_count=1,
            allow_writing_files=False,
            verbose=False,
        )

    def predict_rows(self, rows: Rows) -> GaussianMixture:
        return _mixture(self.model_, _design(rows, self.lags_)).stretched(self.stretch_)


def _design(rows: Rows, lags: bool) -> np.ndarray:
    return lagged(rows) if lags else rows.plain


def _mixture(model: Any, x: np.ndarray) -> GaussianMixture:
    """The virtual ensemble [members, n] as a mixture of Gaussians."""
    found = model.virtual_ensembles_predict(x, prediction_type="VirtEnsembles", virtual_ensembles_count=VIRTUAL)
    return GaussianMixture(found[:, :, 0].T, np.sqrt(np.maximum(found[:, :, 1].T, 1e-8)))


def _stretch(mixture: GaussianMixture, y: np.ndarray) -> float:
    """Factor about the mean with which the 90 % band covers 90 % of held-out rows."""
    return float(np.quantile(needed_stretch(y, mixture.mean, mixture.quantile(0.05), mixture.quantile(0.95)), 0.9))
