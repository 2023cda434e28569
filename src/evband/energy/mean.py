"""What a whole trip takes on average: the network where it is better over trips, the linear path where that is.

A likelihood over seconds does not pay for what a trip's errors have in common, so a model that is best on seconds need not
be best on trips. Where energy is asked, mean power is therefore

    (1 - w) network + w linear path + sum_k beta_k (x_k - c_k)

with one weight w (the linear path is least squares on the road-load features) and a correction that is linear in speed, speed
squared, standstill and climb. Both are learned from the mean errors of calibration trips, one number per trip: w by their mean
absolute error, beta by ridge regression whose strength is chosen by leaving trips out, and 0 unless it pays there. Row bands
do not use any of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evband.channels import STANDING_KMH
from evband.energy.drives import Drive
from evband.errors import ArtifactError

Array = NDArray[np.float64]

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
RIDGES = (3.0, 1.0, 0.3, 0.1)  # over the number of trips, of standardised trip means
LEAST_TRIPS = 9  # fewer say nothing about a slope
PAYS = 0.98  # of the mean absolute error left out, that a correction must get under
FARTHEST = 3.0  # a row is corrected by at most so many times what any calibration trip was
COLUMNS = 4


@dataclass(frozen=True)
class TripMean:
    """The mean power that energy is integrated from; the default leaves the network's as it is."""

    weight: float = 0.0  # w
    slopes: tuple[float, ...] = (0.0,) * COLUMNS  # beta, kW per unit of `row_columns`
    centres: tuple[float, ...] = (0.0,) * COLUMNS  # c
    most_kw: float = 0.0  # a row's correction is at most so large

    def of(self, drive: Drive) -> Drive:
        """The drive with this mean; its members move along, each with the weight the network has."""
        added = self.added(drive)
        if added is None:
            return drive
        return replace(drive, mean=drive.mean + added, members=(1.0 - self.weight) * drive.members + self._rest(drive))

    def added(self, drive: Drive) -> Array | None:
        """[T] kW that come on top of the network's mean; None where nothing does."""
        if self.weight == 0.0 and not any(self.slopes):
            return None
        return self._rest(drive) - self.weight * drive.mean

    def rows(self, network: Array, linear: Array | None, speed_kmh: Array, climb_ms: Array | None) -> Array:
        """[n] kW on top of the network's mean, of rows of any drives."""
        added = self._own(speed_kmh, climb_ms)
        return added if linear is None or not self.weight else added + self.weight * (linear - network)

    def _rest(self, drive: Drive) -> Array:
        own = self._own(drive.speed_kmh, drive.climb_ms)
        return own + self.weight * (drive.mean if drive.linear is None else drive.linear)

    def _own(self, speed_kmh: Array, climb_ms: Array | None) -> Array:
        columns = row_columns(speed_kmh, climb_ms) - np.array(self.centres)
        return np.asarray(np.clip(columns @ np.array(self.slopes), -self.most_kw, self.most_kw))

    def to_dict(self) -> dict[str, Any]:
        return {"weight": self.weight, "slopes": list(self.slopes), "centres": list(self.centres), "most_kw": self.most_kw}  # fmt: skip

    @classmethod
    def from_dict(cls, saved: Any) -> Self:
        """Inverse of `to_dict`; a model file is not to be trusted."""
        try:
            slopes, centres = (tuple(float(x) for x in saved[name]) for name in ("slopes", "centres"))
            weight, most = float(saved["weight"]), float(saved["most_kw"])
        except (KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(
                f"The mean over trips in the model file is damaged ({problem}); fit it again."
            ) from None
        sane = np.isfinite([weight, most, *slopes, *centres]).all() and 0 <= weight <= 1 and most >= 0
        if not sane or len(slopes) != COLUMNS or len(centres) != COLUMNS:
            raise ArtifactError("The mean over trips in the model file is damaged; fit it again.")
        return cls(weight, slopes, centres, most)


def row_columns(speed_kmh: Array, climb_ms: Array | None) -> Array:
    """[n, 4]: speed in m/s, its square, whether the car stands, climb in m/s (0 where elevation is not an input)."""
    v = speed_kmh / 3.6
    climb = np.zeros(len(v)) if climb_ms is None else climb_ms
    return np.stack([v, v * v, (speed_kmh < STANDING_KMH).astype(float), climb], axis=1)


def fit_mean(drives: list[Drive]) -> TripMean:
    """From drives predicted by members (and a linear path) that never saw them."""
    if len(drives) < LEAST_TRIPS:
        return TripMean()
    known = [np.isfinite(d.power_kw) for d in drives]
    network = np.array([float((d.power_kw - d.mean)[k].mean()) for d, k in zip(drives, known, strict=True)])
    error, weight = network, 0.0
    if all(d.linear is not None for d in drives):
        linear = np.array([float((d.power_kw - d.linear)[k].mean()) for d, k in zip(drives, known, strict=True)])  # type: ignore[operator]
        weight = min(WEIGHTS, key=lambda w: float(np.abs((1 - w) * network + w * linear).mean()))
        error = (1 - weight) * network + weight * linear
    columns = np.array(
        [row_columns(d.speed_kmh, d.climb_ms)[k].mean(axis=0) for d, k in zip(drives, known, strict=True)]
    )
    centre, scale = columns.mean(axis=0), columns.std(axis=0)
    scale = np.where(scale > 1e-9, scale, np.inf)
    slopes = _ridge((columns - centre) / scale, error) / scale
    most = FARTHEST * float(np.abs((columns - centre) @ slopes).max())
    return TripMean(weight, tuple(slopes.tolist()), tuple(centre.tolist()), most)


def _ridge(x: Array, error: Array) -> Array:
    """Slopes of the strength whose mean absolute error on trips left out is least, 0 unless it pays.

    Leave-one-out errors come from one fit: e_i / (1 - H_ii), H the hat matrix with its intercept.
    """
    n = len(error)
    best, found = PAYS * float(np.abs(error - error.mean()).mean()) * n / (n - 1), np.zeros(x.shape[1])
    for ridge in RIDGES:
        solve = np.linalg.solve(x.T @ x + ridge * n * np.eye(x.shape[1]), x.T)
        hat = x @ solve + 1.0 / n
        left_out = float(np.abs((error - hat @ error) / (1.0 - np.diag(hat))).mean())
        if left_out < best:
            best, found = left_out, solve @ (error - error.mean())
    return np.asarray(found)
