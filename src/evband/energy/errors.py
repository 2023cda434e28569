"""How the error of mean power over a stretch shrinks with its length: the variance that trip energy and range stand on.

Errors of a drive last: a heater, wind or load shift the whole trip, a warming cabin or a hill minutes of it. Measured minus
predicted power is taken as

    e_t = bias + sqrt(g_t) (b + u_t + w_t)

with a trip effect b (variance tau^2), a slow error u with correlation exp(-lag/L), and fast noise w with long-run variance R. So the
mean of e over T seconds has variance

    g (tau^2 + s^2 phi(T/L) + R/T) + k EU,   phi(x) = 2 (x - 1 + exp(-x)) / x^2

which for T far over L is the plain  tau^2 + LRV/T + k EU  with LRV = R + 2 s^2 L, and stays right for short stretches. EU is the
variance over members of their mean power, k how much of it shows in the errors of trips. k is estimated only over the range of EU
seen in calibration: what is beyond the usual EU there (a season or a speed that was missing) counts in full,
k min(EU, usual) + max(EU - usual, 0). g is how noisy the model itself calls the stretch: (1 - c) + c (its aleatoric variance over
that of the calibration trips); c = 0 would give a motorway the errors of a traffic jam. Trips' errors have heavy tails (one odd trip in ten), so the parts are fitted by the likelihood of a Student-t with
`tails` degrees of freedom, and a new trip's band is a t whose degrees of freedom also know how few trips it rests on:
1/dof = 1/tails + 1/(trips - 1).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evband.energy.drives import OUTSIDE, Drive
from evband.energy.mean import FAR, TripMean
from evband.energy.ways import NEW, Ways, part_of
from evband.errors import ArtifactError

Array = NDArray[np.float64]
PARTS = ("mean", "ways")  # fields with parts of their own
GAUSSIAN = 1e9  # degrees of freedom of a bell curve, nearly


def phi(x: ArrayLike) -> Array:
    """Variance of the mean of an exponentially correlated process over x correlation lengths; 1 at 0, 2/x far out."""
    lengths = np.maximum(x, 1e-4)
    found: Array = 2.0 * (lengths + np.expm1(-lengths)) / lengths**2
    return found


def disagreement(members: Array) -> Array:
    """EU: the unbiased variance over members [M, ...] -> [...]; calibration trips have few members that never saw them."""
    return np.asarray(members.var(axis=0) * (len(members) / max(len(members) - 1, 1)))


def relative_size(noise: Any, share: float, usual: float) -> Any:
    """g: a share c of it goes with the noise."""
    return (1.0 - share) + share * noise / usual


def counted(spread: Any, k: float, usual: Any) -> Any:
    """k of what members usually disagreed by, and all beyond."""
    return k * np.minimum(spread, usual) + np.maximum(spread - usual, 0.0)


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
    lasting: float = 1.0  # correlation of the trip effect so far with that of the rest: heaters warm up, winds turn
    spread: float = 1.0  # k
    tails: float = GAUSSIAN
    usual: float = FAR**2  # kW^2, the EU up to which calibration trips told k
    mean: TripMean = field(default_factory=TripMean)
    ways: Ways = field(default_factory=Ways)

    @property
    def dof(self) -> float:
        return 1.0 / (1.0 / self.tails + 1.0 / (self.trips - 1))

    def epistemic(self, members: Array, hours: Any = 1.0) -> Array:
        """What EU adds, of members' mean power [M, ...] -> [...] kW^2, or of their energies over so many `hours` -> kWh^2."""
        return np.asarray(counted(disagreement(members), self.spread, self.usual * np.square(hours)))

    @property
    def trip_effect(self) -> float:
        """tau^2 of a new trip: the bias was estimated from as many trip effects, so its own error comes on top."""
        return self.tau2 * (1.0 + 1.0 / self.trips)

    def within(self, seconds: Any) -> Any:
        """Variance in kW^2 of the mean over a stretch of what varies within a trip, where g is 1."""
        return self.slow * phi(seconds / self.slow_s) + self.fast / seconds

    def of_mean(self, seconds: ArrayLike, size: ArrayLike = 1.0) -> Array:
        """Variance in kW^2 of the mean error over a stretch, without EU."""
        return np.asarray(np.asarray(size) * (self.trip_effect + self.within(np.asarray(seconds, float))))

    def scale_kwh(self, seconds: Any, size_s: Any, members_kwh: Array, unit: Any = 1.0) -> Any:
        """Of the energy over a stretch: `size_s` is the sum of its g over its seconds, `members_kwh` [M, ...] the members' energies;
        errors are `unit` times those of this model."""
        hours = unit * seconds / 3600.0
        return np.sqrt(self.of_mean(seconds, size_s / seconds) * hours * hours + self.epistemic(members_kwh, hours))

    def sizes(self, drive: Drive) -> Array:
        """g of every row of a drive."""
        return np.asarray(self.size(drive.noise, drive.outside))

    def size(self, noise: Any, outside: Any) -> Any:
        """g of a row or of many; larger outside the training range, where nothing was measured (a convention, not a calibration)."""
        known = relative_size(np.minimum(noise, self.most), self.share, self.noise)
        return known * (1.0 + (OUTSIDE - 1.0) * outside)

    def on_its_way(self, drive: Drive) -> tuple[Drive, ErrorModel]:
        """A whole drive and its errors, both with what is known of its way; unchanged where nobody drove it before."""
        known = self.ways.known(drive)
        if known is NEW:
            return drive, self
        added = known.kwh_per_km[part_of(drive)] * drive.speed_kmh
        parts = {name: known.left * getattr(self, name) for name in ("tau2", "slow", "fast")}
        return replace(drive, mean=drive.mean + added, members=drive.members + added), replace(self, **parts)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Any) -> ErrorModel:
        """Inverse of `to_dict`; a model file is not to be trusted."""
        earlier = {name: getattr(cls, name) for name in ("spread", "tails", "usual")}  # what versions without them did
        try:
            saved = earlier | {"mean": TripMean().to_dict(), "ways": Ways().to_dict()} | dict(saved)
            values: dict[str, Any] = {f.name: float(saved[f.name]) for f in fields(cls) if f.name not in PARTS}
        except (KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(
                f"The energy calibration in the model file is damaged ({problem}); fit it again."
            ) from None
        sane = all(np.isfinite(v) for v in values.values()) and min(values[k] for k in ("slow_s", "noise", "most")) > 0
        if (
            not sane
            or min(values[k] for k in ("tau2", "slow", "fast", "share", "lasting", "spread", "usual")) < 0
            or values["lasting"] > 1
            or values["trips"] < 2
            or values["tails"] <= 0
        ):
            raise ArtifactError("The energy calibration in the model file is damaged; fit it again.")
        mean, ways = TripMean.from_dict(saved["mean"]), Ways.from_dict(saved["ways"])
        return cls(**{**values, "trips": int(values["trips"]), "mean": mean, "ways": ways})
