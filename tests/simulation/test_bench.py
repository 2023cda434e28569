"""The dynamometer bench: physics that makes sense, and noise that is exactly what the truth columns say."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

pytest.importorskip("fastsim")

from scipy import stats

from evband.simulation import simulated_log
from evband.simulation.vehicles import CARS

BENCH = ("sedan_1", "sedan_2", "truck", "hatchback")


@pytest.fixture(scope="module", params=BENCH)
def run(request: pytest.FixtureRequest) -> tuple[str, pl.DataFrame]:
    return request.param, simulated_log(request.param)


def test_hwfet_is_765_s_at_10_hz_and_16_5_km(run: tuple[str, pl.DataFrame]) -> None:
    log = run[1]
    assert log.height == 7651
    np.testing.assert_allclose(log["time_s"], np.arange(7651) / 10)
    assert log["speed_kmh"].sum() / 36_000 == pytest.approx(16.45, abs=0.15)
    assert log["drive_ref_kmh"].max() == pytest.approx(96.4, abs=0.2)  # 59.9 mph


def test_driver_is_imperfect_but_within_the_test_tolerance(run: tuple[str, pl.DataFrame]) -> None:
    """A regulatory test allows 2 mph off the trace at any time within 1 s."""
    log = run[1]
    speed, reference = log["speed_kmh"].to_numpy(), log["drive_ref_kmh"].to_numpy()
    assert 0.3 < np.std(speed - reference) < 2.0
    near = np.lib.stride_tricks.sliding_window_view(np.pad(reference, 10, mode="edge"), 21)
    off = np.maximum(speed - near.max(axis=1), near.min(axis=1) - speed)
    assert off.max() < 2 * 1.609344


def test_energy_and_regeneration_are_plausible(run: tuple[str, pl.DataFrame]) -> None:
    log = run[1]
    km, kwh = log["speed_kmh"].sum() / 36_000, log["true_power_kw"].sum() / 36_000
    assert 80 < 1000 * kwh / km < 400
    braking = log.filter((pl.col("acceleration_ms2") < -0.8) & (pl.col("speed_kmh") > 20))
    assert braking.height > 50
    assert (braking["true_power_kw"] < 0).all()
    assert (braking["power_kw"] < 0).mean() > 0.99


def test_battery_power_is_wheel_power_and_losses(run: tuple[str, pl.DataFrame]) -> None:
    """Driving, the wheels get 75-98 % of what the battery gives beyond the auxiliaries; braking, it gets 70-98 % back."""
    log = run[1]
    wheel = (log["force_n"] * log["speed_kmh"] / 3600).to_numpy()
    drive = log["true_power_kw"].to_numpy() - 0.35
    driving, braking = wheel > 6, wheel < -6
    given, returned = wheel[driving] / drive[driving], drive[braking] / wheel[braking]
    assert 0.75 < given.min() < given.max() < 0.98
    assert 0.70 < returned.min() < returned.max() < 0.98


def test_force_is_road_load_and_inertia(run: tuple[str, pl.DataFrame]) -> None:
    name, log = run
    inertia = (log["force_n"] - log["road_load_n"]).to_numpy()
    mass = np.polyfit(log["acceleration_ms2"].to_numpy(), inertia, 1)[0]
    assert mass == pytest.approx(CARS[name].mass_kg, rel=0.03)
    assert (log["parasitic_n"].min(), log["parasitic_n"].max()) == pytest.approx((16, 45), abs=5)


def test_noise_is_student_t_with_the_stated_scale_and_nu(run: tuple[str, pl.DataFrame]) -> None:
    """Kolmogorov-Smirnov at level 0.001: a right simulator fails one seed in a thousand, and the seed is fixed."""
    name, log = run
    z = ((log["power_kw"] - log["true_power_kw"]) / log["true_scale_kw"]).to_numpy()
    assert stats.kstest(z, stats.t(CARS[name].nu).cdf).pvalue > 0.001
    assert stats.kstest(z / z.std(), stats.norm.cdf).pvalue < 0.001
    assert CARS[name].nu >= 4
    assert log["true_nu"].unique().to_list() == [CARS[name].nu]
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 4 / np.sqrt(len(z))


def test_scale_varies_five_fold_and_follows_from_what_is_logged(run: tuple[str, pl.DataFrame]) -> None:
    name, log = run
    scale = log["true_scale_kw"].to_numpy()
    low, high = np.quantile(scale, [0.05, 0.95])
    assert high / low > 5
    logged = CARS[name].noise_scale_kw(log["speed_kmh"].to_numpy() / 3.6, log["acceleration_ms2"].to_numpy())
    np.testing.assert_allclose(scale, logged, rtol=1e-12)


@pytest.mark.parametrize("hz", [10.0, 1.0])
def test_logged_speed_and_acceleration_determine_the_mean(hz: float) -> None:
    """What the sensors hide of the mean is under 1 % of the noise's variance, so that aleatoric truth can be checked.

    Power depends on wheel power alone, so its curve, drawn from four other runs, tells what the inputs imply.
    """
    car = CARS["sedan_1"]

    def implied(log: pl.DataFrame) -> np.ndarray:
        speed = log["speed_kmh"].to_numpy() / 3.6
        return car.force_n(speed, log["acceleration_ms2"].to_numpy()) * speed / 1000

    others = simulated_log("sedan_1", hz=10, seed=5, trips=4)
    knots = np.arange(-45.0, 46.0, 0.5)
    wheel, power = implied(others), others["true_power_kw"].to_numpy()
    bins = np.digitize(wheel, knots)
    at = [b for b in range(1, len(knots)) if (bins == b).sum() > 5]
    curve = np.array([wheel[bins == b].mean() for b in at]), np.array([power[bins == b].mean() for b in at])
    log = simulated_log("sedan_1", hz=hz)
    inside = (implied(log) > curve[0][0]) & (implied(log) < curve[0][-1])
    hidden = (log["true_power_kw"].to_numpy() - np.interp(implied(log), *curve))[inside]
    variance = (log["true_scale_kw"].to_numpy() ** 2 * car.nu / (car.nu - 2))[inside]
    assert inside.mean() > 0.99
    assert hidden.var() < 0.01 * variance.mean()


def test_rows_at_another_rate_are_means_with_noise_of_their_own() -> None:
    fine, coarse = simulated_log("sedan_1", hz=10), simulated_log("sedan_1", hz=1)
    assert coarse.height == 766
    means = fine["true_power_kw"].to_numpy()[1:].reshape(-1, 10).mean(axis=1)
    np.testing.assert_allclose(coarse["true_power_kw"].to_numpy()[1:], means, rtol=1e-9)
    z = ((coarse["power_kw"] - coarse["true_power_kw"]) / coarse["true_scale_kw"]).to_numpy()
    assert stats.kstest(z, stats.t(5.0).cdf).pvalue > 0.001
