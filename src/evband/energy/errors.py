"""How the error of mean power over a stretch shrinks with its length: the variance that trip energy and range stand on.

Errors of a drive last: a heater, wind or load shift the whole trip, a warming cabin or a hill minutes of it. Measured minus
predicted power is taken as

    e_t = bias + sqrt(g_t) (b + u_t + w_t)

with a trip effect b (variance tau^2), a slow error u with correlation exp(-lag/L), and fast noise w with long-run variance R. So the
mean of e over T seconds has variance

    g (tau^2 + s^2 phi(T/L) + R/T) + EU,   phi(x) = 2 (x - 1 + exp(-x)) / x^2

which for T far over L is METHOD's  tau^2 + LRV/T + EU  with LRV = R + 2 s^2 L, and stays right for short stretches. EU is the
variance over members of their mean power. g is how noisy the model itself calls the stretch: (1 - c) + c (its aleatoric variance over
that of the calibration trips); c = 0 would give a motorway the errors of a traffic jam.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from evband.energy.drives import OUTSIDE, Drive
from evband.errors import ArtifactError, TripsError

Array = NDArray[np.float64]

LEAST_TRIPS = 3
HORIZONS_S = 10.0 * 2.0 ** np.arange(8)  # 10 s .. 21 min
SLOW_S = (20.0, 40.0, 80.0, 160.0, 320.0, 640.0)
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9)
LIKELIHOOD_FROM_S = 160.0  # the share is chosen by stretches a driver would ask about


def phi(x: ArrayLike) -> Array:
    """Variance of the mean of an exponentially correlated process over x correlation lengths; 1 at 0, 2/x far out."""
    lengths = np.maximum(np.asarray(x, float), 1e-4)
    return np.asarray(2.0 * (lengths + np.expm1(-lengths)) / lengths**2)


@dataclass(frozen=True)
class ErrorModel:
    """The parts of the error of mean power, from trips that their predictors never saw."""

    bias: float  # kW, measured minus predicted
    tau2: float  # kW^2, trip effect
    slow: float  # kW^2, s^2
    slow_s: float  # s, L
    fast: float  # kW^2 s, R
    share: float  # c
    noise: float  # kW^2, mean aleatoric variance of the calibration rows
    most: float  # kW^2, their 99 % quantile: a model's noise runs wild where it has seen nothing
    trips: int

    @property
    def dof(self) -> int:
        return self.trips - 1

    @property
    def long_run_variance(self) -> float:
        """kW^2 s, of the error within a trip."""
        return self.fast + 2.0 * self.slow * self.slow_s

    @property
    def trip_effect(self) -> float:
        """tau^2 of a new trip: the bias was estimated from as many trip effects, so its own error comes on top."""
        return self.tau2 * (1.0 + 1.0 / self.trips)

    def of_mean(self, seconds: ArrayLike, size: ArrayLike = 1.0) -> Array:
        """Variance in kW^2 of the mean error over a stretch, without EU."""
        t = np.asarray(seconds, float)
        return np.asarray(size) * (self.trip_effect + self.slow * phi(t / self.slow_s) + self.fast / t)

    def sizes(self, drive: Drive) -> Array:
        """g of every row; larger outside the training range, where nothing was measured (a convention, not a calibration)."""
        known = (1.0 - self.share) + self.share * np.minimum(drive.noise, self.most) / self.noise
        return known * np.where(drive.outside, OUTSIDE, 1.0)

    def size(self, noise: float, outside: bool) -> float:
        """g of one row."""
        known = (1.0 - self.share) + self.share * min(noise, self.most) / self.noise
        return known * OUTSIDE if outside else known

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Any) -> ErrorModel:
        """Inverse of `to_dict`; a model file is not to be trusted."""
        try:
            values = {f.name: float(saved[f.name]) for f in fields(cls)}
        except (KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(
                f"The energy calibration in the model file is damaged ({problem}); fit it again."
            ) from None
        sane = all(np.isfinite(v) for v in values.values()) and min(values[k] for k in ("slow_s", "noise", "most")) > 0
        if not sane or min(values[k] for k in ("tau2", "slow", "fast", "share")) < 0 or values["trips"] < 2:
            raise ArtifactError("The energy calibration in the model file is damaged; fit it again.")
        return cls(**{**values, "trips": int(values["trips"])})  # type: ignore[arg-type]


@dataclass(frozen=True)
class _Windows:
    """Overlapping stretches of one length in one trip."""

    error: Array  # mean measured minus predicted, kW
    noise: Array  # mean aleatoric variance, kW^2
    spread: Array  # EU: variance over members of their mean power, kW^2


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
    trips = _Windows(*(np.array([float(getattr(w, n)[0]) for w in whole]) for n in ("error", "noise", "spread")))
    by_horizon: dict[float, list[_Windows]] = {}
    for horizon in HORIZONS_S:
        found = [windows(d, round(horizon * d.hz)) for d in drives if len(d) >= horizon * d.hz >= 1]
        found = [w for w in found if len(w.error)]
        if len(found) >= max(LEAST_TRIPS, len(drives) / 3):
            by_horizon[float(horizon)] = found
    noise = float(np.mean([d.noise.mean() for d in drives]))
    fits = [_fit(by_horizon, trips, seconds, share, noise) for share in SHARES]
    best = max(fits, key=lambda model: _likelihood(model, by_horizon, trips, seconds))
    return replace(best, most=float(np.quantile(np.concatenate([d.noise for d in drives]), 0.99)))


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


def _fit(
    by_horizon: dict[float, list[_Windows]], trips: _Windows, seconds: Array, share: float, noise: float
) -> ErrorModel:
    """At one share: non-negative parts that fit the variance at all horizons, then tau^2 from the whole trips.

    h times the variance at horizon h is the Newey-West (Bartlett) long-run variance with h lags, so short horizons tell R,
    middle ones s and L, and tau^2 = max(0, Var of trips' mean errors - mean within-trip variance - mean EU) as METHOD has it.
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


def _likelihood(model: ErrorModel, by_horizon: dict[float, list[_Windows]], trips: _Windows, seconds: Array) -> float:
    """Gaussian log likelihood of trips, and of long stretches with those of one trip weighing as one."""

    def gain(w: _Windows, t: Array | float) -> Array:
        variance = model.of_mean(t, _size(w, model.share, model.noise)) + w.spread
        return np.asarray(-0.5 * (np.log(variance) + (w.error - model.bias) ** 2 / variance))

    total = float(gain(trips, seconds).sum())
    for horizon, found in by_horizon.items():
        if horizon >= LIKELIHOOD_FROM_S:
            total += sum(float(gain(w, horizon).mean()) for w in found)
    return total
