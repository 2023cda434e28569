"""Every metric: one small function each, with its formula and where it comes from. All power is in kW.

e = measured - mean, l and u are the band's ends at a level, F and f the predictive CDF and density.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]
CALIBRATION_LEVELS: Array = np.arange(1, 20) / 20  # 0.05 .. 0.95


def rmse(y: Array, mean: Array) -> float:
    """Root mean squared error, sqrt(mean e^2)."""
    return float(np.sqrt(np.mean((y - mean) ** 2)))


def mae(y: Array, mean: Array) -> float:
    """Mean absolute error, mean |e|."""
    return float(np.mean(np.abs(y - mean)))


def r2(y: Array, mean: Array) -> float:
    """Coefficient of determination, 1 - sum e^2 / sum (y - mean of y)^2; NaN where y does not vary."""
    return float(1 - np.mean((y - mean) ** 2) / np.var(y)) if _varies(y) else float("nan")


def explained_variance(y: Array, mean: Array) -> float:
    """1 - Var e / Var y, which forgives a constant bias and so is never under R2; NaN where y does not vary."""
    return float(1 - np.var(y - mean) / np.var(y)) if _varies(y) else float("nan")


def root_mean(variance: Array) -> float:
    """A summary of standard deviations: average the variances, then take the root."""
    return float(np.sqrt(np.mean(variance)))


def covered(y: Array, lower: Array, upper: Array) -> NDArray[np.bool_]:
    """Which measurements are inside the band, ends included; their share is the coverage."""
    return (lower <= y) & (y <= upper)


def width(lower: Array, upper: Array) -> float:
    """Mean width of the band. Compare widths of two methods only at equal coverage."""
    return float(np.mean(upper - lower))


def interval_score(y: Array, lower: Array, upper: Array, level: float) -> Array:
    """(u - l) + 2/a (l - y)+ + 2/a (y - u)+ with a = 1 - level; proper for the central band (Gneiting & Raftery 2007, eq. 43)."""
    penalty = 2 / (1 - level)
    return (upper - lower) + penalty * np.maximum(lower - y, 0) + penalty * np.maximum(y - upper, 0)


def log_score(log_density: Array) -> float:
    """Mean of -log f(y), density in 1/kW; lower is better (Good 1952). NaN for methods without a density."""
    return float(-np.mean(log_density))


def standardized_variance(y: Array, mean: Array, variance: Array) -> float:
    """Mean of e^2 / total variance; ideal 1, over 1 = bands too narrow. With nu near 3 its sampling error is huge."""
    return float(np.mean((y - mean) ** 2 / variance))


def normal_score(below: Array, above: Array) -> Array:
    """Phi^-1(F(y)) from P(Y <= y) and P(Y > y), by the smaller of the two so that outliers stay finite."""
    below, above = np.maximum(below, 1e-300), np.maximum(above, 1e-300)
    return np.where(below < above, ndtri(below), -ndtri(above))


def pit_variance(normal_score: Array) -> float:
    """Variance of Phi^-1(F(y)); ideal 1, over 1 = too narrow. Light-tailed whatever the predictive tails (Berkowitz 2001)."""
    return float(np.var(normal_score))


def calibration_error(pit: Array) -> float:
    """Mean over p = 0.05 .. 0.95 of |share of F(y) <= p, minus p| (Kuleshov et al. 2018); ideal 0."""
    observed = np.searchsorted(np.sort(pit), CALIBRATION_LEVELS, side="right") / len(pit)
    return float(np.mean(np.abs(observed - CALIBRATION_LEVELS)))


def _varies(y: Array) -> bool:
    """By more than a grid's averaging rounds."""
    return len(y) > 1 and float(np.ptp(y)) > 1e-9 * max(1.0, float(np.abs(y).max()))
