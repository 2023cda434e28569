"""Energy since each drive began, with its band, and what measured power says about the rest: `SoFar` as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.energy import ErrorModel, SoFar
from evband.energy.so_far import BLOCK_S, START_S, Belief
from evband.energy.student import stdtrit
from evband.trips.kept import kept, restore

Array = NDArray[np.float64]
Cars = NDArray[np.int64]
HOUR = 3600.0
_SUMS = ("km", "seconds", "mean_kwh", "measured_kwh", "size", "block_error", "block_size", "block_rows", "age")


class Tally:
    """Sums of the drive of each vehicle, as `evband.streaming.LineStream` keeps them for one; its errors are `unit` times those
    of `errors`, and what is known of them is kept in that unit."""

    def __init__(self, errors: ErrorModel | None, unit: Array, members: int, hz: float, level: float = 0.9) -> None:
        self.errors, self.unit, self.step, vehicles = errors, unit, 1.0 / hz, len(unit)
        self._sums = {name: np.zeros(vehicles) for name in (*_SUMS, *Belief._fields)}
        self.members_kwh = np.zeros((vehicles, members))
        self._quantile = 0.0 if errors is None else stdtrit(errors.dof, 0.5 + level / 2)
        self.reset(np.arange(vehicles))

    def __getitem__(self, name: str) -> Array:
        return self._sums[name]

    def reset(self, cars: Cars) -> None:
        """A new drive."""
        for column in self._sums.values():
            column[cars] = 0.0
        self.members_kwh[cars] = 0.0
        if self.errors is not None:
            self._sums["bb"][cars], self._sums["uu"][cars] = self.errors.trip_effect, self.errors.slow

    def add(
        self, cars: Cars, speed: Array, mean: Array, noise: Array, outside: NDArray[np.bool_], power: Array,
        location: Array, measuring: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        """One grid row each: measured energy where `power` is known, else predicted; `mean` is that over trips
        (`evband.energy.RowMean`), `noise` the aleatoric variance before any stretch, `measuring` whether the car's power is in use at all."""
        s, e = self._sums, self.errors
        s["km"][cars] += np.maximum(np.nan_to_num(speed), 0.0) * self.step / HOUR
        if e is None:
            return
        unit = self.unit[cars]
        size = e.size(noise / unit**2, outside)
        known = measuring & np.isfinite(power)
        some = cars[known]
        s["measured_kwh"][some] += power[known] * self.step / HOUR
        s["age"][cars[measuring]] += self.step
        scored = known & (s["age"][cars] > START_S)
        self._measured(cars[scored], ((power - mean) / unit)[scored], size[scored])
        self._wait(cars[measuring & ~scored], self.step)
        rest = ~known
        some = cars[rest]
        s["seconds"][some] += self.step
        s["mean_kwh"][some] += (mean + e.bias * unit)[rest] * self.step / HOUR
        s["size"][some] += size[rest] * self.step
        self.members_kwh[some] += location[rest] * (self.step / HOUR)  # what all members share changes no spread

    def _measured(self, cars: Cars, error: Array, size: Array) -> None:
        s = self._sums
        s["block_error"][cars] += error
        s["block_size"][cars] += size
        s["block_rows"][cars] += 1.0
        full = cars[s["block_rows"][cars] * self.step >= BLOCK_S - 1e-9]
        if len(full):
            assert self.errors is not None
            rows = s["block_rows"][full]
            seen = s["block_error"][full] / rows, s["block_size"][full] / rows, rows * self.step
            self._believe(full, self._belief(full).given(*seen, self.errors))
            for name in ("block_error", "block_size", "block_rows"):
                s[name][full] = 0.0

    def _wait(self, cars: Cars, seconds: float) -> None:
        if len(cars) and self.errors is not None:
            self._believe(cars, self._belief(cars).after(seconds, self.errors))

    def _belief(self, cars: Cars) -> Belief:
        return Belief(*(self._sums[name][cars] for name in Belief._fields))

    def _believe(self, cars: Cars, belief: Belief) -> None:
        for name, column in belief._asdict().items():
            self._sums[name][cars] = column

    def energy(self, cars: Cars) -> tuple[Array, Array, Array] | None:
        """(mean, lower, upper) in kWh since the drive began; exact as far as it was measured."""
        e, s = self.errors, self._sums
        if e is None:
            return None
        seconds, members = s["seconds"][cars], self.members_kwh[cars]
        scale = e.scale_kwh(np.maximum(seconds, self.step), s["size"][cars], members.T, self.unit[cars])
        centre = s["measured_kwh"][cars] + s["mean_kwh"][cars]
        half = self._quantile * np.where(seconds > 0.0, scale, 0.0)
        return centre, centre - half, centre + half

    def past(self, cars: Cars) -> SoFar:
        """The drives so far as one `SoFar` whose numbers are columns [cars, 1]: what `Ahead.energy` needs of them, in `unit`."""
        assert self.errors is not None
        past = SoFar(self.errors)
        past.now = Belief(*(column[:, None] for column in self._belief(cars)))
        return past

    def past_of(self, car: int) -> SoFar:
        assert self.errors is not None
        past = SoFar(self.errors)
        past.now = Belief(*(float(self._sums[name][car]) for name in Belief._fields))
        return past

    def to_dict(self, car: int) -> dict[str, Any]:
        return kept(self._sums | {"members_kwh": self.members_kwh}, car)

    def restore(self, car: int, saved: dict[str, Any]) -> None:
        restore(self._sums | {"members_kwh": self.members_kwh}, car, saved, finite=True)
