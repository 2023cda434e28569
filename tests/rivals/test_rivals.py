"""Rivals: each learns a known car, gives a distribution that covers, and sees neither the future nor the test trips."""

from __future__ import annotations

import sys

import numpy as np
import polars as pl
import pytest
from scipy.stats import t as student
from sklearn.base import clone

from evband import rivals
from evband.bands import Bands
from evband.errors import ChannelError, MissingPackageError, SettingsError, require
from evband.features.rows import WARMUP_S, age
from evband.rivals import (
    Boosting,
    CatBoost,
    FastSim,
    LeastSquares,
    NGBoost,
    ResidualBoosting,
    Rival,
    catboost_uncertainty,
    fastsim_vehicle,
    ngboost_t,
    quantile_boosting,
)
from evband.rivals.rows import Rows, inner_folds, lagged
from evband.rivals.student import fit_student, scale_design, solve_ridge
from evband.simulation import physics
from evband.simulation.vehicles import AIR_DENSITY, CARS, GRAVITY
from evband.trips import Trip, Trips

NOISE_KW, NU = 0.4, 5.0


def drive(name: str, seed: int, rows: int = 300) -> Trip:
    """A drive of a 1.7 t car with Student-t noise that grows with speed."""
    rng = np.random.default_rng(seed)
    time = np.arange(1.0, rows + 1)
    speed = np.maximum(0, 14 + 9 * np.sin(time / 23 + rng.uniform(0, 6)) + 3 * np.sin(time / 7))
    acceleration = np.gradient(speed)
    wheel = 1.7 * acceleration * speed + 0.16 * speed + 0.4e-3 * speed**3
    scale = NOISE_KW * (0.5 + speed / 20)
    power = 0.5 + np.where(wheel > 0, 1.15 * wheel, 0.7 * wheel) + scale * rng.standard_t(NU, rows)
    table = pl.DataFrame(
        {"time_s": time, "speed_kmh": 3.6 * speed, "acceleration_ms2": acceleration, "power_kw": power}
    ).with_columns(segment=pl.lit(0, dtype=pl.Int32))
    return Trip(name, table, hz=1.0)


@pytest.fixture(scope="module")
def train() -> Trips:
    return Trips(drive(f"a{i}", i) for i in range(9))


@pytest.fixture(scope="module")
def test() -> Trips:
    return Trips(drive(f"b{i}", 100 + i) for i in range(4))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few trees and runs: the tests ask whether things are right, not how good they can get."""
    monkeypatch.setattr(quantile_boosting, "MOST_TREES", 25)
    monkeypatch.setattr(quantile_boosting, "TRIED", quantile_boosting.TRIED[:1])
    monkeypatch.setattr(ngboost_t, "MOST_TREES", 60)
    monkeypatch.setattr(ngboost_t, "DEPTHS", (4,))
    monkeypatch.setattr(catboost_uncertainty, "MOST_TREES", 400)
    monkeypatch.setattr(catboost_uncertainty, "TRIED", ((4, True),))
    monkeypatch.setattr(fastsim_vehicle, "FITTED_ROWS", 500)


def scores(bands: Bands) -> tuple[float, float, float]:
    """RMSE, coverage of the 90 % band, CRPS."""
    y = bands.power_kw
    assert y is not None
    low, high = bands.interval(0.9)
    rmse = float(np.sqrt(np.mean((y - bands.mean) ** 2)))
    return rmse, float(np.mean((y >= low) & (y <= high))), float(bands.crps(y).mean())


@pytest.mark.parametrize(
    ("rival", "most_rmse"),
    [
        (LeastSquares(), 1.1),
        (LeastSquares(hinges=True), 1.1),
        (Boosting(), 2.5),
        (ResidualBoosting(), 1.2),
        (NGBoost(), 3.0),
        (CatBoost(), 2.5),
        (FastSim(), 1.6),
    ],
    ids=["ls", "hinges", "boosting", "residual", "ngboost", "catboost", "fastsim"],
)
def test_rival_learns_the_car_and_covers(rival: Rival, most_rmse: float, train: Trips, test: Trips) -> None:
    if needs := {FastSim: "fastsim", NGBoost: "ngboost", CatBoost: "catboost"}.get(type(rival)):
        pytest.importorskip(needs)
    rival = clone(rival)
    bands = rival.fit(train).predict(test)
    rmse, coverage, crps = scores(bands)
    assert rmse < most_rmse  # the noise alone is 0.6 kW, the spread of power 15 kW
    assert 0.75 < coverage < 0.98  # roughly: boosting has 25 trees here
    assert crps < most_rmse
    assert len(bands) == sum(map(len, test))
    assert bands.warmup.sum() == 4 * WARMUP_S


def _driven(vehicle, speed_ms, grade, step_s):
    from fastsim import Vehicle

    return physics.driven(Vehicle.from_dict(vehicle), speed_ms, step_s, grade, full=False)[1]


def test_fastsim_follows_a_downhill_start_and_any_glitch() -> None:
    pytest.importorskip("fastsim")
    vehicle = fastsim_vehicle._vehicle(1800.0, 0.6, 0.009)
    rolling = _driven(vehicle, np.array([0.0, 0.1, 0.6, 1.2, 1.4]), np.full(5, -0.15), 1.0)
    assert rolling[3] < -0.5  # a full battery could not take it
    glitch = _driven(vehicle, np.array([0.0, 0.0, 70.0, 0.0, 70.0]), np.full(5, 0.3), 1.0)
    assert glitch[2] > 1.8 * 70**2 / 2  # kinetic energy of a second alone, in kW
    assert np.isfinite(glitch).all()


def test_end_speeds_follow_the_readings_without_their_noise() -> None:
    time = np.arange(600.0)
    true = 10 - 10 * np.cos(time / 30)
    mean, a = np.append(0, (true[1:] + true[:-1]) / 2), np.append(0, np.diff(true))
    np.testing.assert_allclose(fastsim_vehicle.end_speeds(mean, a, 1.0), true, atol=1e-9)
    noise = np.random.default_rng(0).normal(0, 0.2, 600)
    found = fastsim_vehicle.end_speeds(mean + noise, a, 1.0)
    assert np.std(np.diff(found) - np.diff(true)) < 0.25 * np.std(np.diff(noise))
    assert (fastsim_vehicle.end_speeds(np.zeros(50), np.full(50, 0.05), 1.0) < 0.03).all()


def test_fastsim_motor_keeps_its_efficiency_at_each_power() -> None:
    pytest.importorskip("fastsim")
    speed, grade = np.array([0.0, 5.0, 10.0, 15.0, 20.0, 20.0, 20.0]), np.array([0, 0, 0, 0, 0, 0, 0.05])
    power = _driven(fastsim_vehicle._vehicle(1800.0, 0.6, 0.0), speed, grade, 1.0)
    drag = 0.5 * AIR_DENSITY * 0.6 * 20**3 / 1000
    climb = drag + 1.8 * GRAVITY * 20 * np.sin(np.arctan(0.05))
    for row, wheel in ((5, drag), (6, climb)):
        shaft = wheel / 0.98  # the gearbox takes 2 %
        efficiency = np.interp(
            shaft / CARS["sedan_1"].motor_kw, [0, 0.02, 0.04, 0.06, 0.08], [0.84, 0.86, 0.88, 0.9, 0.91]
        )
        assert power[row] == pytest.approx(shaft / efficiency, rel=0.005)


def test_every_rival_has_a_name_and_sklearn_habits() -> None:
    for name in rivals.NAMES:
        assert {"features", "hz", "seed"} <= set(rivals.make(name).get_params())
    with pytest.raises(SettingsError, match="choose one of"):
        rivals.make("guess")
    assert clone(LeastSquares(hinges=True)).hinges


def test_student_scale_and_nu_are_recovered() -> None:
    rng = np.random.default_rng(0)
    r = rng.normal(size=(20_000, 1))
    s = np.exp(-1 + 0.4 * np.clip(r[:, 0], -4, 4))
    theta, nu = fit_student(scale_design(r), s * student.rvs(4.0, size=len(r), random_state=1))
    assert theta[0] == pytest.approx(-1, abs=0.05)
    assert theta[1] == pytest.approx(0.4, abs=0.05)
    assert theta[2] == pytest.approx(0, abs=0.05)
    assert nu == pytest.approx(4, rel=0.15)


def test_ridge_solution_is_least_squares() -> None:
    rng = np.random.default_rng(0)
    r = rng.normal(size=(200, 3)) + 1
    y = r @ [1.0, -2.0, 0.5] + 3
    np.testing.assert_allclose(solve_ridge(r, y, 0.0), [1, -2, 0.5, 3], atol=1e-9)


def test_inner_folds_hold_out_whole_trips() -> None:
    group = np.repeat(np.arange(7), [50, 10, 30, 30, 20, 40, 25])
    outs = inner_folds(group)
    assert np.array_equal(np.sum(outs, axis=0), np.ones(len(group)))
    for out in outs:
        assert not set(group[out]) & set(group[~out])
        assert 40 < out.sum() < 100
    assert [int(out.sum()) for out in inner_folds(np.zeros(9, int))] == [3, 3, 3]


def test_lags_see_the_past_of_their_own_drive_only() -> None:
    n = 40
    start = np.zeros(n, bool)
    start[[0, 20]] = True
    value = np.arange(n, dtype=np.float32)[:, None]
    rows = Rows(value, value, value[:, 0], start.cumsum(), start, terms=1, hz=1.0)
    before = lagged(rows)
    later = value.copy()
    later[30:] = 99
    after = lagged(Rows(later, later, later[:, 0], start.cumsum(), start, terms=1, hz=1.0))
    np.testing.assert_array_equal(before[:30], after[:30])
    assert np.isnan(before[20, 3:8]).all()
    assert before[25, 3] == 24  # one second ago
    assert before[29, -1] == pytest.approx(np.mean(np.arange(20, 30)))  # mean since the start
    assert age(start)[[0, 19, 20, 39]].tolist() == [0, 19, 0, 19]


def test_bad_input_is_said_plainly(train: Trips, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="fit"):
        LeastSquares().predict(train)
    with pytest.raises(ChannelError, match="power_kw"):
        LeastSquares(features="speed_kmh,power_kw").fit(train)
    monkeypatch.setitem(sys.modules, "ngboost", None)
    with pytest.raises(MissingPackageError, match=r"evband\[rivals\]"):
        require("ngboost", "NGBoost")
