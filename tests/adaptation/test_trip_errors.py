"""Energy bands of a started car follow the errors of its own trips."""

from dataclasses import replace

import numpy as np
import pytest

from evband.adaptation.trip_errors import OWN, PRIOR_TRIPS, with_trips
from evband.energy import ErrorModel
from evband.errors import ArtifactError

ERRORS = ErrorModel(bias=0.0, tau2=1.0, slow=0.5, slow_s=40.0, fast=10.0, share=0.5, noise=9.0, most=90.0, trips=52)


def after(errors: ErrorModel, own, error, seconds=600.0, spread=0.0):
    """The error model and what is kept, after trips of one length and g = 1."""
    one = np.ones(len(error))
    found = with_trips(errors, own, np.asarray(error, float), one, spread * one, seconds * one)
    own = found.pop(OWN)
    return replace(errors, **found), own


def test_bias_and_variance_are_those_of_the_normal_inverse_chi_squared_posterior() -> None:
    """With bell-shaped errors of one variance w: n mean / (n + 4), and (4 + sum of squares about it / w + shrinkage) / (4 + n)."""
    rng = np.random.default_rng(0)
    r, w = 0.6 + 0.8 * rng.standard_normal(7), float(ERRORS.of_mean(600.0))
    found, (kappa, nu) = after(ERRORS, None, r)
    bias = r.sum() / (7 + PRIOR_TRIPS)
    v = (PRIOR_TRIPS + ((r - bias) ** 2).sum() / w + PRIOR_TRIPS / w * bias**2) / (PRIOR_TRIPS + 7)
    assert found.bias == pytest.approx(bias)
    assert (found.tau2, found.slow, found.fast) == pytest.approx((v * 1.0, v * 0.5, v * 10.0))
    assert (kappa, nu) == pytest.approx(((7 + PRIOR_TRIPS) / w / v, 7 + PRIOR_TRIPS))


def test_trips_one_by_one_say_what_they_say_together() -> None:
    r = np.array([0.3, -0.2, 0.9, 0.5])
    together, kept = after(ERRORS, None, r)
    errors, own = ERRORS, None
    for one in r:
        errors, own = after(errors, own, [one])
    assert errors.bias == pytest.approx(together.bias)
    assert errors.tau2 == pytest.approx(together.tau2)
    assert own == pytest.approx(kept)


def test_bands_grow_with_scattered_trips_shrink_with_alike_ones_and_an_odd_trip_counts_little() -> None:
    rng, heavy = np.random.default_rng(1), replace(ERRORS, tails=5.0)
    scattered, _ = after(heavy, None, 5.0 * rng.standard_normal(20))
    alike, _ = after(heavy, None, 0.1 * rng.standard_normal(20))
    assert alike.tau2 < 0.4 * heavy.tau2 < 2.0 * heavy.tau2 < scattered.tau2
    odd, _ = after(heavy, None, [*0.1 * rng.standard_normal(19), 8.0])
    assert abs(odd.bias) < 0.2
    assert odd.tau2 < 1.5 * heavy.tau2
    unsure, _ = after(heavy, None, 0.1 * rng.standard_normal(20), spread=2.0)  # members that differ: hardly learned yet
    assert unsure.tau2 > 2.0 * alike.tau2


@pytest.mark.parametrize("own", ["x", [1.0], [0.0, 4.0], [1.0, float("nan")], {}])
def test_a_damaged_file_is_one_sentence(own) -> None:
    with pytest.raises(ArtifactError, match="own trips is damaged"):
        after(ERRORS, own, [0.1])
