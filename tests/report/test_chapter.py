"""What the report's figures are read off, on forecasters whose truth is known."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from evband.bands import GaussianMixture
from evband.report.chapter import APART_S, Chapter
from evband.scores import evaluate
from forecasters import correlated_errors, gaussian_bands, make_bands


def chapter_of(bands, ids=("trip",)):
    still = np.zeros(len(bands))
    bands = replace(bands, speed_kmh=still, acceleration_ms2=still)
    return Chapter(None, bands, evaluate(bands), SimpleNamespace(ids=ids))


def one_trip(rng, n=3000, rho=0.9):
    power = 20 * np.sin(np.arange(n) / 15)
    return gaussian_bands(correlated_errors(rng, [n], rho, 0.0), [n], mean=power)


def test_the_typical_stretch_is_covered_as_often_as_all_rows():
    bands = one_trip(np.random.default_rng(1), rho=0.0)
    found = chapter_of(bands)
    stretch = found.typical_stretch(150)
    assert stretch.stop - stretch.start == 150
    missed = found.missed
    assert missed[stretch].mean() == pytest.approx(missed.mean(), abs=0.011)


def test_the_typical_stretch_has_no_gap_and_no_unknown_power():
    rng = np.random.default_rng(2)
    n = 1000
    power = rng.normal(size=n)
    power[300:305] = np.nan
    time = np.arange(1.0, n + 1)
    time[600:] += 50
    bands = make_bands(GaussianMixture(np.zeros((1, n)), np.ones((1, n))), [n], power)
    bands.time_s[:] = time
    stretch = chapter_of(bands).typical_stretch(250)
    assert np.isfinite(power[stretch]).all()
    assert np.ptp(bands.time_s[stretch]) == 249


def test_a_short_trip_is_its_own_stretch():
    bands = gaussian_bands(np.random.default_rng(3).normal(size=60), [60])
    assert chapter_of(bands).typical_stretch(150) == slice(0, 60)


def test_autocorrelation_of_a_known_process():
    error = correlated_errors(np.random.default_rng(4), [20_000], 0.9, 0.0)
    lags, r = chapter_of(gaussian_bands(error, [20_000])).autocorrelation
    np.testing.assert_allclose(r[:10], 0.9 ** lags[:10], atol=0.06)
    assert chapter_of(gaussian_bands(error, [20_000])).memory_s == pytest.approx(10, abs=3)


def test_autocorrelation_does_not_reach_over_trips():
    error = np.tile(np.repeat([1.0, -1.0], 50), 20)  # each trip has the opposite error of the one before
    bands = gaussian_bands(error, [50] * 40)
    _, r = chapter_of(bands).autocorrelation
    np.testing.assert_allclose(r, 1.0)


def test_worst_moments_are_apart_and_in_order():
    error = np.zeros(500)
    error[[100, 101, 110, 300]] = [9, 10, 8, -7]
    worst = chapter_of(gaussian_bands(error, [500])).worst_moments()
    assert [m.row for m in worst] == [101, 300]
    assert abs(worst[0].time_s - worst[1].time_s) >= APART_S
    assert worst[0].beyond_kw == pytest.approx(10 - 1.645, abs=1e-3)


def test_no_worst_moment_where_nothing_is_outside():
    assert chapter_of(gaussian_bands(np.zeros(100), [100])).worst_moments() == []


def test_simulated_trips_are_called_simulated():
    bands = gaussian_bands(np.zeros(100), [100])
    assert chapter_of(bands, ("sim_truck_000",)).word == "simulated"
    assert chapter_of(bands, ("monday",)).word == "measured"
