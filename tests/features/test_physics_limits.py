"""Limits of the road-load path: sane weights stay as they are to the bit, others go to the nearest that obey."""

import numpy as np
import pytest
from scipy.optimize import minimize

from drives import made_up_trips
from evband.features import FeatureMap
from evband.features.physics import Limits, contradictions, limits_of, steady_rows
from tiny_car import drives


def per_km(features, weights, kmh):
    speeds = np.asarray(kmh, float)
    return (features.y_mean + features.y_std * steady_rows(features, speeds) @ weights) / speeds


def test_weights_that_obey_are_the_plain_ones():
    features = FeatureMap.fit(made_up_trips().on_grid(1.0))
    plain = np.linalg.solve(features.gram + 1e-5 * np.eye(len(features.gram)), features.moment)
    assert contradictions(features) == []
    assert np.array_equal(features.least_squares(), plain)


def test_an_engine_that_takes_over_does_not_make_speed_cheap():
    hybrid = drives(power=lambda v, a: 0.5 + 0.3 * v - 0.0003 * v**3 + 1.6 * a * v)
    features = FeatureMap.fit(hybrid)
    assert "driving 80 km/h takes less energy per km than 60 km/h" in contradictions(features)
    weights = features.least_squares()
    steps = np.diff(per_km(features, weights, [60.0, 80.0, 100.0]))
    assert steps.min() > -1e-6


def test_the_nearest_weights_are_those_of_a_general_solver():
    rng = np.random.default_rng(0)
    root, rows = rng.normal(size=(9, 6)), rng.normal(size=(4, 6))
    gram, plain, least = root.T @ root, rng.normal(size=6), np.array([0.5, 1.0, -3.0, 0.2])
    found = Limits(rows, least).nearest(plain, gram)
    oracle = minimize(
        lambda w: (w - plain) @ gram @ (w - plain), plain, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: rows @ w - least}, options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    assert (rows @ found - least).min() > -1e-8
    assert found == pytest.approx(oracle.x, abs=1e-4)


def test_where_forces_carry_the_load_there_are_no_limits():
    assert limits_of(FeatureMap.fit(made_up_trips(torque=True).on_grid(1.0), "torque")) is None
