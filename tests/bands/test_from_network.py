"""From networks to a distribution."""

import numpy as np
import pytest

from evband.bands import LocationScale, QuantileSet
from evband.bands.from_network import distribution
from evband.network.predict import Prediction
from evband.network.standard import Student

LEVELS = (0.1, 0.5, 0.9)


def said(kind):
    rng = np.random.default_rng(0)
    mu, scale = rng.normal(size=(3, 5)).astype(np.float32), rng.uniform(0.5, 1, (3, 5)).astype(np.float32)
    if kind is QuantileSet:
        quantiles = mu[:, None] + np.array([-1, 0, 1], np.float32)[None, :, None]
        return Prediction(mu, None, None, quantiles, crossing=0.2)
    return Prediction(mu, scale, Student([3.0, 4.0, np.inf]), None)


@pytest.mark.parametrize("kind", [LocationScale, QuantileSet])
def test_standardised_power_becomes_kilowatts(kind):
    plain, kw = distribution(said(kind), LEVELS), distribution(said(kind), LEVELS, mean=7.0, std=3.0)
    assert type(kw) is kind
    np.testing.assert_allclose(kw.quantile(0.9), 7 + 3 * plain.quantile(0.9), rtol=1e-5)


@pytest.mark.parametrize("kind", [LocationScale, QuantileSet])
def test_a_part_is_a_copy_of_some_members_and_rows(kind):
    whole, rows = said(kind), np.array([True, False, True, False, True])
    part = whole.part([2, 2], rows)
    assert part.crossing == whole.crossing
    distribution(part, LEVELS, std=2.0)
    np.testing.assert_array_equal(whole.mu, said(kind).mu)
    np.testing.assert_array_equal(whole.part([2], rows).mu, said(kind).mu[2:, rows])
