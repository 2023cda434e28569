"""Fitting the error model: from trips that their predictors never saw, for the next trip.

Three steps, each from trips as wholes. First the mean over trips (`evband.energy.mean`); each trip is then judged by the mean of
the others. Then the shape within a trip: the variance of mean errors over windows of 10 s to 21 min is fitted with non-negative
parts; h times the variance at horizon h is the Newey-West (Bartlett) long-run variance with h lags, so short horizons determine R,
middle ones s and L. A trip counts at most `ODD` times the median trip there. Last the level: whole trips' mean errors are a
Student-t with the model's variance, and the trip effect, the within part's factor, the share c, the weight k and the bias are where
that likelihood, times a wide prior, is highest. `usual` is the EU that three quarters of these trips stay under; k holds up to there.
Each trip was left out by few members, whose variance is a noisy estimate of EU: it is shrunk (`steadied`), else k would be too low
for the many members that predict a new trip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evband.energy.drives import Drive
from evband.energy.errors import ErrorModel, counted, disagreement, phi, relative_size
from evband.energy.mean import TripMean, fit_mean
from evband.energy.so_far import how_lasting
from evband.energy.student import TAILS, robust_deviation, surprise
from evband.energy.ways import fit_ways
from evband.errors import TripsError

Array = NDArray[np.float64]

LEAST_TRIPS = 3
HORIZONS_S = 10.0 * 2.0 ** np.arange(8)  # 10 s .. 21 min
SLOW_S = (20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
SHAPE_SHARE = 0.5  # of the noise in g while the shape within trips is fitted
ODD = 10.0  # a trip's windows count at most so many times the median trip's
PRIOR_FACTOR = 0.7  # of the variance within trips, before any: a t has a scale below its deviation
PRIOR_SPREAD = 1.0  # k before any trip: members differ by as much as they err together
USUAL = 0.75  # share of the calibration trips whose EU counts with k


@dataclass(frozen=True)
class _Windows:
    """Overlapping stretches of one length in one trip, or whole trips."""

    error: Array  # mean measured minus predicted, kW
    noise: Array  # mean aleatoric variance, kW^2
    spread: Array  # EU: variance over members of their mean power, kW^2


ByHorizon = dict[float, list[_Windows]]


def fit_errors(drives: list[Drive], mean: TripMean | None = None, usual: float = USUAL) -> ErrorModel:
    """From drives predicted by members that never saw them; an error if fewer than `LEAST_TRIPS` have measured power.

    The mean over trips is fitted too, unless it is given; k is told by the EU that a share `usual` of them stay under."""
    drives = [d for d in drives if np.isfinite(d.power_kw).mean() >= 0.5 and len(d) >= HORIZONS_S[0] * d.hz]
    if len(drives) < LEAST_TRIPS:
        raise TripsError(
            f"Energy bands need at least {LEAST_TRIPS} trips with measured power that the model did not train on, and there are "
            f"{len(drives)}; give more trips."
        )
    mean, of_others = (mean, [mean] * len(drives)) if mean is not None else fit_mean(drives)
    drives = [own.of(d) for own, d in zip(of_others, drives, strict=True)]
    seconds = np.array([d.seconds for d in drives])
    whole = [windows(d, len(d)) for d in drives]
    trips = _Windows(*(np.array([float(getattr(w, n)[0]) for w in whole]) for n in ("error", "noise", "spread")))
    trips = replace(trips, spread=steadied(trips.spread, min(len(d.members) for d in drives)))
    noise = float(np.mean([d.noise.mean() for d in drives]))
    shape = _shape(_by_horizon(drives), trips, seconds, noise)
    best = _level(shape, trips, seconds, float(np.quantile(trips.spread, usual)))
    best = replace(best, most=float(np.quantile(np.concatenate([d.noise for d in drives]), 0.99)))
    return replace(best, lasting=how_lasting(best, drives), mean=mean, ways=fit_ways(drives, best.bias))


def _by_horizon(drives: list[Drive]) -> ByHorizon:
    """Windows of every horizon that a third of the trips (and three of them) are long enough for."""
    found: ByHorizon = {}
    for horizon in HORIZONS_S:
        of_trips = [windows(d, round(horizon * d.hz)) for d in drives if len(d) >= horizon * d.hz >= 1]
        of_trips = [w for w in of_trips if len(w.error)]
        if len(of_trips) >= max(LEAST_TRIPS, len(drives) / 3):
            found[float(horizon)] = of_trips
    return found


def windows(drive: Drive, rows: int) -> _Windows:
    """Stretches of `rows` rows, each a quarter of its length after the last, where at least half the power is known."""
    error = drive.power_kw - drive.mean
    known = np.isfinite(error)
    at = np.arange(0, len(drive) - rows + 1, max(1, rows // 4))
    count = _sums(known.astype(float), rows, at)
    kept = count >= 0.5 * rows
    at, count = at[kept], count[kept]
    return _Windows(
        _sums(np.where(known, error, 0.0), rows, at) / count,
        _sums(drive.noise, rows, at) / rows,
        disagreement(_sums(drive.members, rows, at) / rows),
    )


def steadied(spread: Array, members: int) -> Array:
    """The variance [trips] that many members would have, expected from that of a few (empirical Bayes, log-normal over trips).

    The log of a variance of m members has a known error of its own: what the logs of trips vary by beyond it is real."""
    from scipy.special import digamma, polygamma

    if members < 2 or len(spread) < 2 or not spread.all():
        return spread
    half = (members - 1) / 2.0
    logs = np.log(spread)
    varies = float(logs.var(ddof=1))
    real = max(varies - float(polygamma(1, half)), 0.0)
    kept = real / varies if varies > 0 else 0.0
    middle = float(logs.mean()) - float(digamma(half) - np.log(half))
    return np.asarray(np.exp(middle + kept * (logs - logs.mean()) + 0.5 * real * (1.0 - kept)))


def _sums(values: Array, rows: int, at: NDArray[np.int64]) -> Array:
    total = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)
    return np.asarray(total[..., at + rows] - total[..., at])


def _shape(by_horizon: ByHorizon, trips: _Windows, seconds: Array, noise: float) -> ErrorModel:
    """Non-negative parts that fit the variance at all horizons and over whole trips, robustly."""
    from scipy.optimize import nnls

    n = len(seconds)
    bias = float(np.median(trips.error))
    horizons = np.array(list(by_horizon))
    variance = [_middle([_second_moment(w, bias, noise) for w in ws]) for ws in by_horizon.values()]
    whole = _middle(list((trips.error - bias) ** 2 / relative_size(trips.noise, SHAPE_SHARE, noise)))
    own = np.maximum(n / (n - 1.0) * np.append(variance, whole), 1e-12)
    best, parts, slow_s = np.inf, np.zeros(3), SLOW_S[0]
    for length in SLOW_S:
        design = np.stack(
            [np.ones(len(own)), np.append(phi(horizons / length), phi(seconds / length).mean()),
             np.append(1.0 / horizons, (1.0 / seconds).mean())], axis=1
        )  # fmt: skip
        weight = np.append(np.ones(len(horizons)), 2.0) / own  # relative errors; whole trips count twice
        found, left = nnls(design * weight[:, None], own * weight)
        if left < best:
            best, parts, slow_s = left, found, length
    return ErrorModel(bias, float(parts[0]), float(parts[1]), slow_s, float(parts[2]), SHAPE_SHARE, noise, np.inf, n)


def _middle(moments: list[float]) -> float:
    """The mean over trips, each counting at most `ODD` times the median one."""
    return float(np.mean(np.minimum(moments, ODD * np.median(moments) + 1e-12)))


def _second_moment(w: _Windows, bias: float, noise: float) -> float:
    return float(np.mean((w.error - bias) ** 2 / relative_size(w.noise, SHAPE_SHARE, noise)))


def _level(shape: ErrorModel, trips: _Windows, seconds: Array, usual: float) -> ErrorModel:
    """Trip effect, factor of the within part, share, weight of EU and bias at the mode of the Student-t posterior.

    Priors: logs of tau^2 (around half the robust variance of the trips' errors), of the factor and of k with deviations
    2, 0.5 and 1, the logit of the share with 1.5, the bias with half the errors' deviation.
    """
    from scipy.optimize import minimize

    within = shape.within(seconds)
    deviation = robust_deviation(trips.error) + 1e-6
    centre = np.array([2.0 * np.log(deviation) - 0.7, np.log(PRIOR_FACTOR), 0.0, np.log(PRIOR_SPREAD), 0.0])
    width = np.array([2.0, 0.5, 1.5, 1.0, 0.5])

    def unlikely(q: Array) -> float:
        p = centre + width * q
        tau2, factor, k = np.exp(p[[0, 1, 3]])
        share = 1.0 / (1.0 + np.exp(-p[2]))
        size = relative_size(trips.noise, share, shape.noise)
        variance = size * (tau2 + factor * within) + counted(trips.spread, k, usual)
        return float(surprise(trips.error - p[4] * deviation, variance).sum() + 0.5 * (q**2).sum())

    p = centre + width * minimize(unlikely, np.zeros(5), method="BFGS").x
    tau2, factor, k = (float(x) for x in np.exp(p[[0, 1, 3]]))
    return replace(
        shape, bias=float(p[4]) * deviation, tau2=tau2, slow=factor * shape.slow, fast=factor * shape.fast,
        share=float(1.0 / (1.0 + np.exp(-p[2]))), spread=k, tails=TAILS, usual=usual,
    )  # fmt: skip
