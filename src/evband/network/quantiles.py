"""Quantiles at fixed levels as a distribution: whatever is read off it is a weighted sum of the sorted quantiles.

Between levels the quantile function is linear; beyond the outermost it is the exponential tail through the two outermost,
q(p) = q_1 + b log(p / p_1) with b = (q_2 - q_1) / log(p_2 / p_1), so that any band and the mean exist. Bands, ticks and
graphs all take their weights [levels] from here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import SettingsError

Array = NDArray[np.float64]
Z95 = 1.6448536269514722  # of a standard Gaussian: its 90 % band is 2 Z95 wide


def pinball(error: Array, p: Any) -> Array:
    """Loss of the p-quantile that measurements exceed by `error`: max(p e, (p - 1) e)."""
    return np.asarray(np.maximum(p * error, (p - 1) * error))


def check_level(level: float) -> None:
    """A band's level is a probability strictly between 0 and 1."""
    if not 0 < level < 1:
        raise SettingsError(f"A band's level must lie between 0 and 1, such as 0.9, not {level}.")


def tail_weights(levels: Array) -> Array:
    """[2, levels]: b of the lower and of the upper tail."""
    weights = np.zeros((2, len(levels)))
    weights[0, :2] = np.array([-1.0, 1.0]) / np.log(levels[1] / levels[0])
    weights[1, -2:] = np.array([-1.0, 1.0]) / np.log((1 - levels[-2]) / (1 - levels[-1]))
    return weights


def quantile_weights(levels: Array, p: float) -> Array:
    """Of the p-quantile."""
    every, (lower, upper) = np.eye(len(levels)), tail_weights(levels)
    if p < levels[0]:
        return np.asarray(every[0] + np.log(p / levels[0]) * lower)
    if p > levels[-1]:
        return np.asarray(every[-1] - np.log((1 - p) / (1 - levels[-1])) * upper)
    return np.array([np.interp(p, levels, one) for one in every])


def mean_weights(levels: Array) -> Array:
    """Of the mean, the integral of the quantile function."""
    every, (lower, upper) = np.eye(len(levels)), tail_weights(levels)
    middle = np.diff(levels) @ (every[1:] + every[:-1]) / 2
    return np.asarray(levels[0] * (every[0] - lower) + middle + (1 - levels[-1]) * (every[-1] + upper))


def deviation_weights(levels: Array) -> Array:
    """Of the aleatoric deviation: the width of the 90 % band over that of a standard Gaussian."""
    return (quantile_weights(levels, 0.95) - quantile_weights(levels, 0.05)) / (2 * Z95)
