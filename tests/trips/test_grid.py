"""The grid: causal inputs, energy that survives, segments where knowledge breaks off."""

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from evband.errors import ChannelError, SettingsError
from evband.trips.between import FADES_S, LASTS_S
from evband.trips.grid import bin_inputs, to_grid
from evband.trips.power import PowerCurve, is_slow, steady_step

RATES = st.sampled_from([0.2, 0.5, 1.0, 3.0, 10.0])


@st.composite
def readings(draw, least=3, most=60, longest_step=4.0):
    """One channel's asynchronous readings, times in milliseconds."""
    steps = draw(st.lists(st.integers(1, int(1000 * longest_step)), min_size=least, max_size=most))
    time = np.cumsum(steps) / 1000.0
    values = draw(st.lists(st.floats(-100, 150), min_size=len(time), max_size=len(time)))
    return time, np.array(values)


@settings(max_examples=60, deadline=None)
@given(
    readings(),
    readings(),
    readings(longest_step=15.0),
    RATES,
    st.floats(0.05, 0.95),
    st.randoms(),
    st.sampled_from([0.0, 30.0]),
)
def test_inputs_never_change_when_later_readings_change(speed, torque, ambient, hz, share, random, bridge_s):
    series = {"speed_kmh": speed, "motor_torque_nm": torque, "ambient_temp_c": ambient, "power_kw": torque}
    grid = to_grid(series, hz, bridge_s=bridge_s)
    cut = grid["time_s"][int(share * grid.height)]
    later = {name: _changed_after(s, cut + 1e-5 / hz, random) for name, s in series.items()}
    again = to_grid(later, hz, bridge_s=bridge_s)
    inputs = [
        "speed_start_kmh",
        "speed_end_kmh",
        "age_s",
        "time_s",
        "speed_kmh",
        "acceleration_ms2",
        "motor_torque_nm",
        "ambient_temp_c",
        "segment",
    ]
    before = [name for name in inputs if name in again.columns and name in grid.columns]
    old = grid.filter(grid["time_s"] <= cut).select(before)
    new = again.filter(again["time_s"] <= cut).select(before)
    assert new.equals(old)


def _changed_after(series, instant, random):
    """Other values, other instants and fewer readings, all after `instant`."""
    time, value = series
    early = time <= instant
    late = np.unique(np.round(instant + np.cumsum([random.uniform(0.1, 20) for _ in range(8)]), 3))
    if not early.any():
        return series
    return np.concatenate([time[early], late]), np.concatenate([value[early], [random.uniform(-50, 50) for _ in late]])


@settings(max_examples=100, deadline=None)
@given(readings(longest_step=9.9), RATES)
def test_energy_of_an_asynchronous_log_survives_any_grid(power, hz):
    time, kw = power
    assume(steady_step(time) is None and not is_slow(time))
    curve = PowerCurve.of((time, kw), max_gap_s=10.0)
    ends = time[0] + np.arange(1, int((time[-1] - time[0]) * hz) + 1) / hz
    if not len(ends):
        return
    means = curve.bin_means(ends, 1 / hz)
    fine = np.union1d(time[time <= ends[-1]], ends[-1])
    truth = np.trapezoid(np.interp(fine, time, kw), fine)
    assert means.sum() / hz == pytest.approx(truth, rel=1e-9, abs=1e-6)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(-100, 150), min_size=40, max_size=200), st.sampled_from([1, 2, 4, 5, 10, 20]))
def test_energy_of_a_steady_log_survives_any_grid(values, rows_per_bin):
    kw = np.array(values)
    time = 0.1 * np.arange(len(kw))
    grid = to_grid({"speed_kmh": (time, np.abs(kw)), "power_kw": (time, kw)}, 10.0 / rows_per_bin)
    whole = (len(kw) - 1) // rows_per_bin  # bins after the one that ends at the first reading
    means = grid["power_kw"].to_numpy()[1:]
    assert len(means) == whole
    assert means.sum() * rows_per_bin == pytest.approx(kw[1 : 1 + whole * rows_per_bin].sum(), rel=1e-9, abs=1e-6)


def test_a_log_at_the_grid_rate_keeps_its_rows():
    time = 5.0 + np.arange(50)
    value = np.random.default_rng(0).normal(size=50)
    grid = to_grid({"speed_kmh": (time, value + 50), "power_kw": (time, value)}, 1.0)
    np.testing.assert_array_equal(grid["time_s"], time)
    np.testing.assert_array_equal(grid["speed_kmh"], value + 50)
    np.testing.assert_allclose(grid["power_kw"].to_numpy(), value, atol=1e-12)


def test_times_that_are_decimals_fall_into_the_right_bin():
    time = np.round(np.arange(0, 30, 0.1), 1)
    grid = to_grid({"speed_kmh": (time, time)}, 5.0)
    np.testing.assert_allclose(grid["speed_kmh"][1:], grid["time_s"][1:] - 0.05)


def test_readings_slower_than_the_grid_give_no_jumps():
    time = np.arange(0.0, 100.0, 5.0)
    speed = 50 + 30 * np.sin(time / 15)
    grid = to_grid({"speed_kmh": (time, speed)}, 1.0)
    true = 30 * np.cos(grid["time_s"].to_numpy() / 15 - 0.5 / 15) / 15 / 3.6
    acceleration = grid["acceleration_ms2"].to_numpy()
    assert np.abs(acceleration).max() < np.abs(true).max()
    assert (
        np.sign(acceleration[5::5]) == np.sign(true[5::5] + true[4::5] + true[3::5] + true[2::5] + true[1::5])
    ).all()
    start, end, mean = (grid[name].to_numpy() for name in ("speed_start_kmh", "speed_end_kmh", "speed_kmh"))
    np.testing.assert_allclose(acceleration[1:], (end - start)[1:] / 3.6)
    np.testing.assert_allclose(mean[1:], (start + end)[1:] / 2)
    np.testing.assert_allclose(end[::5], speed, err_msg="a reading at the end of a bin is its end")


def test_a_slow_row_goes_on_as_the_readings_showed_and_that_dies_away():
    grid = to_grid({"speed_kmh": (np.array([0.0, 2.0, 12.0]), np.array([36.0, 50.4, 50.4]))}, 1.0)
    trust, lasts = np.exp(-(2.0 - 1.0) / FADES_S), LASTS_S
    shown = trust * (50.4 - 36.0) / 3.6 / 2.0
    assert grid["acceleration_ms2"][2] == pytest.approx(shown)
    ages = np.arange(1.0, 10.0)
    fading = shown * lasts * (np.exp(-(ages - 1) / lasts) - np.exp(-ages / lasts))
    np.testing.assert_allclose(grid["acceleration_ms2"][3:12], fading)
    assert grid["acceleration_ms2"][12] == 0.0


def test_a_slow_feed_that_measures_acceleration_goes_on_with_it():
    time = np.array([0.0, 5.0, 10.0])
    series = {"speed_kmh": (time, np.array([50.0, 50.0, 50.0])), "acceleration_ms2": (time, np.array([0.0, 1.0, 0.0]))}
    acceleration = to_grid(series, 1.0)["acceleration_ms2"].to_list()
    assert acceleration[5] == 1.0
    assert 1.0 > acceleration[6] > acceleration[7] > acceleration[9] > 0.0


def test_means_within_bins_else_last_value_until_it_is_too_old():
    ends = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    values = bin_inputs((np.array([0.5, 0.8, 1.5]), np.array([2.0, 4.0, 7.0])), ends, 1.0, max_age_s=2.0)
    np.testing.assert_array_equal(values, [3.0, 7.0, 7.0, np.nan, np.nan])


def test_acceleration_is_the_change_of_speed_over_the_bin():
    time = np.arange(0, 20, 0.5)
    grid = to_grid({"speed_kmh": (time, 3.6 * 2 * time)}, 1.0)
    np.testing.assert_allclose(grid["acceleration_ms2"][1:], 2.0)
    assert grid["acceleration_ms2"][0] == 0.0


def test_measured_acceleration_is_used_where_there_is_one():
    time = np.arange(0, 20, 0.5)
    grid = to_grid({"speed_kmh": (time, time), "acceleration_ms2": (time, np.full(40, 0.7))}, 1.0)
    np.testing.assert_allclose(grid["acceleration_ms2"], 0.7)


def test_a_gap_starts_a_segment_and_nothing_is_filled_in():
    time = np.concatenate([np.arange(0.0, 20), np.arange(100.0, 120)])
    grid = to_grid({"speed_kmh": (time, time), "power_kw": (time, np.ones(40))}, 1.0)
    at = grid["time_s"].to_numpy()
    assert not ((at > 19 + 10) & (at < 100)).any()
    assert grid.filter(grid["time_s"] < 50)["segment"].unique().to_list() == [0]
    after = grid.filter(grid["time_s"] >= 100)
    assert after["segment"].unique().to_list() == [1]
    assert after["acceleration_ms2"][0] == 0.0  # not (100 - 19) / 3.6
    held = grid.filter((grid["time_s"] > 19) & (grid["time_s"] < 100))
    assert held["power_kw"].null_count() == held.height


def test_a_bridged_silence_carries_the_segment_on_and_counts_its_age():
    time = np.array([0.0, 1, 2, 3, 15, 16, 60, 61])
    series = {"speed_kmh": (time, np.array([36.0, 36, 36, 36, 79.2, 79.2, 0, 0]))}
    grid = to_grid(series, 1.0, bridge_s=30.0)
    assert grid["time_s"].to_list() == [*range(47), 60, 61]  # held for 30 s, not for longer
    assert grid["segment"].to_list() == [0] * 47 + [1, 1]
    assert grid["age_s"][3:16].to_list() == [*map(float, range(12)), 0.0]
    assert 0.5 < grid["acceleration_ms2"][15] / ((79.2 - 36) / 3.6 / 12) < 1.0  # over the time it took
    assert grid["acceleration_ms2"][48] == 0.0, "nothing is known across a silence that is not bridged"


def test_a_bridged_grid_of_a_dense_log_is_the_plain_one():
    time = np.arange(0.0, 60.0)
    series = {"speed_kmh": (time, 50 + 10 * np.sin(time)), "power_kw": (time, np.cos(time))}
    plain, bridged = to_grid(series, 1.0), to_grid(series, 1.0, bridge_s=30.0)
    assert (bridged["age_s"] == 0.0).all()
    for name in plain.columns:
        np.testing.assert_allclose(bridged[name].to_numpy(), plain[name].to_numpy(), atol=1e-12, err_msg=name)


def test_a_stale_channel_starts_a_segment():
    time = np.arange(0.0, 60)
    torque = time[(time < 20) | (time >= 40)]
    grid = to_grid({"speed_kmh": (time, time), "motor_torque_nm": (torque, torque)}, 1.0)
    assert grid["segment"].n_unique() == 3
    assert grid["motor_torque_nm"].null_count() == 40 - 25
    assert grid.filter(grid["motor_torque_nm"].is_null())["segment"].unique().to_list() == [1]


def test_a_bin_measured_for_less_than_half_has_no_power():
    time = np.arange(0.0, 10, 0.1)
    power = time[(time < 5.0 + 1e-9) | (time > 5.75)]
    grid = to_grid({"speed_kmh": (time, time), "power_kw": (power, np.full(len(power), 3.0))}, 1.0)
    np.testing.assert_array_equal(grid["time_s"].filter(grid["power_kw"].is_null()), [0.0, 6.0])
    np.testing.assert_allclose(grid["power_kw"].drop_nulls(), 3.0)


def test_speed_is_needed_and_the_rate_must_make_sense():
    with pytest.raises(ChannelError, match="speed_kmh"):
        to_grid({"power_kw": (np.arange(3.0), np.arange(3.0))}, 1.0)
    for hz in (0.0, -1.0, float("nan"), 1e9):
        with pytest.raises(SettingsError, match="Hz"):
            to_grid({"speed_kmh": (np.arange(3.0), np.arange(3.0))}, hz)


def test_a_clock_that_jumps_by_years_starts_a_segment_and_costs_no_rows():
    time = np.array([0.0, 1.0, 2.0, 1.7e9, 1.7e9 + 1.0])
    grid = to_grid({"speed_kmh": (time, np.arange(5.0)), "motor_rpm": (time, 10 * np.arange(5.0))}, 1.0)
    assert grid["time_s"].to_list() == [*np.arange(13.0), 1.7e9, 1.7e9 + 1.0]
    after = grid.filter(pl.col("time_s") >= 1.7e9)
    assert after["segment"].min() > grid["segment"][12]
    assert after["speed_kmh"].to_list() == [3.0, 4.0]
    assert after["motor_rpm"].to_list() == [30.0, 40.0]
    assert after["acceleration_ms2"][0] == 0.0


def test_rows_tell_where_acceleration_was_measured() -> None:
    time, measured = np.arange(31) / 2, (np.arange(3.0), np.ones(3))
    dense = to_grid({"speed_kmh": (time, 50.0 + time), "acceleration_ms2": measured}, 1.0)
    assert dense["acceleration_sensed"].to_list() == [1.0] * 8 + [0.0] * 8  # held for 5 s
    assert dense["acceleration_ms2"][:8].to_list() == [1.0] * 8
    slow = to_grid({"speed_kmh": (time[::6], 50.0 + time[::6]), "acceleration_ms2": measured}, 1.0)
    assert slow["acceleration_sensed"].to_list() == [1.0] * 3 + [0.0] * 13  # motion goes on between readings
    assert {*to_grid({"speed_kmh": (time, 50.0 + time)}, 1.0)["acceleration_sensed"]} == {0.0}


def test_rows_count_their_speed_readings() -> None:
    often, rarely = (
        to_grid({"speed_kmh": (t, 50.0 + 0.0 * t)}, 1.0)["speed_readings"].to_list()
        for t in (np.arange(101) / 10, np.arange(6) * 2.0)
    )
    assert often[1:] == [10.0] * 10
    assert rarely == [1.0, 0.0] * 5 + [1.0]
