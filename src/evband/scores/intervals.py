"""How sure a mean over rows is: the binomial interval of the paper, and the honest one over trips."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

Array = NDArray[np.float64]
BLOCKS = 10  # a single run is cut into blocks of a tenth of it
CONFIDENCE = 0.95


def binomial_interval(hits: int, n: int) -> tuple[float, float]:
    """Wilson's interval for a proportion (Wilson 1927), as if rows were independent. For rows of a drive it is far too narrow."""
    z, p = float(ndtri(0.5 + CONFIDENCE / 2)), hits / n
    centre, half = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    low, high = float(centre - half) / (1 + z**2 / n), float(centre + half) / (1 + z**2 / n)
    return (0.0 if hits == 0 else low), (1.0 if hits == n else high)


def mean_interval(values: Array, trip: NDArray) -> tuple[float, float]:
    """95 % interval for the mean of autocorrelated rows: over trips where there are several, over blocks inside a single one.

    NaN, NaN where a single run is too short for blocks (under 20 rows).
    """
    _, code = np.unique(trip, return_inverse=True)
    n = np.bincount(code)
    mean = float(np.mean(values))
    if len(n) > 1:
        error, degrees = _over_trips(np.bincount(code, weights=values) / n, n / n.sum())
    elif len(values) >= 2 * BLOCKS:
        error, degrees = _over_blocks(values)
    else:
        return float("nan"), float("nan")
    half = float(stdtrit(degrees, 0.5 + CONFIDENCE / 2)) * error
    return mean - half, mean + half


def coverage_interval(covered: NDArray[np.bool_], trip: NDArray) -> tuple[float, float]:
    """`mean_interval` of the covered rows, inside [0, 1].

    Where trips (or blocks) do not differ at all, each counts as one draw of Wilson's interval: full coverage of five
    trips is not certainty.
    """
    low, high = mean_interval(covered.astype(np.float64), trip)
    if low == high:
        trips = len(np.unique(trip))
        draws = trips if trips > 1 else BLOCKS
        return binomial_interval(round(float(covered.mean()) * draws), draws)
    return float(np.clip(low, 0, 1)), float(np.clip(high, 0, 1))


def _over_trips(means: Array, weight: Array) -> tuple[float, float]:
    """Standard error and degrees of freedom of c = sum w_i c_i, the trips' means weighted by length.

    Var c = sum w_i^2 (c_i - c)^2 / (1 - w_i), the cluster-robust variance with the HC2 correction (MacKinnon & White 1985),
    which at equal lengths is the textbook s^2/trips; Student-t with 1/sum w_i^2 - 1 degrees of freedom, so that a few long
    trips count as the few they are. A percentile bootstrap over trips covers too little when trips are few.
    """
    centre = float(weight @ means)
    variance = float(np.sum(weight**2 * (means - centre) ** 2 / (1 - weight)))
    return float(np.sqrt(variance)), max(1.0 / float(np.sum(weight**2)) - 1.0, 1.0)


def _over_blocks(values: Array) -> tuple[float, float]:
    """Standard error and degrees of freedom of the mean of one run from overlapping blocks, b = n/10 rows long.

    n b/((n-b)(n-b+1)) sum_j (block mean_j - mean)^2 / n, the variance the moving-block bootstrap tends to, made unbiased, with
    3/2 (n/b - 1) degrees of freedom (Meketon & Schmeiser 1984). Right while errors forget within a tenth of the run.
    """
    n, b = len(values), len(values) // BLOCKS
    total = np.concatenate([[0.0], np.cumsum(values)])
    blocks = (total[b:] - total[:-b]) / b
    variance = b / ((n - b) * (n - b + 1)) * float(np.sum((blocks - values.mean()) ** 2))
    return float(np.sqrt(variance)), 1.5 * (n / b - 1)
