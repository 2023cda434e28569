"""The way ahead: how much energy reaching each point of a route takes, as a distribution, and how far a battery goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.energy.drives import Drive
from evband.energy.errors import ErrorModel
from evband.energy.floor import below
from evband.energy.planned import Planned
from evband.energy.so_far import SoFar
from evband.energy.student import stdtr, stdtrit

Array = NDArray[np.float64]
FARTHEST_KM = 2000.0
SLIGHT = 0.04  # the way is followed until the chance to get that far is this small
POINTS = 400  # of a way, about
LAP_KM = 1.0  # a shorter way is repeated several times at once


@dataclass(frozen=True, eq=False)
class Ahead:
    """Points along the way; all amounts count from its beginning.

    `doubts` are inputs that nobody knows exactly (weather, load, ...): what one standard deviation of each adds to the energy to
    each point. They hold all along the way, so deviations add up, not variances. `planned`: the way is a plan, not a drive, of which
    `counted_km` count.
    """

    errors: ErrorModel
    km: Array  # [points]
    seconds: Array  # [points]
    mean_kwh: Array  # [points]
    members_kwh: Array  # [M, points]
    size: Array  # [points] sum of g times seconds
    doubts: Mapping[str, Array] = field(default_factory=dict)  # kWh [points] each
    planned: Planned | None = None
    counted_km: Array = field(default_factory=lambda: np.zeros(0))  # [points] where it is a plan

    @classmethod
    def of(
        cls,
        drive: Drive,
        errors: ErrorModel,
        doubts: Mapping[str, Array] | None = None,
        planned: Planned | None = None,
        road_kmh: Array | None = None,
    ) -> Ahead:
        """From predicted rows, thinned to about `POINTS`; `doubts` are kW of every row, `road_kmh` its road's planned speed."""
        step = max(1, len(drive) // POINTS)
        at = np.unique(np.append(np.arange(step - 1, len(drive), step), len(drive) - 1))
        hours = 1.0 / drive.hz / 3600.0
        counted = np.zeros(0)
        if planned is not None:
            road = planned.counted(drive.speed_kmh if road_kmh is None else road_kmh)
            counted = np.cumsum(road * drive.speed_kmh)[at] * hours
        return cls(
            errors,
            drive.distance_km[at],
            (at + 1) / drive.hz,
            np.cumsum(drive.mean)[at] * hours,
            np.cumsum(drive.members, axis=1)[:, at] * hours,
            np.cumsum(errors.sizes(drive))[at] / drive.hz,
            {name: np.cumsum(kw)[at] * hours for name, kw in (doubts or {}).items()},
            planned,
            counted,
        )

    def at(self, points: NDArray[np.intp]) -> Ahead:
        """Some of the points."""
        return replace(
            self, km=self.km[points], seconds=self.seconds[points], mean_kwh=self.mean_kwh[points],
            members_kwh=self.members_kwh[:, points], size=self.size[points],
            doubts={name: kwh[points] for name, kwh in self.doubts.items()},
            counted_km=self.counted_km[points] if self.planned else self.counted_km,
        )  # fmt: skip

    def then(self, other: Ahead) -> Ahead:
        """This way, followed by another."""
        return replace(
            self,
            km=np.append(self.km, self.km[-1] + other.km),
            seconds=np.append(self.seconds, self.seconds[-1] + other.seconds),
            mean_kwh=np.append(self.mean_kwh, self.mean_kwh[-1] + other.mean_kwh),
            members_kwh=np.concatenate([self.members_kwh, self.members_kwh[:, -1:] + other.members_kwh], axis=1),
            size=np.append(self.size, self.size[-1] + other.size),
            doubts={n: np.append(kwh, kwh[-1] + other.doubts[n]) for n, kwh in self.doubts.items()},
            counted_km=np.append(self.counted_km, self.counted_km[-1:] + other.counted_km),
        )

    def after(self, km: float) -> Ahead:
        """What is left of the way once `km` are driven."""
        i = int(np.searchsorted(self.km, km, side="right"))
        if i == 0:
            return self
        i = min(i, len(self.km) - 1)
        j = i - 1
        return replace(
            self,
            km=self.km[i:] - self.km[j],
            seconds=self.seconds[i:] - self.seconds[j],
            mean_kwh=self.mean_kwh[i:] - self.mean_kwh[j],
            members_kwh=self.members_kwh[:, i:] - self.members_kwh[:, j : j + 1],
            size=self.size[i:] - self.size[j],
            doubts={n: kwh[i:] - kwh[j] for n, kwh in self.doubts.items()},
            counted_km=self.counted_km[i:] - self.counted_km[j : j + 1],
        )

    def energy(self, past: SoFar) -> tuple[Array, Array]:
        """(mean, t scale) in kWh of the energy to each point, given the drive so far."""
        mean, parts = self.parts(past)
        return mean, np.sqrt(sum(parts.values()))

    def sides(self, past: SoFar) -> tuple[Array, Array, Array]:
        """(mean, t scale below it, t scale above it) in kWh of the energy to each point, given the drive so far."""
        mean, scale = self.energy(past)
        rate = mean[..., -1:] / max(float(self.km[-1]), 1e-9)
        return mean, below(scale, np.maximum(mean, rate * self.km), self.errors.dof), scale

    def parts(self, past: SoFar) -> tuple[Array, dict[str, Array]]:
        """(mean in kWh, variance in kWh^2 by source) of the energy to each point: `trip` is what no input tells, `model` what
        the members disagree about, `plan` how drives differ from plans, then every doubt."""
        hours = self.seconds / 3600.0
        shift, variance = past.ahead(self.seconds, self.size / self.seconds)
        mean = self.mean_kwh + shift * hours
        parts = {"trip": variance * hours**2, "model": self.errors.epistemic(self.members_kwh, hours)}
        if self.planned is not None:
            more, parts["plan"] = self.planned.over(self.km, self.counted_km)
            mean = mean + more
        return mean, parts | {name: kwh**2 for name, kwh in self.doubts.items()}

    def chances(self, battery_kwh: Any, past: SoFar, battery_sd: float = 0.0) -> Array:
        """P(the battery reaches each point): it must not be empty anywhere before, so the chance never rises again.

        `battery_sd`: standard deviation in kWh of what the battery holds. Batteries [cars, 1] go with a `past` of such columns."""
        mean, low, high = self.sides(past)
        scale = np.where(battery_kwh < mean, low, high)
        chance = stdtr(self.errors.dof, (battery_kwh - mean) / np.hypot(scale, battery_sd))
        return np.minimum.accumulate(chance, axis=-1)

    def reach(
        self, battery_kwh: float, past: SoFar, p: tuple[float, ...] = (0.05, 0.5, 0.95), battery_sd: float = 0.0
    ) -> list[float]:
        """Quantiles of the distance at which the battery is empty, at most the length of this way."""
        if battery_kwh <= 0:
            return [0.0 for _ in p]
        chance = np.append(1.0, self.chances(battery_kwh, past, battery_sd))
        return [float(np.interp(q - 1.0, -chance, np.append(0.0, np.minimum(self.km, FARTHEST_KM)))) for q in p]

    def quantiles(self, past: SoFar, p: float, battery_sd: float = 0.0) -> Array:
        """The p-quantile of the energy to each point (and, with `battery_sd`, of what is missing of the battery)."""
        mean, low, high = self.sides(past)
        scale = low if p < 0.5 else high
        return np.asarray(mean + stdtrit(self.errors.dof, p) * np.hypot(scale, battery_sd))

    def needed(self, past: SoFar, p: float, charge_sd: float = 0.0, capacity_sd: float = 0.0) -> Array:
        """What a battery must hold to reach each point with chance p, where it holds more or less by `charge_sd` kWh and by the
        share `capacity_sd` of it: u = mean + t sqrt(scale^2 + charge_sd^2 + (capacity_sd u)^2), infinite where nothing is enough."""
        mean, _, _ = self.sides(past)
        spread, grows = self.quantiles(past, p, charge_sd) - mean, stdtrit(self.errors.dof, p) * capacity_sd
        rest = 1.0 - grows**2
        root = (grows * mean) ** 2 + rest * spread**2
        if rest <= 0.0 and p > 0.5:
            return np.full(len(mean), np.inf)
        found = (mean + np.sign(spread) * np.sqrt(np.maximum(root, 0.0))) / (rest or 1e-9)
        return np.where(root < 0.0, -np.inf, found)


def long_enough(first: Ahead, again: Ahead, battery_kwh: float, past: SoFar, battery_sd: float = 0.0) -> Ahead:
    """The way, with `again` appended until hardly any battery of this size reaches its end."""
    way, piece = first, again
    while 0.0 < piece.km[-1] < LAP_KM:
        piece = piece.then(piece)
    while way.km[-1] < FARTHEST_KM and (battery_kwh > 0 and way.chances(battery_kwh, past, battery_sd)[-1] > SLIGHT):
        way = way.then(piece)
        if len(way.km) > 4000:  # long ways need no finer points than their length
            way = _every_other(way)
            piece = _every_other(piece)
    return way


def _every_other(way: Ahead) -> Ahead:
    return way.at(np.unique(np.append(np.arange(1, len(way.km), 2), len(way.km) - 1)))
