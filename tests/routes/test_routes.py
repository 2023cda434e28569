"""Routes: profiles driven within reason, logs as they were driven, and bad profiles in one sentence."""

import time

import numpy as np
import polars as pl
import pytest

from drives import made_up_trip
from evband.errors import LogError, SettingsError
from evband.routes import RATE_MS2, read_route

LEGS = {"distance_km": [0.0, 2.0, 5.0, 8.0], "speed_kmh": [50.0, 100.0, 0.0, 30.0], "elevation_m": [0, 20, 50, 50]}


def test_legs_are_driven_at_their_speed_with_sane_changes():
    trip = read_route(pl.DataFrame(LEGS)).on_grid(1.0)
    table = trip.table
    assert trip.distance_km == pytest.approx(8.0, abs=0.02)
    km = np.cumsum(table["speed_kmh"].to_numpy()) / 3600
    speed = table["speed_kmh"].to_numpy()
    assert speed[0] < 5  # from rest
    assert np.interp([1.0, 3.5, 6.5], km, speed) == pytest.approx([50, 100, 30], abs=1)
    assert speed[np.abs(km - 5.0) < 0.01].min() < 3  # a halt where the profile says 0
    assert np.interp([1.0, 3.5], km, table["elevation_m"].to_numpy()) == pytest.approx([10, 35], abs=0.5)
    start, end = table["speed_start_kmh"].to_numpy(), table["speed_end_kmh"].to_numpy()
    assert end[:-1] == pytest.approx(start[1:])
    assert np.abs(end - start).max() / 3.6 <= RATE_MS2 + 1e-9
    assert not trip.has("acceleration_ms2")  # nobody measured it


def test_a_halt_takes_its_time_and_a_moving_start_does_not_stop():
    legs = pl.DataFrame(LEGS)
    longer = read_route(legs.with_columns(stop_s=pl.Series([0, 0, 300, 0])))
    assert longer.time_s[-1] - read_route(legs).time_s[-1] == pytest.approx(300)
    assert read_route(legs, start_kmh=50.0).on_grid(1.0).table["speed_kmh"][0] == pytest.approx(50)


def test_a_time_profile_is_straight_between_its_rows():
    table = pl.DataFrame({"time_s": [10.0, 70.0, 130.0], "speed_kmh": [0.0, 60.0, 0.0], "stop_s": [0, 0, 40]})
    trip = read_route(table).on_grid(1.0)
    assert len(trip) == 160
    assert trip.distance_km == pytest.approx(1.0)
    assert trip.table["speed_kmh"][9] == pytest.approx(9.5)


def test_a_log_is_a_route_as_it_drove(tmp_path):
    log = made_up_trip("before")
    route = read_route(log)
    assert route.on_grid(1.0).table.equals(log.on_grid(1.0).table)
    log.table.write_csv(tmp_path / "drive.csv")
    assert read_route(tmp_path / "drive.csv").log is not None
    slow = route.at_pace(0.9).on_grid(1.0)
    assert slow.distance_km == pytest.approx(log.distance_km, rel=0.01)
    assert slow.duration_s == pytest.approx(log.duration_s / 0.9, abs=2)
    colder = route.shifted("ambient_temp_c", -10.0).on_grid(1.0)
    assert colder.table["ambient_temp_c"][5] == pytest.approx(log.table["ambient_temp_c"][5] - 10)


def test_a_sparse_forecast_is_filled_in():
    trip = read_route(pl.DataFrame({**LEGS, "ambient_temp_c": [10.0, None, None, 2.0]})).on_grid(1.0)
    assert trip.table["ambient_temp_c"][-1] == pytest.approx(2.0, abs=0.1)
    assert 2.0 < trip.table["ambient_temp_c"][len(trip) // 2] < 10.0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"speed_kmh": [50.0, -1.0, 0.0, 30.0]}, "speed_kmh is -1 in row 2"),
        ({"distance_km": [0.0, 5.0, 2.0, 8.0]}, "distance_km goes from 5 to 2 in row 3"),
        ({"distance_km": [0.0, None, 2.0, 8.0]}, "distance_km is missing in row 2"),
        ({"speed_kmh": [50.0, None, 0.0, 30.0]}, "speed_kmh is missing in row 2"),
        ({"speed_kmh": ["50", "fast", "0", "30"]}, "'fast' in row 2"),
        ({"speed_kmh": [0.0, 0.0, 0.0, 0.0]}, "leads nowhere"),
        ({"elevation_m": [0.0, 99999.0, 0.0, 0.0]}, "elevation_m is 99999 in row 2"),
        ({"ambient_temp_c": [None] * 4}, "ambient_temp_c has no value"),
        ({"stop_s": [0.0, -5.0, 0.0, 0.0]}, "stop_s is negative in row 2"),
    ],
)
def test_bad_profiles_are_told_in_one_sentence(change, says):
    with pytest.raises(LogError, match=says):
        read_route(pl.DataFrame({**LEGS, **change}, strict=False))


def test_too_little_of_a_route(tmp_path):
    with pytest.raises(LogError, match="at least two points"):
        read_route(pl.DataFrame({"distance_km": [0.0], "speed_kmh": [50.0]}))
    with pytest.raises(LogError, match="needs speed_kmh and distance_km or time_s"):
        read_route(pl.DataFrame({"km": [0.0, 1.0], "speed_kmh": [50.0, 50.0]}))
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(LogError, match="empty"):
        read_route(tmp_path / "empty.csv")
    with pytest.raises(LogError, match="no such file"):
        read_route(tmp_path / "nowhere.csv")


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"distance_km": [0.0, 1.0], "speed_kmh": [50.0, 50.0], "stop_s": [0.0, 1e9]}, "takes 2.78e"),
        ({"distance_km": [0.0, 1.0], "speed_kmh": [1e-6, 1e-6]}, "takes 1e"),
        ({"distance_km": [0.0, 1.0, 2.0], "speed_kmh": [50.0, 1e-300, 50.0]}, "takes"),
        ({"time_s": [0.0, 1e12], "speed_kmh": [50.0, 50.0]}, "takes"),
        ({"distance_km": [0.0, 1e300], "speed_kmh": [50.0, 50.0]}, "is distance_km in metres"),
        ({"distance_km": [[0.0], [1.0]], "speed_kmh": [50.0, 50.0]}, "not numbers"),
        ({"distance_km": np.arange(200_001.0), "speed_kmh": np.full(200_001, 50.0)}, "at most 200000 points"),
    ],
)
def test_a_route_that_nobody_drives_takes_neither_memory_nor_time(columns, says):
    started = time.monotonic()
    with pytest.raises(LogError, match=says):
        read_route(pl.DataFrame(columns))
    assert time.monotonic() - started < 2


def test_a_long_route_on_a_fine_grid_is_refused_before_it_is_built():
    route = read_route(pl.DataFrame({"distance_km": [0.0, 1000.0], "speed_kmh": [50.0, 50.0]}))
    with pytest.raises(LogError, match="plan it in parts"):
        route.on_grid(1000.0)


def test_a_thing_that_is_not_a_route():
    with pytest.raises(SettingsError, match="type int cannot be read; give a path, a trip, or a pandas"):
        read_route(42)
