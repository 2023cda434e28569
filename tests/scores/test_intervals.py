"""The honest interval hits as often as it says; the binomial one does not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from evband.scores import binomial_interval, coverage_interval, mean_interval
from forecasters import correlated_errors

TRUE = 0.9
BAND = stats.norm.ppf(0.95)


def hit_rates(trips, seeds, length=(100, 900), **errors):
    """Share of seeds in which the honest and the binomial 95 % interval contain the true coverage 0.9."""
    honest = binomial = 0
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        lengths = rng.integers(*length, size=trips)
        covered = np.abs(correlated_errors(rng, lengths, **errors)) <= BAND
        trip = np.repeat(np.arange(trips), lengths)
        low, high = coverage_interval(covered, trip)
        honest += low <= TRUE <= high
        low, high = binomial_interval(int(covered.sum()), len(covered))
        binomial += low <= TRUE <= high
    return honest / seeds, binomial / seeds


def test_honest_interval_hits_and_binomial_misses_with_30_trips():
    """400 seeds: the standard error of a 95 % hit rate is 1.1 points, so 92-98 % is the band of chance."""
    honest, binomial = hit_rates(30, 400)
    assert 0.92 <= honest <= 0.98
    assert binomial < 0.60


@pytest.mark.parametrize(("trips", "at_least"), [(5, 0.88), (10, 0.90)])
def test_few_trips_still_hit(trips, at_least):
    honest, binomial = hit_rates(trips, 300, rho=0.9)
    assert at_least <= honest <= 1.0
    assert binomial < 0.75


def test_blocks_inside_a_single_run():
    """One run of an hour with errors that forget in about 20 s."""
    honest, binomial = hit_rates(1, 300, length=(3600, 3601), rho=0.95, trip_std=0.0)
    assert 0.90 <= honest <= 0.99
    assert binomial < 0.60


def test_equal_trips_give_the_textbook_interval():
    values = np.random.default_rng(0).normal(size=(8, 50))
    means = values.mean(1)
    half = stats.t.ppf(0.975, 7) * means.std(ddof=1) / np.sqrt(8)
    low, high = mean_interval(values.ravel(), np.repeat(np.arange(8), 50))
    np.testing.assert_allclose([low, high], [means.mean() - half, means.mean() + half])


def test_wilson_against_its_formula():
    low, high = binomial_interval(9, 10)
    np.testing.assert_allclose([low, high], [0.5958, 0.9821], atol=1e-4)


def test_intervals_where_little_can_be_said():
    assert np.isnan(mean_interval(np.ones(10), np.zeros(10))).all()
    low, high = coverage_interval(np.array([True] * 99 + [False]), np.array([0] * 99 + [1]))
    assert 0 <= low < 0.99 < high == 1.0
    low, high = coverage_interval(np.ones(500, bool), np.repeat(np.arange(5), 100))  # all covered: no certainty
    assert (low, high) == binomial_interval(5, 5)
    assert low < 0.6
