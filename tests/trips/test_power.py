import numpy as np
import pytest

from evband.trips.power import PowerCurve, rebuild_power, steady_step


def test_steady_step_tells_a_sampled_log_from_an_asynchronous_one():
    time = np.arange(100) * 0.1
    assert steady_step(time.astype(np.float32).astype(float)) == pytest.approx(0.1)
    assert steady_step(np.delete(time, [10, 11])) == pytest.approx(0.1)
    assert steady_step(np.cumsum(np.random.default_rng(0).uniform(0.9, 1.5, 100))) is None
    assert steady_step(time[:2]) is None


def test_power_is_rebuilt_at_the_currents_own_instants():
    current = (np.array([0.5, 1.5, 2.0]), np.array([100.0, -50.0, 10.0]))
    voltage = (np.array([0.0, 1.0, 2.0]), np.array([400.0, 390.0, 380.0]))
    time, kw = rebuild_power(current, voltage)
    np.testing.assert_array_equal(time, current[0])
    np.testing.assert_allclose(kw, [39.5, -19.25, 3.8])


def test_no_power_far_from_any_voltage():
    current = (np.array([0.0, 500.0]), np.array([1.0, 1.0]))
    time, _ = rebuild_power(current, (np.array([1.0, 2.0]), np.array([400.0, 400.0])))
    np.testing.assert_array_equal(time, [0.0])
    assert len(rebuild_power(current, (np.empty(0), np.empty(0)))[0]) == 0


def test_energy_is_not_integrated_across_a_gap():
    time = np.array([0.0, 1.1, 2.0, 3.2, 100.0, 101.1, 102.0])
    curve = PowerCurve.of((time, np.full(7, 36.0)), max_gap_s=10.0)
    assert curve.energy_kwh() == pytest.approx((3.2 + 2.0) * 36 / 3600)
    steady = np.concatenate([np.arange(20.0), np.arange(100.0, 120.0)])
    assert PowerCurve.of((steady, np.full(40, 36.0)), max_gap_s=10.0).energy_kwh() == pytest.approx(40 * 36 / 3600)


def test_a_single_reading_has_no_energy():
    assert PowerCurve.of((np.array([1.0]), np.array([5.0])), 10.0).energy_kwh() == 0.0
    means = PowerCurve.of((np.array([1.0]), np.array([5.0])), 10.0).bin_means(np.array([1.0, 2.0]), 1.0)
    assert np.isnan(means).all()
