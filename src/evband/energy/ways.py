"""Ways driven before: trips over one way have similar errors, as a whole and in each part of it.

A commute has hills that are not among the inputs, a surface and traffic lights of its own, so errors of trips over it are correlated.
No coordinates are needed to find such trips; their lengths and speeds give the similarity of two of them:

    k = exp(-(log of the ratio of lengths)^2 / (2 0.03^2) - D / (2 0.7^2))

with D the mean squared difference of their speeds in 20 equal parts of the way (standing left out), over the variance of speed along
it. The energy errors of each calibration trip in these parts, divided by the root of its duration (so that short and long trips
compare) and clipped at three robust deviations, are modelled as f + rest: f a Gaussian process with covariance k between trips, the
rest independent with `noise` times its variance. `noise` has the least leave-one-out error over the trip, its halves and its quarters;
where no choice lowers that error, nothing is learned. For a new trip the posterior mean of f is added to the prediction of each part,
and the error's variance is its posterior share. Parts matter half-way: a hill's errors up and down cancel over a way, not over what is
left of it.
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
SCALES = (1, 2, 4)  # a way counts as a whole, in halves and in quarters
LENGTH = 0.03  # deviation of the log of lengths of one way: detours for parking, errors of the odometer
SHAPE = 0.7  # deviation of speeds along one way, in units of how much speed varies along it
STEADY_KMH = 5.0  # speed varies by at least so much
LEAST_KM = 1.0  # a shorter way has no shape
NOISES = (1.0, 2.0, 5.0)
ODD = 3.0  # deviations
MOST_TRIPS = 300  # the last of them are kept


class Known(NamedTuple):
    """The error expected on a way given the calibration trips, and how much of its variance is left."""

    kwh_per_km: Array  # [PARTS] beyond the prediction
    left: float  # share of the error's variance


NEW = Known(np.zeros(PARTS), 1.0)


@dataclass(frozen=True)
class Ways:
    """The calibration trips by the shape of their way; the default knows none."""

    km: tuple[float, ...] = ()
    speeds: tuple[tuple[float, ...], ...] = ()  # km/h in each part
    errors: tuple[tuple[float, ...], ...] = ()  # kWh in each part over the root of the trip's hours
    noise: float = NOISES[-1]

    def known(self, drive: Drive) -> Known:
        """Of the way of a whole drive."""
        km = float(drive.distance_km[-1])
        if not self.km or km < LEAST_KM:
            return NEW
        k = similarity(np.array([km]), speeds_along(drive)[None], np.array(self.km), np.array(self.speeds))[0]
        expected = k @ self._inverse @ np.array(self.errors) * np.sqrt(drive.hours)
        left = (1.0 + self.noise - float(k @ self._inverse @ k)) / (1.0 + self.noise)
        return Known(expected / (km / PARTS), max(left, self.noise / (1.0 + self.noise)))  # the rest is independent

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
            km, noise = tuple(float(x) for x in saved["km"]), float(saved["noise"])
            speeds, errors = (
                tuple(tuple(float(v) for v in row) for row in rows)
                for rows in (saved["speeds"], _apart(saved["errors"]))
            )
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(f"The known ways in the model file are damaged ({problem}); fit it again.") from None
        numbers = np.array([noise, *km, *(v for row in (*speeds, *errors) for v in row)])
        alike = len(km) == len(errors) == len(speeds) <= MOST_TRIPS
        alike = alike and all(len(row) == PARTS for row in (*speeds, *errors))
        if not alike or not np.isfinite(numbers).all() or min(noise, *km, 1.0) <= 0:
            raise ArtifactError("The known ways in the model file are damaged; fit it again.")
        return cls(km, speeds, errors, noise)


def _apart(errors: Any) -> list[Any]:
    """Errors in each part; earlier versions kept one for a whole trip, which is spread evenly."""
    return [[row / PARTS] * PARTS if isinstance(row, int | float) else row for row in errors]


def fit_ways(drives: Sequence[Drive], bias_kw: float) -> Ways:
    """From drives predicted by members and a mean that never saw them, and the bias of these."""
    kept = [d for d in drives if d.distance_km[-1] >= LEAST_KM][-MOST_TRIPS:]
    if len(kept) < 2:
        return Ways()
    km = np.array([float(d.distance_km[-1]) for d in kept]).round(3)
    speeds = np.array([speeds_along(d) for d in kept]).round(1)
    errors = np.array([errors_along(d, bias_kw) for d in kept])
    most = ODD * robust_deviation(errors)
    counted = np.clip(errors, -most, most).round(6)
    alike, least, noise = similarity(km, speeds, km, speeds), _size(errors), None
    for one in NOISES:
        inverse = _inverse(alike, one)
        expected = counted - inverse @ counted / np.diag(inverse)[:, None]  # of each trip given the others
        if (size := _size(errors - expected)) < least:
            least, noise = size, one
    if noise is None:
        return Ways()
    return Ways(tuple(km.tolist()), tuple(map(tuple, speeds.tolist())), tuple(map(tuple, counted.tolist())), noise)


def _size(errors: Array) -> float:
    """Mean absolute errors [trips, PARTS] of whole ways, halves and quarters, each over its root."""
    return float(sum(np.abs(errors.reshape(len(errors), n, -1).sum(axis=2)).mean() * np.sqrt(n) for n in SCALES))


def errors_along(drive: Drive, bias_kw: float) -> Array:
    """[PARTS] kWh that a drive took beyond prediction and bias in equal parts of its way, over the root of its hours."""
    error = np.nan_to_num(drive.power_kw - drive.mean - bias_kw)
    kwh = np.bincount(part_of(drive), error, minlength=PARTS) / drive.hz / 3600.0
    return np.asarray(kwh / np.sqrt(drive.hours))


def part_of(drive: Drive) -> NDArray[np.intp]:
    """[T] the part of the way that each row is in."""
    share = drive.distance_km / drive.distance_km[-1]
    return np.asarray(np.minimum((share * PARTS).astype(np.intp), PARTS - 1))


def speeds_along(drive: Drive) -> Array:
    """[PARTS] km/h in equal parts of the way, standing left out; a part that no row falls into has its neighbours' speed."""
    moving = drive.speed_kmh >= min(STANDING_KMH, drive.speed_kmh.max())  # a drive that only crawls does move
    speed, part = drive.speed_kmh[moving], part_of(drive)[moving]
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
