"""Least squares on the road-load features with Student-t residuals: a dozen coefficients that are hard to beat."""

from __future__ import annotations

from typing import Self

import numpy as np

from evband.bands.mixtures import StudentMixture
from evband.rivals.base import Rival, known
from evband.rivals.rows import Rows
from evband.rivals.student import cross_fit, fit_student, linear, residual_scale, scale_design, solve_ridge


class LeastSquares(Rival):
    """Road-load least squares; ridge, residual scale and nu come from cross-fitted residuals of whole trips."""

    def __init__(
        self, hinges: bool = False, features: str = "auto", hz: float = 1.0, seed: int = 0, ours: bool = True
    ) -> None:
        super().__init__(features, hz, seed, ours)
        self.hinges = hinges

    def fit_rows(self, rows: Rows) -> Self:
        rows = rows.take(known(rows))
        self.ridge_, residual = cross_fit(rows.r, rows.y, rows.group, self.seed)
        self.weights_ = solve_ridge(rows.r, rows.y, self.ridge_)
        self.scale_, self.nu_ = fit_student(scale_design(rows.r[:, : rows.terms]), residual)
        return self

    def predict_rows(self, rows: Rows) -> StudentMixture:
        mu, s = linear(rows.r, self.weights_), residual_scale(rows.r[:, : rows.terms], self.scale_)
        return StudentMixture(mu[None], s[None], np.array([self.nu_]))
