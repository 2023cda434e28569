"""Least squares and Student-t residuals on plain arrays; no other part of evband but `rows` is needed."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize
from scipy.special import digamma, gammaln

from evband.rivals.rows import inner_folds

SCALE_RIDGE = 1e-3  # of `fit_student`
LEAST_NU = 2.05
RIDGES = (1e-6, 1e-4, 1e-3, 1e-2, 3e-2)


def solve_ridge(r: np.ndarray, y: np.ndarray, ridge: float) -> np.ndarray:
    """Coefficients [K + 1], intercept last, of mean (y - r w - b)^2 + ridge var(y) |w|^2."""
    centre, mean = r.mean(0), float(y.mean())
    z = r - centre
    w = np.linalg.solve(z.T @ z / len(y) + ridge * np.eye(r.shape[1]), z.T @ (y - mean) / len(y))
    return np.append(w, mean - centre @ w)


def cross_fit(r: np.ndarray, y: np.ndarray, group: np.ndarray, seed: int = 0) -> tuple[float, np.ndarray]:
    """The ridge of smallest error on inner held-out trips, and the residuals [n] it left there."""
    best, chosen, left = np.inf, RIDGES[0], np.zeros_like(y)
    for ridge in RIDGES:
        residual = np.empty_like(y)
        for out in inner_folds(group, seed=seed):
            w = solve_ridge(r[~out], y[~out], ridge)
            residual[out] = y[out] - r[out] @ w[:-1] - w[-1]
        if (error := float(residual @ residual)) < best:
            best, chosen, left = error, ridge, residual
    return chosen, left


def linear(design: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """[n] what `solve_ridge` found, at other rows: its last weight is the intercept."""
    return np.asarray(design @ weights[:-1] + weights[-1])


def residual_scale(r: np.ndarray, theta: np.ndarray) -> np.ndarray:
    """[n] scale of the residual as `fit_student` found it on `scale_design`."""
    return np.asarray(np.exp(_log_scale(scale_design(r), theta)))


def _log_scale(design: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(design @ theta, -12, 12))


def scale_design(r: np.ndarray) -> np.ndarray:
    """[n, 1 + 2 K]: constant, terms and their sizes; noise differs between standstill, cruise and hard braking.

    Held within four standard deviations, since its exponential would run away beyond the training range.
    """
    held = np.clip(r, -4.0, 4.0)
    return np.concatenate([np.ones((len(r), 1)), held, np.abs(held)], 1)


def fit_student(design: np.ndarray, residual: np.ndarray) -> tuple[np.ndarray, float]:
    """Maximum likelihood of residual ~ s t_nu with log s = design theta, nu > 2: (theta, nu).

    nll = log s - lgamma((nu+1)/2) + lgamma(nu/2) + log(nu pi)/2 + (nu+1)/2 log(1 + (e/s)^2/nu), nu = LEAST_NU + exp(.).
    """

    def objective(p: np.ndarray) -> tuple[float, np.ndarray]:
        theta, nu = p[:-1], LEAST_NU + np.exp(p[-1])
        log_s = _log_scale(design, theta)
        u = (residual * np.exp(-log_s)) ** 2 / nu
        grown = np.log1p(u)
        nll = log_s - gammaln((nu + 1) / 2) + gammaln(nu / 2) + 0.5 * np.log(nu * np.pi) + (nu + 1) / 2 * grown
        by_log_s = 1 - (nu + 1) * u / (1 + u)
        by_nu = 0.5 * (digamma(nu / 2) - digamma((nu + 1) / 2) + 1 / nu + grown - (nu + 1) / nu * u / (1 + u))
        slope = np.append(
            design.T @ by_log_s / len(u) + SCALE_RIDGE * np.append(0.0, theta[1:]), by_nu.mean() * np.exp(p[-1])
        )
        return float(nll.mean() + 0.5 * SCALE_RIDGE * theta[1:] @ theta[1:]), slope

    first = np.zeros(design.shape[1] + 1)
    first[0] = np.log(np.median(np.abs(residual)) + 1e-6)
    first[-1] = np.log(2.0)
    bounds = [(None, None)] * design.shape[1] + [(np.log(0.01), np.log(200.0))]
    found = minimize(objective, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200})
    return found.x[:-1], float(LEAST_NU + np.exp(found.x[-1]))
