"""`evband.calibration.online` for many vehicles at once: the same offset and stretch, as columns."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.calibration.online import OnlineCalibration

Array = NDArray[np.float64]
Cars = NDArray[np.int64]


class OnlineColumns:
    """Offset and stretch of each vehicle, equal to an `OnlineCalibration` for each; settings are that class's own."""

    def __init__(self, vehicles: int, level: float = 0.9, hz: float = 1.0, **settings: Any) -> None:
        self.rule = OnlineCalibration(level, hz=hz, **settings)
        self.offset_kw, self.log_stretch, self.ticks = np.zeros(vehicles), np.zeros(vehicles), np.zeros(vehicles)

    def reset(self, cars: Cars) -> None:
        """Forget: a new drive starts with a cold cabin, not with the last drive's end."""
        for column in (self.offset_kw, self.log_stretch, self.ticks):
            column[cars] = 0.0

    def band(self, cars: Cars, mean: Array, lower: Array, upper: Array) -> tuple[Array, Array, Array]:
        """The corrected (mean, lower, upper), stretched about the model's mean."""
        k, centre = np.exp(self.log_stretch[cars]), mean + self.offset_kw[cars]
        return centre, centre + k * (lower - mean), centre + k * (upper - mean)

    def observe(self, cars: Cars, mean: Array, low: Array, high: Array, power_kw: Array) -> None:
        """Learn from the power measured for bands (`low`, `high`) given out; NaN changes nothing. `mean` is the model's."""
        known = np.isfinite(power_kw)
        cars, mean, low, high, power = cars[known], mean[known], low[known], high[known], power_kw[known]
        rule = self.rule
        missed = ~((low <= power) & (power <= high))
        bound = math.log(rule.limit)
        moved = self.log_stretch[cars] + rule.gamma / rule.hz * (missed - (1 - rule.level))
        self.log_stretch[cars] = np.clip(moved, -bound, bound)
        if rule.offset_s is not None:
            gain = np.maximum(1 / (rule.offset_s * rule.hz), 1 / (self.ticks[cars] + 1 + rule.start_s * rule.hz))
            self.offset_kw[cars] += np.minimum(gain, 1.0) * (power - mean - self.offset_kw[cars])
        self.ticks[cars] += 1

    def follow(self, cars: Cars, shift_kw: float, widening: float) -> None:
        """`OnlineCalibration.follow` of each."""
        bound = math.log(self.rule.limit)
        self.offset_kw[cars] -= shift_kw
        self.log_stretch[cars] = np.clip(self.log_stretch[cars] - math.log(widening), -bound, bound)

    def to_dict(self, car: int) -> dict[str, float]:
        return {name: float(getattr(self, name)[car]) for name in _STATE}

    def restore(self, car: int, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave; raises where it does not fit."""
        values = [float(saved[name]) for name in _STATE]
        if not all(map(math.isfinite, values)):
            raise ValueError("online calibration is not finite")
        for name, value in zip(_STATE, values, strict=True):
            getattr(self, name)[car] = value


_STATE = ("offset_kw", "log_stretch", "ticks")
