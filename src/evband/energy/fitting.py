"""Fitting the error model: the variance of mean errors at all horizons, from trips that their predictors never saw."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from evband.energy.drives import Drive
from evband.energy.errors import ErrorModel, phi
from evband.energy.so_far import how_lasting
from evband.errors import TripsError

Array = NDArray[np.float64]

LEAST_TRIPS = 3
HORIZONS_S = 10.0 * 2.0 ** np.arange(8)  # 10 s .. 21 min
SLOW_S = (20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)
PARTS = 10  # in which trips are left out to choose the share
LIKELIHOOD_FROM_S = 160.0  # the share is chosen by stretches a driver would ask about


@dataclass(frozen=True)
class _Windows:
    """Overlapping stretches of one length in one trip."""

    error: Array  # mean measured minus predicted, kW
    noise: Array  # mean aleatoric variance, kW^2
    spread: Array  # EU: variance over members of their mean power, kW^2
    trip: int = 0  # number of the trip

    def pick(self, which: NDArray[np.bool_]) -> _Windows:
        return _Windows(self.error[which], self.noise[which], self.spread[which])


ByHorizon = dict[float, list[_Windows]]


def fit_errors(drives: list[Drive]) -> ErrorModel:
    """From drives predicted by members that never saw them; an error if fewer than `LEAST_TRIPS` have measured power."""
    drives = [d for d in drives if np.isfinite(d.power_kw).mean() >= 0.5 and len(d) >= 10.0 * d.hz]
    if len(drives) < LEAST_TRIPS:
        raise TripsError(
            f"Energy bands need at least {LEAST_TRIPS} trips with measured power that the model did not train on, and there are "
            f"{len(drives)}; give more trips."
        )
    seconds = np.array([len(d) / d.hz for d in drives])
    whole = [windows(d, len(d)) for d in drives]
    error, noises, spread = (np.array([float(getattr(w, n)[0]) for w in whole]) for n in ("error", "noise", "spread"))
    trips = _Windows(error, noises, spread)
    by_horizon: ByHorizon = {}
    for horizon in HORIZONS_S:
        found = [
            replace(windows(d, round(horizon * d.hz)), trip=i)
            for i, d in enumerate(drives)
            if len(d) >= horizon * d.hz >= 1
        ]
        found = [w for w in found if len(w.error)]
        if len(found) >= max(LEAST_TRIPS, len(drives) / 3):
            by_horizon[float(horizon)] = found
    noise = float(np.mean([d.noise.mean() for d in drives]))
    share = max(SHARES, key=lambda share: _left_out(by_horizon, trips, seconds, share, noise))
    best = _fit(by_horizon, trips, seconds, share, noise)
    best = replace(best, most=float(np.quantile(np.concatenate([d.noise for d in drives]), 0.99)))
    return replace(best, lasting=how_lasting(best, drives))


def _left_out(by_horizon: ByHorizon, trips: _Windows, seconds: Array, share: float, noise: float) -> float:
    """Log likelihood of calibration trips left out of the fit in turn: what fits its own trips best need not fit the next."""
    number = np.arange(len(seconds))
    parts = min(PARTS, len(seconds))
    total = 0.0
    for part in range(parts):
        out = number % parts == part
        if (~out).sum() < 2:
            return 0.0
        kept = {h: [w for w in ws if not out[w.trip]] for h, ws in by_horizon.items()}
        model = _fit({h: ws for h, ws in kept.items() if ws}, trips.pick(~out), seconds[~out], share, noise)
        held = {h: [w for w in ws if out[w.trip]] for h, ws in by_horizon.items()}
        total += _likelihood(model, held, trips.pick(out), seconds[out])
    return total


def windows(drive: Drive, rows: int) -> _Windows:
    """Stretches of `rows` rows, each a quarter of its length after the last, where at least half the power is known."""
    error = drive.power_kw - drive.mean
    known = np.isfinite(error)
    at = np.arange(0, len(drive) - rows + 1, max(1, rows // 4))
    count = _sums(known.astype(float), rows, at)
    kept = count >= 0.5 * rows
    at, count = at[kept], count[kept]
    means = _sums(drive.members, rows, at) / rows
    return _Windows(
        _sums(np.where(known, error, 0.0), rows, at) / count, _sums(drive.noise, rows, at) / rows, means.var(axis=0)
    )


def _sums(values: Array, rows: int, at: NDArray[np.int64]) -> Array:
    total = np.concatenate([np.zeros((*values.shape[:-1], 1)), np.cumsum(values, axis=-1)], axis=-1)
    return np.asarray(total[..., at + rows] - total[..., at])


def _fit(by_horizon: ByHorizon, trips: _Windows, seconds: Array, share: float, noise: float) -> ErrorModel:
    """At one share: non-negative parts that fit the variance at all horizons, then tau^2 from the whole trips.

    h times the variance at horizon h is the Newey-West (Bartlett) long-run variance with h lags, so short horizons tell R,
    middle ones s and L, and tau^2 = max(0, Var of trips' mean errors - mean within-trip variance - mean EU).
    """
    n = len(seconds)
    size = (1.0 - share) + share * trips.noise / noise
    bias = float(np.average(trips.error, weights=1.0 / size))
    correction = n / (n - 1.0)  # for the bias, which was estimated from the same trips
    horizons = np.array(list(by_horizon))
    variance = np.array([np.mean([_second_moment(w, bias, share, noise) for w in ws]) for ws in by_horizon.values()])
    of_trips = correction * float(np.mean((trips.error - bias) ** 2 / size))
    target = np.append(correction * variance, of_trips)
    spread = [np.mean([np.mean(w.spread / _size(w, share, noise)) for w in ws]) for ws in by_horizon.values()]
    own = np.maximum(target - np.append(spread, np.mean(trips.spread / size)), 1e-3 * target + 1e-12)  # without EU
    best = np.inf
    parts, slow_s = np.zeros(3), SLOW_S[0]
    for length in SLOW_S:
        design = np.stack(
            [np.ones(len(own)), np.append(phi(horizons / length), phi(seconds / length).mean()),
             np.append(1.0 / horizons, (1.0 / seconds).mean())], axis=1
        )  # fmt: skip
        weight = np.append(np.ones(len(horizons)), 2.0) / own  # relative errors; whole trips count twice
        found, left = nnls(design * weight[:, None], own * weight)
        if left < best:
            best, parts, slow_s = left, found, length
    within = float(np.mean(parts[1] * phi(seconds / slow_s) + parts[2] / seconds))
    tau2 = max(0.0, float(own[-1]) - within)
    return ErrorModel(bias, tau2, float(parts[1]), slow_s, float(parts[2]), share, noise, np.inf, n)


def _size(w: _Windows, share: float, noise: float) -> Array:
    return (1.0 - share) + share * w.noise / noise


def _second_moment(w: _Windows, bias: float, share: float, noise: float) -> float:
    return float(np.mean((w.error - bias) ** 2 / _size(w, share, noise)))


def _likelihood(model: ErrorModel, by_horizon: ByHorizon, trips: _Windows, seconds: Array) -> float:
    """Gaussian log likelihood of trips, and of long stretches with those of one trip weighing as one."""

    def gain(w: _Windows, t: Array | float) -> Array:
        variance = model.of_mean(t, _size(w, model.share, model.noise)) + w.spread
        return np.asarray(-0.5 * (np.log(variance) + (w.error - model.bias) ** 2 / variance))

    total = float(gain(trips, seconds).sum())
    for horizon, found in by_horizon.items():
        if horizon >= LIKELIHOOD_FROM_S:
            total += sum(float(gain(w, horizon).mean()) for w in found)
    return total
