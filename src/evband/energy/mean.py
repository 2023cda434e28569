"""What a whole trip takes on average: the network where it is better over trips, the linear path where that is.

A likelihood over seconds does not pay for what a trip's errors have in common, so a model that is best on seconds need not
be best on trips. Where energy is asked, mean power is therefore

    (1 - w) network + w linear path + sum_k beta_k (x_k - c_k)

with one weight w (the linear path is least squares on the road-load features) and a correction that is linear in speed, speed
squared, standstill and climb. Both are learned from the mean errors of calibration trips, one number per trip: w by their mean
absolute error, beta by ridge regression whose strength is chosen by leaving trips out, and 0 unless it lowers the mean absolute
error there by more than that gain's own standard error. With too few trips to estimate w it is a half: the mean of two forecasts is
seldom worse than either. Where a row is unlike any in training, single members are far off (hundreds of kW): their distance from the
median member is clipped at the largest one in 99 % of calibration rows. Row bands do not use any of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evband.channels import STANDING_KMH
from evband.energy.drives import Drive
from evband.errors import ArtifactError

Array = NDArray[np.float64]

WEIGHTS = (0.0, 0.25, 0.5, 0.75, 1.0)
RIDGES = (3.0, 1.0, 0.3, 0.1)  # over the number of trips, of standardised trip means
LEAST_TRIPS = 9  # fewer do not determine w and slopes
HALF = 0.5  # w with fewer
FARTHEST = 3.0  # a row is corrected by at most so many times what any calibration trip was
COLUMNS = 4
WILD = 0.99  # share of calibration rows whose farthest member is believed
FAR = 1e9  # kW: believe all


@dataclass(frozen=True)
class TripMean:
    """The mean power that energy is integrated from; the default leaves the network's as it is."""

    weight: float = 0.0  # w
    slopes: tuple[float, ...] = (0.0,) * COLUMNS  # beta, kW per unit of `row_columns`
    centres: tuple[float, ...] = (0.0,) * COLUMNS  # c
    most_kw: float = 0.0  # a row's correction is at most so large
    apart_kw: float = FAR  # a member counts at most so far from the middle one

    def of(self, drive: Drive) -> Drive:
        """The drive with this mean; its members move along and differ as before: where they do, the linear path guesses, too."""
        mean, members = self.tamed(drive.mean, drive.members)
        if self.idle:
            return drive if members is drive.members else replace(drive, mean=mean, members=members)
        added = self.rows(mean, drive.linear, drive.speed_kmh, drive.climb_ms)
        return replace(drive, mean=mean + added, members=members + added)

    @property
    def idle(self) -> bool:
        """Nothing comes on top of the network's mean."""
        return not self.weight and not any(self.slopes)

    def tamed(self, mean: Array, members: Array) -> tuple[Array, Array]:
        """The mean [n] and members [M, n] of rows, members that run wild brought back to `apart_kw` from the middle one."""
        if self.apart_kw >= FAR or np.ptp(members, axis=0).max(initial=0.0) <= self.apart_kw:
            return mean, members
        middle = np.median(members, axis=0)
        cut = np.asarray(middle + np.clip(members - middle, -self.apart_kw, self.apart_kw))
        return mean + (cut - members).mean(axis=0), cut

    def rows(self, network: Array, linear: Array | None, speed_kmh: Array, climb_ms: Array | None) -> Array:
        """[n] kW on top of the network's mean, of rows of any drives."""
        added = self._own(speed_kmh, climb_ms)
        return added if linear is None or not self.weight else added + self.weight * (linear - network)

    def _own(self, speed_kmh: Array, climb_ms: Array | None) -> Array:
        columns = row_columns(speed_kmh, climb_ms) - np.array(self.centres)
        return np.asarray(np.clip(columns @ np.array(self.slopes), -self.most_kw, self.most_kw))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Any) -> Self:
        """Inverse of `to_dict`; a model file is not to be trusted."""
        try:
            slopes, centres = (tuple(float(x) for x in saved[name]) for name in ("slopes", "centres"))
            weight, most = float(saved["weight"]), float(saved["most_kw"])
            apart = float(saved.get("apart_kw", FAR))  # earlier versions believed all
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(
                f"The mean over trips in the model file is damaged ({problem}); fit it again."
            ) from None
        sane = (
            np.isfinite([weight, most, apart, *slopes, *centres]).all() and 0 <= weight <= 1 and min(most, apart) >= 0
        )
        if not sane or len(slopes) != COLUMNS or len(centres) != COLUMNS:
            raise ArtifactError("The mean over trips in the model file is damaged; fit it again.")
        return cls(weight, slopes, centres, most, apart)


def row_columns(speed_kmh: Array, climb_ms: Array | None) -> Array:
    """[n, 4]: speed in m/s, its square, whether the car stands, climb in m/s (0 where elevation is not an input)."""
    v = speed_kmh / 3.6
    climb = np.zeros(len(v)) if climb_ms is None else climb_ms
    return np.stack([v, v * v, (speed_kmh < STANDING_KMH).astype(float), climb], axis=1)


class TripErrors(NamedTuple):
    """One number per trip and mean: measured minus predicted power, and where the trip was driven."""

    network: Array  # [trips] kW
    linear: Array | None  # [trips] kW, of the linear path
    columns: Array  # [trips, 4] means of `row_columns`

    @classmethod
    def of(cls, drives: Sequence[Drive]) -> Self:
        known = [np.isfinite(d.power_kw) for d in drives]
        rows = list(zip(drives, known, strict=True))
        path = None
        if all(d.linear is not None for d in drives):
            path = np.array([float((d.power_kw - d.linear)[k].mean()) for d, k in rows])  # type: ignore[operator]
        network = np.array([float((d.power_kw - d.mean)[k].mean()) for d, k in rows])
        return cls(network, path, np.array([row_columns(d.speed_kmh, d.climb_ms)[k].mean(axis=0) for d, k in rows]))

    def without(self, trip: int) -> TripErrors:
        return TripErrors(*(None if part is None else np.delete(part, trip, axis=0) for part in self))  # type: ignore[arg-type]

    def mean(self) -> TripMean:
        """The weight and the correction that these trips ask for."""
        error, weight = self.network, 0.0
        if self.linear is not None:
            mixed = {w: (1 - w) * self.network + w * self.linear for w in WEIGHTS}
            weight = min(WEIGHTS, key=lambda w: float(np.abs(mixed[w]).mean()))
            error = mixed[weight]
        centre, scale = self.columns.mean(axis=0), self.columns.std(axis=0)
        scale = np.where(scale > 1e-9, scale, np.inf)
        slopes = _ridge((self.columns - centre) / scale, error) / scale
        most = FARTHEST * float(np.abs((self.columns - centre) @ slopes).max())
        return TripMean(weight, tuple(slopes.tolist()), tuple(centre.tolist()), most)


def fit_mean(drives: Sequence[Drive]) -> tuple[TripMean, list[TripMean]]:
    """(the mean of these drives, for each of them that of the others): errors of a mean that was fitted to
    the very drive are smaller than those on the next one. Predicted by members (and a linear path) that never saw them."""
    tame = TripMean(apart_kw=_believed(drives))
    errors = TripErrors.of([tame.of(d) for d in drives])
    if len(drives) < LEAST_TRIPS:
        mean = replace(tame, weight=0.0 if errors.linear is None else HALF)
        return mean, [mean] * len(drives)
    found = [errors.mean(), *(errors.without(trip).mean() for trip in range(len(drives)))]
    mean, *of_others = (replace(one, apart_kw=tame.apart_kw) for one in found)
    return mean, of_others


def _believed(drives: Sequence[Drive]) -> float:
    """kW by which the farthest member differs from the middle one, in all but the wildest rows; all are believed where trips
    were left out by one member each, which differs from nobody."""
    apart = [_farthest(d.members) for d in drives if len(d.members) > 1]
    return float(np.quantile(np.concatenate(apart), WILD)) if apart else FAR


def _farthest(members: Array) -> Array:
    return np.asarray(np.abs(members - np.median(members, axis=0)).max(axis=0))


def _ridge(x: Array, error: Array) -> Array:
    """Slopes of the strength whose mean absolute error on trips left out is least, 0 unless they pay.

    Leave-one-out errors come from one fit: e_i / (1 - H_ii), H the hat matrix with its intercept.
    """
    n = len(error)
    plain = np.abs(error - error.mean()) * n / (n - 1)
    best, found = plain, np.zeros(x.shape[1])
    for ridge in RIDGES:
        solve = np.linalg.solve(x.T @ x + ridge * n * np.eye(x.shape[1]), x.T)
        slopes = solve @ (error - error.mean())
        left_out = np.abs((error - error.mean() - x @ slopes) / (1.0 - 1.0 / n - np.sum(x * solve.T, axis=1)))
        if left_out.mean() < best.mean():
            best, found = left_out, slopes
    gain = plain - best
    return found if gain.mean() > gain.std() / np.sqrt(n) else np.zeros(x.shape[1])
