"""Online calibration: learns a bias, holds coverage, never gives an infinite or empty band, agrees with MAPIE's update."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from mapie.regression import TimeSeriesRegressor
from sklearn.dummy import DummyRegressor

from evband.calibration.online import OnlineCalibration
from evband.errors import SettingsError

HALF = 1.6448536


def drive(calibration, power):
    """Bands (0, -HALF, HALF) against a stream of measured power; returns what was covered and all the bands."""
    bands = []
    for value in power:
        bands.append(calibration.band(0.0, -HALF, HALF))
        calibration.observe(value)
    mean, lower, upper = np.array(bands).T
    return (lower <= power) & (power <= upper), mean, lower, upper


def test_offset_learns_a_bias_that_stretch_alone_must_pay_for():
    power = 3.0 + np.random.default_rng(0).normal(size=3000)
    plain, *_ = drive(OnlineCalibration(offset_s=None, gamma=0), power)
    shifted, mean, *_ = drive(OnlineCalibration(gamma=0), power)
    _, _, low_only, high_only = drive(OnlineCalibration(offset_s=None), power)
    covered, _, low, high = drive(OnlineCalibration(), power)
    assert plain.mean() < 0.2
    assert shifted[300:].mean() == pytest.approx(0.9, abs=0.02)
    assert mean[60:].mean() == pytest.approx(3.0, abs=0.1)
    assert covered[:600].mean() == pytest.approx(0.9, abs=0.03)
    assert np.mean(high - low) < 0.7 * np.mean(high_only - low_only)


@pytest.mark.parametrize("size", [0.1, 0.5, 3.0])
def test_coverage_is_reached_whatever_the_noise(size):
    power = size * np.random.default_rng(1).normal(size=20_000)
    calibration = OnlineCalibration(offset_s=None)
    covered, *_ = drive(calibration, power)
    assert abs(covered.mean() - 0.9) <= abs(calibration.learned.log_stretch) / (calibration.gamma * 20_000) + 1e-12
    assert covered.mean() == pytest.approx(0.9, abs=0.005)


def test_bands_are_never_infinite_or_empty():
    """Power that is always far outside, then always dead centre."""
    power = np.concatenate([np.tile([1e6, -1e6], 2000), np.zeros(40_000)])
    _, mean, lower, upper = drive(OnlineCalibration(offset_s=None, limit=10.0), power)
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()
    assert (lower < mean).all()
    assert (mean < upper).all()
    assert (upper - lower).max() == pytest.approx(10 * 2 * HALF)
    assert (upper - lower).min() == pytest.approx(2 * HALF / 10)


def test_the_level_follows_mapie():
    """Same hits and misses, same alpha: log stretch is the nominal alpha minus MAPIE's adapted one."""
    rng = np.random.default_rng(2)
    x, train = np.zeros((200, 1)), rng.normal(size=200)
    mapie = TimeSeriesRegressor(DummyRegressor(strategy="constant", constant=0.0), method="aci", cv="prefit")
    mapie.estimator.fit(x, train)
    mapie.fit(x, train)
    ours = OnlineCalibration(0.7, offset_s=None, gamma=0.004, limit=1e6)
    for value in 1.5 * rng.normal(size=60):
        alpha = mapie.current_alpha[0.3] if getattr(mapie, "current_alpha", None) else 0.3
        half = mapie.predict(np.zeros((1, 1)), confidence_level=0.7)[1][0, 1, 0]
        assert ours.learned.log_stretch == pytest.approx(0.3 - alpha, abs=1e-12)
        mapie.adapt_conformal_inference(np.zeros((1, 1)), np.array([value]), gamma=0.004, confidence_level=0.7)
        ours.band(0.0, -half / ours.stretch, half / ours.stretch)  # the band MAPIE gave
        ours.observe(value)
    assert abs(ours.learned.log_stretch) > 0.01


def test_missing_power_changes_nothing():
    calibration = OnlineCalibration()
    calibration.observe(5.0)  # no band yet
    calibration.band(0.0, -1.0, 1.0)
    for nothing in (None, math.nan, math.inf):
        calibration.observe(nothing)
    assert (calibration.learned.offset_kw, calibration.stretch, calibration.learned.ticks) == (0.0, 1.0, 0)
    calibration.observe(5.0)
    calibration.observe(5.0)  # that band has been answered
    assert calibration.learned.ticks == 1


def test_bands_are_causal_and_the_state_continues_them_exactly():
    power = np.random.default_rng(3).normal(2, 3, size=500)
    whole = OnlineCalibration(hz=2.0)
    *_, lower, upper = drive(whole, power)
    first = OnlineCalibration(hz=2.0)
    drive(first, power[:200])
    first.band(0.0, -HALF, HALF)
    again = OnlineCalibration.from_dict(json.loads(json.dumps(first.to_dict())))
    again.observe(power[200])
    *_, low, high = drive(again, power[201:])
    np.testing.assert_array_equal(low, lower[201:])
    np.testing.assert_array_equal(high, upper[201:])
    assert again.to_dict() == whole.to_dict()
    again.reset()
    assert again.to_dict() == OnlineCalibration(hz=2.0).to_dict()


@pytest.mark.parametrize("damage", [{}, {"level": 7}, {"waiting": [1]}, {"offset_kw": "x"}])
def test_damaged_state_is_refused(damage):
    saved = OnlineCalibration().to_dict()
    with pytest.raises(SettingsError):
        OnlineCalibration.from_dict({**saved, **damage} if damage else {})


@pytest.mark.parametrize("wrong", [{"hz": 0}, {"offset_s": 0}, {"gamma": -1}, {"limit": 1}, {"level": 1.0}])
def test_settings_are_checked(wrong):
    with pytest.raises(SettingsError):
        OnlineCalibration(**wrong)
