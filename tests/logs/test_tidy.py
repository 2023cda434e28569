"""Tidy tables: writing and reading them back is the identity."""

import gzip

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import evband
from evband.errors import ChannelError, LogError, TripsError
from evband.logs.writing import write_trips
from evband.trips import Trip, Trips
from evband.trips.quality import Cleaning

value = st.one_of(st.none(), st.floats(-19, 19))


@st.composite
def trips(draw):
    made = []
    for number in range(draw(st.integers(1, 3))):
        steps = draw(st.lists(st.integers(1, 5_000), min_size=4, max_size=30))
        n = len(steps)
        columns = {
            "time_s": np.cumsum(steps) / 1000.0,
            "speed_kmh": draw(st.lists(st.floats(1, 19), min_size=n, max_size=n)),
        }
        for name in draw(st.sets(st.sampled_from(["acceleration_ms2", "ambient_temp_c", "power_kw", "elevation_m"]))):
            columns[name] = draw(st.lists(value, min_size=n, max_size=n))
        table = pl.DataFrame(columns).cast(pl.Float64)
        table = table.select(c for c in table if c.null_count() < n)
        made.append(Trip(f"trip {number}", table))
    return Trips(made)


def same(a, b):
    assert a.ids == b.ids
    assert a.hz == b.hz
    for one, other in zip(a, b, strict=True):
        assert one.table.select(sorted(one.table.columns)).equals(other.table.select(sorted(other.table.columns)))
    assert a.fingerprints == b.fingerprints


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(trips(), st.sampled_from([".csv", ".parquet"]), st.sampled_from([None, 1.0, 3.0]))
def test_write_then_read_is_the_identity(tmp_path, some, ending, hz):
    if hz is not None:
        some = some.on_grid(hz)
        some = Trips(
            [t for t in some if len(t) > 1] or [Trip("x", pl.DataFrame({"time_s": [0.0], "speed_kmh": [1.0]}))]
        )
    path = tmp_path / f"trips{ending}"
    write_trips(some, path)
    same(evband.read_trips(path, cleaning=Cleaning(spikes=False, jumps=False)), some)


def test_gzip_is_found_by_content(tmp_path):
    path = tmp_path / "drive"
    path.write_bytes(gzip.compress(b"time_s,speed_kmh\n0,1\n1,2\n2,3\n"))
    assert len(evband.read_trips(path)[0]) == 3
    path.write_bytes(gzip.compress(b"time_s,speed_kmh\n0,1\n1,2\n2,3\n")[:-9])
    with pytest.raises(LogError, match="gzip"):
        evband.read_trips(path)


def test_a_bom_and_crlf_do_no_harm(tmp_path):
    path = tmp_path / "drive.csv"
    path.write_bytes(b"\xef\xbb\xbftime_s,speed_kmh\r\n0,1\r\n1,2\r\n2,3\r\n")
    assert evband.read_trips(path)[0].table["speed_kmh"].to_list() == [1.0, 2.0, 3.0]


def test_other_columns_are_ignored_and_noted():
    frame = pl.DataFrame({"time_s": [0.0, 1.0], "speed_kmh": [1, 2], "colour": ["red", "blue"]})
    trip = evband.read_trips(frame)[0]
    assert trip.channels == ("speed_kmh",)
    assert "colour" in trip.report.notes[0]


def test_thirty_two_bit_times_are_decimals():
    time = np.round(np.arange(1000) * 0.1, 1)
    frame = pl.DataFrame({"time_s": time.astype(np.float32), "speed_kmh": np.ones(1000)})
    np.testing.assert_array_equal(evband.read_trips(frame)[0].table["time_s"], time)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("time_s,speed_kmh\n", LogError, "no rows"),
        (
            "time_s,speed_kmh\n0,1\n2,2\n1,3\n",
            LogError,
            "time runs backwards in trip drive, from 2 to 1 s at its row 3",
        ),
        ("time_s,speed_kmh\n0,\n1,\n2,\n", LogError, "all values .* missing"),
        ("time_s,speed_kmh,power_kw\n0,1,2\n1,fast,3\n", LogError, "'fast' in row 2"),
        ("time_s,speed_kmh\n,1\n1,2\n", LogError, "no time_s in its row 1"),
        ("time_s;power_kw\n0;1\n1;2\n", LogError, "separated by ';'"),
        ("time_s,sped_kmh\n0,1\n1,2\n", ChannelError, "nearest is 'sped_kmh'"),
        ("when,speed_kmh,power_kw\n0,1,2\n1,2,3\n", ChannelError, "no time_s"),
        ("trip_id,time_s,speed_kmh\na,0,1\n,1,2\n", LogError, "no trip_id"),
    ],
)
def test_bad_tables(tmp_path, text, error, message):
    path = tmp_path / "drive.csv"
    path.write_text(text)
    with pytest.raises(error, match=message):
        evband.read_trips(path)


@pytest.mark.parametrize(
    "header",
    [
        "time,speed_kmh,power_kw",
        "time_s;speed_kmh;power_kw",
        "time_s,velocity_kmh,power_kw",
        "time_s,speed_mps,power_w",
    ],
)
def test_tables_nearly_in_our_names_are_read_by_their_units(tmp_path, header):
    per_unit = {"speed_mps": 3.6, "power_w": 1e-3}
    sign = ";" if ";" in header else ","
    rows = [sign.join(map(str, (k, 20 + k % 7, 3 + k % 5))) for k in range(60)]
    (tmp_path / "drive.csv").write_text("\n".join([header, *rows]) + "\n")
    trip = evband.read_trips(tmp_path / "drive.csv")[0]
    _, speed, power = header.split(sign)
    for name, spelled, first in (("speed_kmh", speed, 20), ("power_kw", power, 3)):
        assert trip.table[name][0] == pytest.approx(first * per_unit.get(spelled, 1.0))
    assert trip.table["time_s"].to_list() == list(range(60))


def test_a_table_that_names_its_units_keeps_our_other_channels(tmp_path):
    header = (
        "timestamp,speed_kmh,acceleration_ms2,grade_pct,hvac_power_kw,wind_ms,distance_km,latitude_deg,longitude_deg"
    )
    rows = [f"2024-05-01 10:00:{k:02d},{20 + k % 7},0.1,1.5,0.8,3.0,{k / 200},48.{k:04d},11.{k:04d}" for k in range(60)]
    (tmp_path / "drive.csv").write_text("\n".join([header, *rows]) + "\n")
    trip = evband.read_trips(tmp_path / "drive.csv")[0]
    values = {"acceleration_ms2": 0.1, "grade_pct": 1.5, "hvac_power_kw": 0.8, "wind_ms": 3.0, "latitude_deg": 48.0}
    assert {name: trip.table[name][0] for name in values} == values


def test_repeated_times_are_noted():
    trip = evband.read_trips(pl.DataFrame({"time_s": [0.0, 1.0, 1.0], "speed_kmh": [1.0, 2.0, 3.0]}))[0]
    assert trip.table["speed_kmh"].to_list() == [1.0, 3.0]
    assert "repeat" in trip.report.notes[0]


def test_same_ids_in_two_files_stay_apart(tmp_path):
    for name, speed in (("monday", 2), ("tuesday", 3)):
        (tmp_path / f"{name}.csv").write_text(f"trip_id,time_s,speed_kmh\na,0,1\na,1,{speed}\n")
    assert evband.read_trips(str(tmp_path / "*.csv")).ids == ("a", "tuesday:a")


def test_a_name_with_dots_is_the_trips_and_its_folder_tells_two_apart(tmp_path):
    for folder, speed in (("january", 2), ("february", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "2026.01.05.csv").write_text(f"time_s,speed_kmh\n0,1\n1,{speed}\n")
    assert evband.read_trips(str(tmp_path / "*" / "*.csv")).ids == ("2026.01.05", "january/2026.01.05")


def test_flip_power_turns_power_and_current():
    frame = pl.DataFrame({"time_s": [0.0, 1.0], "speed_kmh": [1.0, 2.0], "battery_current_a": [5.0, -6.0]})
    trip = evband.read_trips(frame, flip_power=True)[0]
    assert trip.table["battery_current_a"].to_list() == [-5.0, 6.0]
    assert "flip_power" in trip.report.notes[-1]


def test_asynchronous_channels_make_one_table_with_nulls():
    table = {"time_s": [0.0, 0.4, 1.0, 1.4], "speed_kmh": [1.0, None, 2.0, None], "power_kw": [None, 3.0, None, 4.0]}
    trip = evband.read_trips(pl.DataFrame(table))[0]
    assert trip.table.equals(pl.DataFrame(table).select(trip.table.columns))


def test_no_frame_at_all():
    with pytest.raises(evband.errors.SettingsError, match="An object of type dict cannot be read"):
        evband.read_trips({"time_s": [1]})
    with pytest.raises(TripsError, match="no trips"):
        evband.read_trips([])


def test_a_grid_of_one_row_beside_others_and_a_simulations_truth_come_back(tmp_path):
    long = Trip(
        "long", pl.DataFrame({"time_s": [0.0, 3.0, 9.0], "speed_kmh": [1.0, 2.0, 3.0], "true_nu": [4.0, None, 5.0]})
    )
    short = Trip("short", pl.DataFrame({"time_s": [7.0], "speed_kmh": [5.0], "true_nu": [4.0]}))
    for some in (Trips([long, short]), Trips([long, short]).on_grid(1 / 3)):
        write_trips(some, tmp_path / "trips.parquet")
        same(evband.read_trips(tmp_path / "trips.parquet"), some)


@pytest.mark.parametrize(
    ("segment", "times"), [(["x", "x", "y"], [0, 1, 2]), ([0, None, 1], [0, 1, 2]), ([0, 0, 1], [0.0, 1.0, 2.7])]
)
def test_a_segment_column_of_somebody_elses_is_no_grid(segment, times):
    frame = pl.DataFrame({"time_s": times, "speed_kmh": [5.0, 6.0, 7.0], "segment": segment})
    (trip,) = evband.read_trips(frame)
    assert trip.hz is None
    assert "segment" in trip.report.notes[0]
    assert "segment" not in trip.table.columns


def test_an_alias_names_a_column_of_a_tidy_table(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("time_s,sped\n0,1\n1,2\n")
    (trip,) = evband.read_trips(path, aliases={"speed_kmh": ["sped"]})
    assert trip.series("speed_kmh")[1].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
def test_every_encoding_of_a_spreadsheet(tmp_path, encoding):
    path = tmp_path / "log.csv"
    path.write_bytes("time_s,speed_kmh,Höhe\r\n0,1,süß\r\n1,2,\r\n".encode(encoding))
    (trip,) = evband.read_trips(path)
    assert trip.series("speed_kmh")[1].tolist() == [1.0, 2.0]
