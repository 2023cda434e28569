"""Offline calibration: coverage on new trips, agreement with crepes and MAPIE, too few trips."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from crepes import ConformalRegressor
from mapie.regression import SplitConformalRegressor
from sklearn.dummy import DummyRegressor

from evband.bands import GaussianMixture, QuantileSet, StudentMixture
from evband.calibration import conformal_stretch, fit_stretch, fit_stretches, minimum_trips
from evband.errors import SettingsError, TripsError
from evband.scores import evaluate
from forecasters import correlated_errors, gaussian_bands, make_bands, student_bands


def draw(rng, trips, trip_spread, scale=1.0):
    """Trips whose errors are correlated in time and differ in size from trip to trip; bands that are a factor too narrow."""
    lengths = rng.integers(100, 600, size=trips)
    size = np.repeat(np.exp(trip_spread * rng.normal(size=trips)), lengths)
    return gaussian_bands(size * correlated_errors(rng, lengths, trip_std=0.2), lengths, scale)


@pytest.mark.parametrize(("trips", "spread"), [(9, 0.2), (15, 0.2), (30, 0.2), (30, 0.5)])
def test_new_trips_are_covered_on_average(trips, spread):
    """Mean coverage over 60 draws, whose standard error is at most 0.007: 0.88-0.92. The conformal bound covers more."""
    mean, bound = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        old, new = draw(rng, trips, spread, 0.6), draw(rng, 40, spread, 0.6)
        needed = new.needed_stretch(new.power_kw)
        mean.append(np.mean(needed <= fit_stretch(old)))
        bound.append(np.mean(needed <= conformal_stretch(old)))
    assert 0.88 <= np.mean(mean) <= 0.92
    assert np.mean(bound) >= 0.9
    assert np.mean(bound) >= np.mean(mean)


def test_stretched_bands_cover_what_was_asked():
    bands = student_bands(np.random.default_rng(0), [300] * 20).stretched(0.5)
    k = fit_stretch(bands, 0.8)
    assert k == pytest.approx(2, rel=0.1)
    assert evaluate(bands.stretched(k), level=0.8)["coverage"] == pytest.approx(0.8, abs=0.005)


def test_needed_stretch_is_where_coverage_begins():
    bands = student_bands(np.random.default_rng(1), [50])
    for row, k in enumerate(bands.needed_stretch(bands.power_kw, 0.7)[:10]):
        inside = [
            evaluate(bands.rows(np.arange(50) == row).stretched(k * f), level=0.7)["coverage"] for f in (0.999, 1.001)
        ]
        assert inside == [0, 1]


@pytest.mark.parametrize("level", [0.8, 0.9])
def test_trips_of_one_row_give_split_conformal_prediction(level):
    rng = np.random.default_rng(2)
    error, scale = rng.normal(size=57), 1.7
    bands = gaussian_bands(error, [1] * 57, scale)
    lower, upper = bands.interval(level)
    half = conformal_stretch(bands, level) * (upper[0] - lower[0]) / 2

    crepes = ConformalRegressor().fit(error).predict_int(np.zeros(1), confidence=level)
    assert half == pytest.approx(crepes[0, 1], rel=1e-9)

    zeros = np.zeros((57, 1))
    mean = DummyRegressor(strategy="constant", constant=0.0).fit(zeros, error)
    mapie = SplitConformalRegressor(mean, confidence_level=level, prefit=True).conformalize(zeros, error)
    assert half == pytest.approx(float(np.ravel(mapie.predict_interval(zeros[:1])[1])[1]), rel=1e-9)


def test_quantile_methods_calibrate_too():
    rng = np.random.default_rng(3)
    q = np.tile(0.5 * np.linspace(-1.6, 1.6, 19)[None, :, None], (1, 1, 2000))
    bands = make_bands(QuantileSet(q), [100] * 20, rng.normal(size=2000))
    assert evaluate(bands.stretched(fit_stretch(bands)))["coverage"] == pytest.approx(0.9, abs=0.01)


def test_too_few_trips_are_refused_with_the_reason():
    assert (minimum_trips(0.9), minimum_trips(0.8), minimum_trips(0.95)) == (9, 4, 19)
    bands = student_bands(np.random.default_rng(4), [50] * 8)
    for rule in (fit_stretch, conformal_stretch):
        with pytest.raises(TripsError, match=r"at least 9 trips .* there are 8"):
            rule(bands)
        assert rule(bands, 0.8) > 0
    with pytest.raises(TripsError, match="there are 0"):
        fit_stretch(make_bands(bands.members, [50] * 8))
    with pytest.raises(SettingsError, match="level"):
        fit_stretch(bands, 1.2)


def test_perfect_bands_give_no_scale():
    with pytest.raises(TripsError, match="not a scale"):
        fit_stretch(gaussian_bands(np.zeros(90), [10] * 9))


def test_warmup_and_unmeasured_rows_do_not_count():
    bands = student_bands(np.random.default_rng(5), [100] * 10)
    power, warmup = bands.power_kw.copy(), np.tile(np.arange(100) < 10, 10)
    power[warmup] = 1000.0
    power[50] = np.nan
    trusted = ~warmup & np.isfinite(power)
    full = make_bands(bands.members, [100] * 10, power, warmup=warmup)
    assert fit_stretch(full) == fit_stretch(full.rows(trusted))


def stop_and_go(rng, lengths, still=0.2, **columns):
    """Standing and driving by turns; errors at a standstill a tenth of those on the move, bands of one width."""
    n = int(np.sum(lengths))
    speed = np.where(np.arange(n) % 50 < 50 * still, 0.0, 60.0)
    error = np.where(speed < 1, 0.1, 1.0) * rng.normal(size=n)
    return make_bands(GaussianMixture(np.zeros((1, n)), np.ones((1, n))), lengths, error, speed_kmh=speed, **columns)


def test_a_standstill_is_calibrated_for_itself():
    """10,000 rows: the standard error of a coverage is under 0.007 at a standstill."""
    bands = stop_and_go(np.random.default_rng(6), [500] * 20)
    moving, standing = fit_stretches(bands)
    assert (moving, standing) == (pytest.approx(1.0, rel=0.05), pytest.approx(0.1, rel=0.05))
    calibrated = bands.stretched(np.where(bands.standing, standing, moving))
    regimes = evaluate(calibrated)["by_regime"]
    assert regimes["standstill"]["coverage"] == pytest.approx(0.9, abs=0.02)
    assert fit_stretch(bands) > 5 * standing  # what one factor for all would give


def test_where_few_trips_stand_or_speed_is_unknown_all_rows_share_one_factor():
    rng = np.random.default_rng(7)
    bands = stop_and_go(rng, [200] * 20)
    for same in (
        replace(bands, speed_kmh=None),
        replace(bands, speed_kmh=np.where(np.arange(4000) < 8 * 200, bands.speed_kmh, 30.0)),
        replace(bands, speed_kmh=np.zeros(4000)),
    ):
        assert fit_stretches(same) == (fit_stretch(same),) * 2


def test_a_standstill_without_a_scale_of_its_own_shares_the_others():
    """Standing rows met without error, and too few of them, must not lose a calibration."""
    bands = stop_and_go(np.random.default_rng(8), [200] * 20)
    exact = replace(bands, power_kw=np.where(bands.standing, 0.0, bands.power_kw))
    rare = replace(bands, speed_kmh=np.where(np.arange(4000) % 200 < 4, 0.0, 30.0))  # 80 rows of 20 trips
    for shared in (exact, rare):
        assert fit_stretches(shared) == (fit_stretch(shared),) * 2


def test_few_members_tell_what_all_will_need():
    """Members err independently, so six of them need more than thirty. Mean over 20 draws, standard errors under 0.005."""
    few, told, needed = [], [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, lengths = 3000, [150] * 20
        mu, scale = 0.5 * rng.normal(size=(30, n)), np.full((30, n), 0.5)
        y = 0.5 * rng.standard_t(5, size=n)
        six, thirty = (
            make_bands(StudentMixture(mu[:m], scale[:m], np.full(m, 5.0)), lengths, y, speed_kmh=np.full(n, 50.0))
            for m in (6, 30)
        )
        few.append(fit_stretches(six)[0])
        told.append(fit_stretches(six, members=30)[0])
        needed.append(fit_stretches(thirty)[0])
        assert fit_stretches(thirty, members=30) == fit_stretches(thirty)
    assert np.mean(few) > 1.05 * np.mean(needed)
    assert np.mean(told) == pytest.approx(np.mean(needed), rel=0.02)
