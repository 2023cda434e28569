import dataclasses

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import evband
from evband.errors import ChannelError, LogError, TripsError
from evband.trips import Trip, Trips


def drive(trip_id="a", n=600, step=1.0, seed=0):
    noise = np.random.default_rng(seed)
    time = step * np.arange(n)
    speed = 50 + 30 * np.sin(time / 40)
    table = {"time_s": time, "speed_kmh": speed, "power_kw": 8 + 5 * np.cos(time / 40) + noise.normal(size=n)}
    return Trip(trip_id, pl.DataFrame(table))


def test_a_trip_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        drive().trip_id = "b"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"time_s": [0.0, 1.0, 1.0], "speed_kmh": [1.0, 2.0, 3.0]}, "does not increase at row 2"),
        ({"time_s": [0.0, 2.0, 1.0], "speed_kmh": [1.0, 2.0, 3.0]}, "does not increase"),
        ({"time_s": [0.0, float("nan")], "speed_kmh": [1.0, 2.0]}, "not finite"),
        ({"time_s": [0.0, 1.0], "speed_kmh": [1.0, float("inf")]}, "speed_kmh has values that are not finite"),
        ({"time_s": [0.0], "colour": [1.0]}, "not channels: colour"),
        ({"time_s": [0.0], "speed_kmh": [1]}, "not Float64: speed_kmh"),
    ],
)
def test_a_trip_is_validated(table, message):
    with pytest.raises(TripsError, match=message):
        Trip("a", pl.DataFrame(table))


def test_no_trip_has_zero_rows():
    with pytest.raises(TripsError, match="no rows"):
        Trip("a", pl.DataFrame({"time_s": pl.Series([], dtype=pl.Float64)}))


def test_ids_are_unique_and_there_is_at_least_one_trip():
    with pytest.raises(TripsError, match="id 'a'"):
        Trips([drive("a"), drive("a")])
    with pytest.raises(TripsError, match="no trips"):
        Trips([])


def test_split_takes_whole_trips_and_repeats_with_its_seed():
    trips = Trips(drive(f"t{i}", n=20, seed=i) for i in range(10))
    train, test = trips.split(test=0.3, seed=4)
    assert len(test) == 3
    assert set(train.ids) | set(test.ids) == set(trips.ids)
    assert not set(train.ids) & set(test.ids)
    assert trips.split(test=0.3, seed=4)[1].ids == test.ids
    assert any(trips.split(test=0.3, seed=s)[1].ids != test.ids for s in range(5))


def test_a_single_run_is_cut_in_time_with_a_gap():
    train, test = Trips([drive(n=1000)]).split(test=0.3, gap_s=60)
    assert test[0].table["time_s"][0] - train[0].table["time_s"][-1] >= 60
    assert len(test[0]) == pytest.approx(0.3 * (1000 - 60), abs=2)
    with pytest.raises(TripsError, match="too short"):
        Trips([drive(n=50)]).split(gap_s=60)
    with pytest.raises(TripsError, match="between 0 and 1"):
        Trips([drive()]).split(test=1.5)


def test_on_another_grid_an_acceleration_that_the_first_one_made_is_not_measured():
    time = np.arange(41) / 4
    made = Trip("a", pl.DataFrame({"time_s": time, "speed_kmh": 50.0 + time})).on_grid(2.0)
    assert {*made.on_grid(1.0).table["acceleration_sensed"]} == {0.0}
    told = made.table.with_columns(acceleration_ms2=pl.lit(0.3), acceleration_sensed=pl.lit(1.0))
    again = Trip("b", told, 2.0).on_grid(1.0).table
    assert {*again["acceleration_sensed"]} == {1.0}
    assert {*again["acceleration_ms2"]} == {0.3}


def test_on_the_grid_it_already_has_a_trip_is_itself():
    grid = drive().on_grid(1.0)
    assert grid.on_grid(1.0) is grid
    assert grid.table["power_kw"].to_numpy() == pytest.approx(drive().table["power_kw"].to_numpy())


def test_distance_and_duration():
    time = np.arange(0.0, 3601.0)
    trip = Trip("a", pl.DataFrame({"time_s": time, "speed_kmh": np.full(len(time), 80.0)}))
    assert trip.distance_km == pytest.approx(80.0)
    assert trip.duration_s == 3600
    assert trip.on_grid(0.5).distance_km == pytest.approx(80.0, rel=1e-3)
    assert trip.rate_hz == pytest.approx(1.0)


def test_a_part_of_a_trip_is_known_again_whatever_its_clock(tmp_path):
    trips = Trips([drive(name, n=1800, seed=seed) for seed, name in enumerate("abc")])
    trained = trips.subset(["a", "b"]).traces
    assert trips.among(trained) == ["a", "b"]
    part = trips[0].between(600, 1500, "part")
    later = dataclasses.replace(part, table=part.table.with_columns(pl.col("time_s") + 1e5), trip_id="later")
    Trips([part, later, trips[2].between(600, 1500)]).to_polars().write_csv(tmp_path / "parts.csv")
    parts = evband.read_trips(tmp_path / "parts.csv")
    assert parts.among(trained) == ["part", "later"]
    assert trips.among(parts.subset(["part"]).traces) == ["a"]  # and the whole of which a part was trained on


def test_steady_and_standing_rows_leave_no_marks():
    steady = pl.DataFrame({"time_s": np.arange(100.0), "speed_kmh": np.tile([90.0, 91.0], 50), "power_kw": 15.0})
    assert Trip("steady", steady).marks == ()
    assert Trip("short", steady[:3]).marks == ()
    assert Trip("unmeasured", steady.drop("power_kw")).marks == ()


def test_fingerprint_is_of_the_content_and_survives_writing(tmp_path):
    trips = Trips([drive("a", seed=1), drive("b", seed=2)]).on_grid(0.5)
    assert len(set(trips.fingerprints)) == 2
    trips.to_polars().write_csv(tmp_path / "t.csv")
    assert evband.read_trips(tmp_path / "t.csv").fingerprints == trips.fingerprints
    assert dataclasses.replace(trips[0], trip_id="other").fingerprint == trips[0].fingerprint


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, pa.table])
def test_frames_of_three_kinds_are_taken(kind):
    frame = kind({"trip_id": ["a", "a", "b", "b"], "time_s": [0.0, 1.0, 0.0, 1.0], "speed_kmh": [1.0, 2.0, 3.0, 4.0]})
    trips = Trips.from_frame(frame)
    assert trips.ids == ("a", "b")
    assert evband.read_trips(frame).ids == ("a", "b")


def test_subset_and_slices_stay_trips():
    trips = Trips(drive(f"t{i}", n=20) for i in range(4))
    assert trips.subset(["t2", "t0"]).ids == ("t2", "t0")
    assert isinstance(trips[1:], Trips)
    with pytest.raises(TripsError, match="no trip 'x'"):
        trips.subset(["x"])


def test_different_rates_are_an_error_that_says_what_to_give():
    with pytest.raises(TripsError, match="--hz"):
        Trips([drive("a", step=1.0), drive("b", step=0.1)]).check_one_rate()
    with pytest.raises(TripsError, match="on_grid"):
        Trips([drive("a"), drive("b").on_grid(1.0)])


def test_a_trip_of_times_alone_says_what_it_lacks():
    alone = Trip("a", pl.DataFrame({"time_s": [0.0, 1.0, 2.0]}))
    for ask in (lambda: alone.rate_hz, lambda: evband.read_route(alone), lambda: alone.series("speed_kmh")):
        with pytest.raises(ChannelError, match="no speed_kmh among its columns"):
            ask()
    missing = Trip("a", alone.table.with_columns(speed_kmh=pl.lit(None, pl.Float64)))
    assert np.isnan(missing.rate_hz)
    with pytest.raises(LogError, match="0 speed readings"):
        evband.read_route(missing)
