"""Wheel power from motion, and the battery power that a data sheet alone gives.

    Pw = (1.05 m a + c_rr m g cos + rho CdA (v + wind)^2 / 2 + m g sin) v

Plain functions of floats or arrays that broadcast together; slope is rise over run, a head wind is positive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

GRAVITY = 9.81  # m/s2
AIR_DENSITY = 1.2  # kg/m3, at 20 C near sea level
ROTATING = 1.05  # share of mass that rotating parts add to inertia
BASE_KW = 0.5  # auxiliaries that always run
DRIVING = 0.88  # wheel power over battery power while driving
REGENERATING = 0.65  # battery power over wheel power while braking, friction brakes included
HEATING_BELOW_C, COOLING_ABOVE_C = 18.0, 22.0  # in between the cabin asks for neither


class WheelPower(NamedTuple):
    """The parts of the power at the wheels, each in kW."""

    inertia_kw: Array
    rolling_kw: Array
    drag_kw: Array
    slope_kw: Array

    @property
    def total_kw(self) -> Array:
        return np.asarray(self.inertia_kw + self.rolling_kw + self.drag_kw + self.slope_kw)


def wheel_power(
    speed_ms: ArrayLike,
    acceleration_ms2: ArrayLike,
    mass_kg: ArrayLike,
    cda_m2: ArrayLike,
    crr: ArrayLike,
    slope: ArrayLike = 0.0,
    wind_ms: ArrayLike = 0.0,
    air_density_kg_m3: ArrayLike = AIR_DENSITY,
) -> WheelPower:
    """Power at the wheels in kW, part by part; a tail wind faster than the car pushes it.

    >>> float(wheel_power(25.0, 0.0, 1930.0, 0.53, 0.0085).total_kw.round(2))
    8.99
    """
    v, a, m, area, tyre, rise, wind, rho = (
        np.asarray(x, dtype=float)
        for x in (speed_ms, acceleration_ms2, mass_kg, cda_m2, crr, slope, wind_ms, air_density_kg_m3)
    )
    cosine = 1.0 / np.sqrt(1.0 + rise**2)
    air = v + wind
    return WheelPower(
        np.asarray(ROTATING * m * a * v / 1000.0),
        np.asarray(tyre * m * GRAVITY * cosine * v / 1000.0),
        np.asarray(0.5 * rho * area * air * np.abs(air) * v / 1000.0),
        np.asarray(m * GRAVITY * rise * cosine * v / 1000.0),
    )


def sheet_power_kw(wheel_kw: ArrayLike) -> Array:
    """Battery power in kW with typical losses, no heating and nothing fitted: 0.5 + Pw / 0.88 (0.65 Pw where negative).

    >>> float(sheet_power_kw(8.8))
    10.5
    """
    wheel = np.asarray(wheel_kw, dtype=float)
    return BASE_KW + np.where(wheel >= 0, wheel / DRIVING, REGENERATING * wheel)
