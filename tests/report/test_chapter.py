"""What the report's figures are read off, on forecasters whose truth is known."""

import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from evband.bands import GaussianMixture
from evband.report.chapter import APART_S, Chapter
from evband.report.figures import stretch_picture
from evband.report.sections import worst
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


def test_the_typical_stretch_is_about_as_wide_as_all_rows():
    rng = np.random.default_rng(5)
    scale = np.repeat([1.0, 3.0, 1.4, 0.7], 750)
    mean = 20 * np.sin(np.arange(3000) / 15)
    bands = make_bands(GaussianMixture(mean[None], scale[None]), [3000], mean + scale * rng.normal(size=3000))
    found = chapter_of(bands)
    lower, upper = found.interval
    width = (upper - lower)[found.typical_stretch(150)].mean()
    assert width == pytest.approx((upper - lower).mean(), rel=0.2)


def notes(scale, error):
    """What is written into the picture of a whole short trip, and where, 360 wide."""
    bands = make_bands(GaussianMixture(np.zeros((1, len(scale))), scale[None]), [len(scale)], error)
    picture = stretch_picture(chapter_of(bands), slice(0, len(scale)), 360, 280, "")
    return {what: float(x) for x, what in re.findall(r'class="note" x="([\d.]+)"[^>]*>([^<]*)<', picture)}


def test_what_is_called_narrow_is_narrower_than_usual():
    scale = np.full(60, 2.0)
    scale[10], scale[58:] = 3.0, 0.1  # the narrow rows are too near to the edge for a label
    assert list(notes(scale, np.zeros(60))) == [f"wide: {2 * 1.645 * 3:.1f} kW"]
    scale[40:50] = 0.5
    assert set(notes(scale, np.zeros(60))) == {f"wide: {2 * 1.645 * 3:.1f} kW", f"narrow: {2 * 1.645 * 0.5:.1f} kW"}


def test_no_label_is_cut_at_the_right_edge():
    error = np.zeros(60)
    error[[30, 59]] = 5.0, 9.0  # the worse miss is the last row
    at = notes(np.ones(60), error)["a miss"]
    assert at + 7 * len("a miss") / 2 <= 360


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
    found = chapter_of(gaussian_bands(error, [500])).worst_moments()
    assert [m.row for m in found] == [101, 300]
    assert abs(found[0].time_s - found[1].time_s) >= APART_S
    assert found[0].beyond_kw == pytest.approx(10 - 1.645, abs=1e-3)


def test_a_worst_moment_is_told_by_the_time_since_its_trip_began():
    error = np.zeros(500)
    error[100] = 9
    bands = gaussian_bands(error, [500])
    found = chapter_of(replace(bands, time_s=bands.time_s + 3000.0))
    assert ">0:01:40</button>" in worst(found, 0)


def test_no_worst_moment_where_nothing_is_outside():
    assert chapter_of(gaussian_bands(np.zeros(100), [100])).worst_moments() == []


def test_simulated_trips_are_called_simulated():
    bands = gaussian_bands(np.zeros(100), [100])
    assert chapter_of(bands, ("sim_truck_000",)).word == "simulated"
    assert chapter_of(bands, ("monday",)).word == "measured"
