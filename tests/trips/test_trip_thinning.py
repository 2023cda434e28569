"""Thinned copies: fewer readings on the same grid, every row's power as measured."""

import numpy as np
import polars as pl
import pytest

from evband.trips import Trip
from evband.trips.thinning import OFTEN, PERIODS_S, thinned
from tiny_car import drive


def copy_of(trip, seed=0, bridge_s=30.0):
    return thinned(trip, trip.on_grid(1.0, bridge_s=bridge_s), bridge_s, np.random.default_rng(seed))


def test_a_copy_has_the_rows_and_the_power_of_the_trip_but_fewer_readings():
    trip = drive("x", 900)
    copy = copy_of(trip)
    both = copy.table.join(trip.table, on="time_s", how="left", suffix="_whole")
    assert len(copy) > 900 - max(PERIODS_S)
    assert both["power_kw"].to_list() == both["power_kw_whole"].to_list()
    fresh = both["age_s"].to_numpy() == 0.0
    assert 1 / max(PERIODS_S) <= fresh.mean() <= 1 / min(PERIODS_S) + 0.02
    assert both["age_s"].max() < max(PERIODS_S)
    assert both["segment"].n_unique() == 1
    np.testing.assert_allclose(both["speed_end_kmh"].to_numpy()[fresh], both["speed_kmh_whole"].to_numpy()[fresh])


def test_accelerations_of_a_copy_come_from_its_readings_alone():
    trip = drive("x", 900)
    shaken = trip.table.with_columns(acceleration_ms2=pl.lit(7.0))
    assert copy_of(Trip("x", shaken, trip.hz)).table.equals(copy_of(trip).table)


def test_each_seed_thins_otherwise_and_the_same_seed_alike():
    trip = drive("x", 900)
    assert copy_of(trip).table.equals(copy_of(trip).table)
    assert not copy_of(trip, 1).table.equals(copy_of(trip).table)


def test_power_is_unknown_where_the_trip_has_no_row():
    trip = drive("x", 400)
    holed = Trip("x", trip.table.filter(~pl.col("time_s").is_between(100, 140)), trip.hz)
    copy = copy_of(holed).table
    inside = copy.filter(pl.col("time_s").is_between(100, 140))
    assert len(inside)
    assert inside["power_kw"].null_count() == len(inside)


def test_a_copy_of_readings_is_what_a_grid_of_fewer_of_them_shows():
    """Readings every 0.7 s off the rows: ages are those of the readings kept, and power that of the whole log."""
    time = 100.0 + 0.7 * np.arange(700)
    table = pl.DataFrame(
        {"time_s": time, "speed_kmh": 40 + 30 * np.sin(time / 9), "power_kw": 10 + 8 * np.cos(time / 9)}
    )
    trip = Trip("x", table)
    copy, grid = copy_of(trip).table, trip.on_grid(1.0, bridge_s=30.0).table
    both = copy.join(grid, on="time_s", how="inner", suffix="_whole")
    assert len(both) == len(copy)
    assert both["power_kw"].to_list() == both["power_kw_whole"].to_list()
    ages = copy["age_s"].to_numpy()
    read = copy["time_s"].to_numpy() - ages
    kept = read[ages > 0]
    assert np.abs(kept - time[np.abs(time[:, None] - kept).argmin(0)]).max() < 1e-9, (
        "silences began at readings of the log"
    )
    assert (ages % 1 > 1e-6).any()


def test_short_periods_are_drawn_more_often():
    trip = drive("x", 60_000)
    fresh = copy_of(trip).table["age_s"].to_numpy() == 0.0
    expected = (OFTEN / PERIODS_S).sum()  # readings per row
    assert fresh.mean() == pytest.approx(expected, abs=0.03)


def test_a_copy_begins_with_what_was_last_read_before_its_first_speed():
    """Temperature and height rise for a minute before the first speed: the oldest of these readings is long out of date."""
    parked, driven = np.arange(0.5, 60.0), np.arange(60.0, 600.0)
    before = pl.DataFrame({"time_s": parked, "ambient_temp_c": parked / 3, "elevation_m": parked})
    after = pl.DataFrame(
        {"time_s": driven, "speed_kmh": 50 + 10 * np.sin(driven / 9), "elevation_m": np.full(len(driven), 60.0)}
    )
    first = copy_of(Trip("x", pl.concat([before, after], how="diagonal"))).table.row(0, named=True)
    assert first["time_s"] == 60.0
    assert first["ambient_temp_c"] == pytest.approx(59.5 / 3)
    assert first["elevation_m"] == 60.0
