"""Trip-paired comparison and widths at equal coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from evband.bands import QuantileSet
from evband.errors import SettingsError, TripsError
from evband.scores import compare, evaluate, width_at_coverage
from forecasters import correlated_errors, gaussian_bands, make_bands, student_bands


@pytest.mark.parametrize("score", ["crps_kw", "log_score", "interval_score", "rmse_kw", "mae_kw"])
def test_difference_is_that_of_the_scores(score):
    rng = np.random.default_rng(0)
    good = student_bands(rng, [200, 300, 100, 250])
    worse = replace(
        good, members=type(good.members)(good.members.mu + rng.normal(0, 2, len(good)), good.members.s, good.members.nu)
    )
    found = compare(good, worse, score)
    assert found.a == pytest.approx(evaluate(good)[score])
    assert found.b == pytest.approx(evaluate(worse)[score])
    assert found.difference < 0
    assert not found.tied
    assert "a is better" in str(found)
    assert compare(good, good, score).tied


@pytest.mark.parametrize("score", ["crps_kw", "rmse_kw"])
def test_interval_holds_its_error_rate_when_nothing_differs(score):
    """Two forecasters equally good on average, 300 seeds, 20 trips: 'not tied' should happen in 5 %, here in 2-9 %."""
    wrong = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(50, 200, size=20)
        truth = correlated_errors(rng, lengths, rho=0.9)
        means = [correlated_errors(rng, lengths, rho=0.9) for _ in range(2)]
        a, b = (gaussian_bands(truth - mean, lengths, np.sqrt(2), mean) for mean in means)
        wrong += not compare(a, b, score).tied
    assert 0.02 <= wrong / 300 <= 0.09


def test_width_at_coverage_does_not_depend_on_the_stretch():
    bands = student_bands(np.random.default_rng(1), [500, 500])
    reference = width_at_coverage(bands)
    assert width_at_coverage(bands.stretched(0.5)) == pytest.approx(reference, rel=1e-6)
    lower, upper = bands.interval(0.9)
    assert reference == pytest.approx(np.mean(upper - lower), rel=0.1)
    gaussian = gaussian_bands(np.random.default_rng(2).normal(size=20_000), [20_000], scale=3.0)
    assert width_at_coverage(gaussian) == pytest.approx(2 * stats.norm.ppf(0.95), rel=0.02)


def test_bands_that_do_not_pair_are_refused():
    bands = student_bands(np.random.default_rng(3), [50, 50])
    with pytest.raises(TripsError, match="different grids"):
        compare(bands, replace(bands, hz=10.0))
    with pytest.raises(TripsError, match="do not pair"):
        compare(bands, bands.rows(np.arange(100) < 60))
    with pytest.raises(TripsError, match="different measured power"):
        compare(bands, replace(bands, power_kw=bands.power_kw + 1))
    with pytest.raises(SettingsError, match="compared by one of"):
        compare(bands, bands, "coverage")


def test_no_density_no_log_score_comparison():
    q = np.tile(stats.norm.ppf(np.arange(1, 20) / 20)[None, :, None], (1, 1, 60))
    bands = make_bands(QuantileSet(q), [40, 20], np.random.default_rng(2).normal(size=60))
    with pytest.raises(SettingsError, match="no log_score"):
        compare(bands, bands, "log_score")
    assert compare(bands, bands, "crps_kw").tied


def test_warmup_of_either_is_left_out():
    bands = student_bands(np.random.default_rng(4), [50, 50])
    warm = replace(bands, warmup=np.arange(100) < 10)
    assert compare(bands, warm).n == 90
