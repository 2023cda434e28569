"""Limits of the road-load path: sane weights stay as they are to the bit, others go to the nearest that obey."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from drives import made_up_trips
from evband.errors import ArtifactError, VehicleError
from evband.features import FeatureMap
from evband.features.physics import Limits, contradictions, limits_of, steady_rows
from evband.model import PowerModel
from evband.vehicles import wheel_power
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


def test_a_data_sheet_narrows_what_a_log_may_say():
    features = FeatureMap.fit(drives(power=lambda v, a: 0.5 + 0.1 * v + 0.0009 * v**3 + 3.0 * a * v))  # 3 t, CdA 1.3 m2
    assert contradictions(features) == []
    known = replace(features, sheet=(1500.0, 0.6, 0.009))
    said = contradictions(known)
    assert "the car moves like over 2550 kg" in said
    assert any("more than its data sheet allows" in text for text in said)
    top = 0.9 * known.high[known.channels.index("speed_kmh")]
    standing, fast = (features.y_mean + features.y_std * (steady_rows(known, np.array([kmh])) @ known.least_squares())[0] for kmh in (0.0, top))  # fmt: skip
    at_wheels = float(wheel_power(top / 3.6, 0.0, 1500.0, 0.6, 0.009).total_kw)
    assert fast - standing < 1.81 * at_wheels
    assert FeatureMap.from_dict(known.to_dict()).sheet == known.sheet
    with pytest.raises(ArtifactError, match="data sheet"):
        FeatureMap.from_dict(known.to_dict() | {"sheet": [1500.0, -1.0, 0.009]})


def test_a_vehicle_nobody_knows_is_refused_before_any_log_is_read():
    with pytest.raises(VehicleError, match="no vehicle"):
        PowerModel(vehicle="Zorblax 9000").check()


def test_where_forces_carry_the_load_there_are_no_limits():
    assert limits_of(FeatureMap.fit(made_up_trips(torque=True).on_grid(1.0), "torque")) is None
