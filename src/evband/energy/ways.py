"""Ways driven before: what they took beyond what was predicted, they take again.

A commute has hills that no input tells, a surface and traffic lights of its own, so trips over one way err alike. Nobody says which
trips went the same way, but their speeds do: two trips are as similar as

    k = exp(-(log of the ratio of lengths)^2 / (2 0.03^2) - D / (2 0.7^2))

with D the mean square of what their speeds differ by in 20 equal parts of the way (standing left out), over the variance of speed
along it. Energy errors of calibration trips over the root of their duration (so that short and long ones compare), none counting as
more than three deviations, are taken as f + rest: f a Gaussian process with covariance k, the rest independent with `noise` times its
variance. `noise` is where trips left out err least, and nothing is learned where no choice lowers that. A new trip's energy is
expected to be higher by f given the calibration trips, and its variance is lower as far as they tell. Range does not use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evband.channels import STANDING_KMH
from evband.energy.drives import Drive
from evband.energy.student import robust_deviation
from evband.errors import ArtifactError

Array = NDArray[np.float64]

PARTS = 20  # of a way
LENGTH = 0.03  # deviation of the log of lengths of one way: detours for parking, errors of the odometer
SHAPE = 0.7  # deviation of speeds along one way, in units of how much speed varies along it
STEADY_KMH = 5.0  # speed varies by at least so much
LEAST_KM = 1.0  # a shorter way has no shape
NOISES = (1.0, 2.0, 5.0)
ODD = 3.0  # deviations
MOST_TRIPS = 300  # the last of them are kept


class Known(NamedTuple):
    """What the calibration trips tell about a way."""

    kwh_per_km: float  # beyond the prediction
    left: float  # share of the error's variance


NEW = Known(0.0, 1.0)


@dataclass(frozen=True)
class Ways:
    """The calibration trips by the shape of their way; the default knows none."""

    km: tuple[float, ...] = ()
    speeds: tuple[tuple[float, ...], ...] = ()  # km/h in each part
    errors: tuple[float, ...] = ()  # kWh over the root of the hours
    noise: float = NOISES[-1]

    def known(self, drive: Drive) -> Known:
        """Of the way of a whole drive."""
        km = float(drive.distance_km[-1])
        if not self.km or km < LEAST_KM:
            return NEW
        k = similarity(np.array([km]), speeds_along(drive)[None], np.array(self.km), np.array(self.speeds))[0]
        expected = float(k @ self._inverse @ np.array(self.errors)) * np.sqrt(drive.hours)
        left = (1.0 + self.noise - float(k @ self._inverse @ k)) / (1.0 + self.noise)
        return Known(expected / km, max(left, self.noise / (1.0 + self.noise)))  # the rest is independent

    @cached_property
    def _inverse(self) -> Array:
        km, speeds = np.array(self.km), np.array(self.speeds)
        return _inverse(similarity(km, speeds, km, speeds), self.noise)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Any) -> Self:
        """Inverse of `to_dict`; a model file is not to be trusted."""
        try:
            km, errors = (tuple(float(x) for x in saved[name]) for name in ("km", "errors"))
            speeds, noise = tuple(tuple(float(v) for v in row) for row in saved["speeds"]), float(saved["noise"])
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(f"The known ways in the model file are damaged ({problem}); fit it again.") from None
        numbers = np.array([noise, *km, *errors, *(v for row in speeds for v in row)])
        alike = len(km) == len(errors) == len(speeds) <= MOST_TRIPS and all(len(row) == PARTS for row in speeds)
        if not alike or not np.isfinite(numbers).all() or min(noise, *km, 1.0) <= 0:
            raise ArtifactError("The known ways in the model file are damaged; fit it again.")
        return cls(km, speeds, errors, noise)


def fit_ways(drives: Sequence[Drive], error_kw: Array) -> Ways:
    """From drives predicted by members and a mean that never saw them, and their mean errors without the bias."""
    km = np.array([float(d.distance_km[-1]) for d in drives])
    errors = error_kw * np.sqrt([d.hours for d in drives])
    deviation = robust_deviation(errors)
    counted = np.clip(errors, -ODD * deviation, ODD * deviation)
    kept = np.flatnonzero(km >= LEAST_KM)[-MOST_TRIPS:]
    if len(kept) < 2:
        return Ways()
    km, errors, counted = km[kept].round(3), errors[kept], counted[kept].round(5)
    speeds = np.array([speeds_along(drives[i]) for i in kept]).round(1)
    alike, least, noise = similarity(km, speeds, km, speeds), float(np.abs(errors).mean()), None
    for one in NOISES:
        inverse = _inverse(alike, one)
        told = counted - inverse @ counted / np.diag(inverse)  # of each trip by the others
        if np.abs(errors - told).mean() < least:
            least, noise = float(np.abs(errors - told).mean()), one
    if noise is None:
        return Ways()
    return Ways(tuple(km.tolist()), tuple(map(tuple, speeds.tolist())), tuple(counted.tolist()), noise)


def speeds_along(drive: Drive) -> Array:
    """[PARTS] km/h in equal parts of the way, standing left out; a part that no row falls into has its neighbours' speed."""
    moving = drive.speed_kmh >= STANDING_KMH
    speed, at = drive.speed_kmh[moving], drive.distance_km[moving] / drive.distance_km[-1]
    part = np.minimum((at * PARTS).astype(int), PARTS - 1)
    rows = np.bincount(part, minlength=PARTS)
    seen = np.flatnonzero(rows)
    mean = np.bincount(part, speed, minlength=PARTS)[seen] / rows[seen]
    return np.asarray(np.interp(np.arange(PARTS), seen, mean))


def similarity(km: Array, speeds: Array, other_km: Array, other_speeds: Array) -> Array:
    """k of each trip [n] with each other one [m]: lengths, and speeds [.., PARTS]."""
    longer = np.log(km[:, None] / other_km)
    differ = ((speeds[:, None] - other_speeds) ** 2).mean(axis=-1)
    varies = 0.5 * (speeds.var(axis=1)[:, None] + other_speeds.var(axis=1)) + STEADY_KMH**2
    return np.asarray(np.exp(-0.5 * (longer / LENGTH) ** 2 - 0.5 * differ / varies / SHAPE**2))


def _inverse(alike: Array, noise: float) -> Array:
    return np.asarray(np.linalg.inv(alike + noise * np.eye(len(alike))), float)
