"""The highway drive: asynchronous, faulty as an app's log is, and with noise that is known where it is not faulty."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

pytest.importorskip("fastsim")

from scipy import stats

from evband.simulation import simulate, simulated_log, summary
from evband.simulation.highway import GLITCHES, POLLED
from evband.simulation.vehicles import CARS


@pytest.fixture(scope="module")
def log() -> pl.DataFrame:
    return simulated_log("highway")


def test_one_to_two_hours_of_mostly_highway(log: pl.DataFrame) -> None:
    drive = summary(log).row(0, named=True)
    assert 3600 < drive["duration_s"] < 7200
    assert 80 < 1000 * drive["energy_kwh"] / drive["distance_km"] < 400
    assert (log["speed_kmh"].drop_nulls() > 85).mean() > 0.7
    assert log["speed_kmh"].drop_nulls().max() < 135


def test_channels_are_read_at_instants_of_their_own_about_once_a_second(log: pl.DataFrame) -> None:
    assert "power_kw" not in log.columns
    readings = sum(log[channel].is_not_null().cast(int) for channel in POLLED)
    assert readings.max() == 1
    for channel in (*POLLED, "elevation_m"):
        steps = np.diff(log.filter(pl.col(channel).is_not_null())["time_s"].to_numpy())
        assert np.median(steps) == pytest.approx(1.0, abs=0.1)
        assert np.std(steps[steps < 3]) > 0.05
        assert (steps > 15).sum() == 1  # the link dropped once
    assert (np.diff(log["time_s"].to_numpy()) > 0).all()


def test_glitches_are_in_the_log_and_have_no_noise_scale(log: pl.DataFrame) -> None:
    for channel, value, count in GLITCHES:
        assert (log[channel] == value).sum() == count
    assert log.filter(pl.col("battery_current_a") == -655.36)["true_scale_kw"].null_count() == 3
    assert log["true_power_kw"].is_not_null().sum() == log["battery_current_a"].is_not_null().sum()


def test_current_noise_is_student_t_in_kw_with_a_scale_that_varies_five_fold(log: pl.DataFrame) -> None:
    """Kolmogorov-Smirnov at level 0.001 (one seed in a thousand fails); rows whose noise drowns the 0.1 A steps."""
    volts = log.filter(pl.col("battery_voltage_v") < 1000).select("time_s", "battery_voltage_v")
    rows = log.drop_nulls("true_scale_kw")
    power = rows["battery_current_a"] * np.interp(rows["time_s"], volts["time_s"], volts["battery_voltage_v"]) / 1000
    z = ((power - rows["true_power_kw"]) / rows["true_scale_kw"]).to_numpy()[rows["true_scale_kw"] > 0.35]
    nu = CARS["highway"].nu
    assert nu >= 4
    assert len(z) > 3000
    assert stats.kstest(z, stats.t(nu).cdf).pvalue > 0.001
    low, high = np.quantile(rows["true_scale_kw"], [0.05, 0.95])
    assert high / low > 5


def test_motor_channels_agree_with_the_motion(log: pl.DataFrame) -> None:
    rpm = log.filter(pl.col("motor_rpm") < 30_000).select("time_s", "motor_rpm")
    speed = log.drop_nulls("speed_kmh")
    at = np.interp(speed["time_s"], rpm["time_s"], rpm["motor_rpm"])
    ratio = at[speed["speed_kmh"] > 80] / speed.filter(pl.col("speed_kmh") > 80)["speed_kmh"].to_numpy()
    assert np.std(ratio) / np.mean(ratio) < 0.02
    assert log["motor_torque_nm"].min() < 0 < log["motor_torque_nm"].max()


def test_reading_it_rebuilds_power_and_drops_the_glitches() -> None:
    trip = simulate("highway")[0]
    assert trip.has("power_kw")
    assert trip.report is not None
    assert sum(finding.count for finding in trip.report.of("glitch")) == 5
    grid = trip.on_grid(1)
    known = grid.table.drop_nulls(["power_kw", "true_power_kw"])
    error = known["power_kw"] - known["true_power_kw"]
    assert error.std() < 0.2 * known["true_power_kw"].std()
    assert (
        2 <= grid.table["segment"].n_unique() <= 6
    )  # before and after the lost link, where channels fall silent in turn


def test_later_drives_differ_in_weather_and_roads() -> None:
    log = simulated_log("highway", trips=4)
    days = log.group_by("trip_id").agg(pl.col("ambient_temp_c").mean(), pl.col("wind_ms").mean())
    assert days["ambient_temp_c"].std() > 3
    assert days["wind_ms"].std() > 0.5
    assert (summary(log)["duration_s"] > 1000).all()
