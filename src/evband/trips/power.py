"""Battery power as a function of time, its energy over any stretch, and power rebuilt from current and voltage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evband.channels import CHANNELS
from evband.trips.readings import Series

Array = NDArray[np.float64]


def steady_step(time_s: Array) -> float | None:
    """The sampling step of a log that was sampled steadily (95 % of steps within 2 % of the median), else None."""
    if len(time_s) < 3:
        return None
    steps = np.diff(time_s)
    step = float(np.median(steps))
    steady = np.abs(steps - step) <= 0.02 * step + 1e-9
    return step if step > 0 and float(np.mean(steady)) >= 0.95 else None


SLOW_S = 5.0
"""A log whose readings are further apart than this is a slow one: each reading stands for the interval that ends at it."""


def rate_of(time_s: Array) -> float:
    """Readings per second, by their median step; NaN of a single one."""
    return float(1.0 / np.median(np.diff(time_s))) if len(time_s) > 1 else float("nan")


def gap_of(time_s: Array, max_gap_s: float) -> float:
    """How far apart two readings may be without a gap between them: `max_gap_s`, or three steps of a slow log.

    >>> gap_of(np.arange(100.0), 10.0), gap_of(60.0 * np.arange(100.0), 10.0)
    (10.0, 180.0)
    """
    return max(max_gap_s, 3.0 * float(np.median(np.diff(time_s)))) if is_slow(time_s) else max_gap_s


def is_slow(time_s: Array) -> bool:
    """Whether these are the readings of a slow log: ten at least, most of them further apart than `SLOW_S`."""
    return len(time_s) >= 10 and float(np.median(np.diff(time_s))) > SLOW_S


def rebuild_power(current: Series, voltage: Series) -> Series:
    """Power in kW at the current's own instants: P = I V / 1000, V interpolated to that instant.

    Current moves fast and voltage slowly, so it is the voltage that may be interpolated. Instants with no voltage reading
    nearer than the voltage's `max_age_s` have no power.
    """
    time_i, amperes = current
    time_v, volts = voltage
    if not len(time_v) or not len(time_i):
        return np.empty(0), np.empty(0)
    after = np.searchsorted(time_v, time_i)
    nearest = np.minimum(
        np.abs(time_i - time_v[np.minimum(after, len(time_v) - 1)]), np.abs(time_i - time_v[np.maximum(after - 1, 0)])
    )
    near = nearest <= CHANNELS["battery_voltage_v"].max_age_s
    power = amperes * np.interp(time_i, time_v, volts) / 1000.0
    return time_i[near], power[near]


@dataclass(frozen=True)
class PowerCurve:
    """Measured power as pieces [start, end] on which it runs straight from `first` to `last`; unknown between pieces.

    A steadily sampled log: a reading is the mean over the step that ends at it (a constant piece). An asynchronous log:
    a straight line between two readings no further apart than `max_gap_s` (trapezoids); in a slow one (`SLOW_S`) the mean
    over the interval that ends at the reading. Either way energy is one
    function F(t), so any grid drawn over it holds the same energy.
    """

    start: Array  # [pieces], s
    end: Array
    first: Array  # kW
    last: Array

    @classmethod
    def of(cls, power: Series, max_gap_s: float) -> PowerCurve:
        time, kw = power
        step = steady_step(time)
        if step is not None:
            before = np.concatenate([[time[0] - step], time[:-1]])
            start = np.where(time - before <= 1.5 * step, before, time - step)
            return cls(start, time, kw, kw)
        joined = np.diff(time) <= gap_of(time, max_gap_s)
        if is_slow(time):
            return cls(time[:-1][joined], time[1:][joined], kw[1:][joined], kw[1:][joined])
        return cls(time[:-1][joined], time[1:][joined], kw[:-1][joined], kw[1:][joined])

    def energy_until(self, time_s: Array) -> tuple[Array, Array]:
        """F(t): (energy in kW s, measured seconds) from the first piece up to each instant."""
        length = self.end - self.start
        energy = np.concatenate([[0.0], np.cumsum(length * (self.first + self.last) / 2)])
        seconds = np.concatenate([[0.0], np.cumsum(length)])
        piece = np.searchsorted(self.start, time_s, side="right") - 1
        inside = piece >= 0
        j = np.maximum(piece, 0)
        if not len(length):
            return np.zeros_like(time_s), np.zeros_like(time_s)
        x = np.where(inside, np.clip(time_s - self.start[j], 0.0, length[j]), 0.0)
        slope = (self.last[j] - self.first[j]) / length[j]
        return energy[j] + x * (self.first[j] + slope * x / 2), seconds[j] + x

    def bin_means(self, ends: Array, width: float) -> Array:
        """Mean power of each bin (end - width, end], over the part of it that was measured.

        NaN where less than half of the bin was measured. Where all of it was, mean times width is its energy exactly.
        """
        upper, upper_s = self.energy_until(ends)
        lower, lower_s = self.energy_until(ends - width)
        measured = upper_s - lower_s
        known = measured >= 0.5 * width * (1 - 1e-9)
        return np.where(known, (upper - lower) / np.where(known, measured, 1.0), np.nan)

    def energy_kwh(self) -> float:
        """The energy of all pieces together."""
        return float(np.sum((self.end - self.start) * (self.first + self.last)) / 7200.0)
