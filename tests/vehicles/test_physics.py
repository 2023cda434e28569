"""Wheel power part by part against hand-computed numbers, and the battery power of a data sheet."""

import numpy as np
import pytest

from evband.vehicles import sheet_power_kw, wheel_power


def test_parts_by_hand():
    parts = wheel_power(20.0, 0.5, 1500.0, 0.6, 0.01, slope=0.03, wind_ms=5.0, air_density_kg_m3=1.2)
    assert parts.inertia_kw == pytest.approx(1.05 * 1500 * 0.5 * 20 / 1000)
    assert parts.drag_kw == pytest.approx(0.6 * 0.6 * 25**2 * 20 / 1000)
    assert parts.rolling_kw == pytest.approx(0.01 * 1500 * 9.81 * 20 / 1000, rel=1e-3)
    assert parts.slope_kw == pytest.approx(1500 * 9.81 * 0.03 * 20 / 1000, rel=1e-3)
    assert parts.total_kw == pytest.approx(sum(parts))


def test_arrays_broadcast_and_a_tail_wind_pushes():
    speed = np.array([0.0, 10.0, 30.0])
    assert wheel_power(speed, 0.0, 1500.0, 0.6, 0.01).total_kw.shape == (3,)
    assert wheel_power(speed, 0.0, 1500.0, 0.6, 0.01).total_kw[0] == 0
    assert wheel_power(10.0, 0.0, 1500.0, 0.6, 0.01, wind_ms=-20.0).drag_kw < 0


def test_battery_power_of_the_sheet():
    assert sheet_power_kw([8.8, 0.0, -10.0]) == pytest.approx([10.5, 0.5, -6.0])
