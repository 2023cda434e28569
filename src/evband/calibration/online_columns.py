"""`evband.calibration.online` for many vehicles at once: the same offset and stretch, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.calibration.online import Learned, OnlineCalibration
from evband.trips.kept import kept, restore

Array = NDArray[np.float64]
Cars = NDArray[np.int64]


class OnlineColumns:
    """Offset and stretch of each vehicle, equal to an `OnlineCalibration` for each; settings are that class's own."""

    def __init__(self, vehicles: int, level: float = 0.9, hz: float = 1.0, **settings: Any) -> None:
        self.rule = OnlineCalibration(level, hz=hz, **settings)
        self._learned = Learned(*np.zeros((len(Learned._fields), vehicles)))

    def learned(self, cars: Cars) -> Learned:
        """What was learned of these."""
        return Learned(*(column[cars] for column in self._learned))

    def _learn(self, cars: Cars, found: Learned) -> None:
        for column, value in zip(self._learned, found, strict=True):
            column[cars] = value

    def reset(self, cars: Cars) -> None:
        """Forget: a new drive starts with a cold cabin, not with the last drive's end."""
        self._learn(cars, Learned())

    def observe(
        self, cars: Cars, mean: Array, low: Array, high: Array, power_kw: Array, trust: Array | float = 1.0
    ) -> None:
        """Learn from the power measured for bands (`low`, `high`) given out; NaN changes nothing. `mean` is the model's;
        `trust` as `OnlineCalibration.after` has it."""
        known = np.isfinite(power_kw)
        cars, mean, low, high, power = cars[known], mean[known], low[known], high[known], power_kw[known]
        trust = np.broadcast_to(trust, known.shape)[known]
        self._learn(cars, self.rule.after(self.learned(cars), mean, low, high, power, trust))

    def follow(self, cars: Cars, shift_kw: float, widening: float) -> None:
        """`OnlineCalibration.follow` of each."""
        self._learn(cars, self.rule.moved(self.learned(cars), shift_kw, widening))

    def to_dict(self, car: int) -> dict[str, Any]:
        return kept(self._learned._asdict(), car)

    def restore(self, car: int, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave; raises where it does not fit."""
        restore(self._learned._asdict(), car, saved, finite=True)
