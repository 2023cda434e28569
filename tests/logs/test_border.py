"""What is too large, too wide or too strange ends at the border, in one sentence; each of these inputs once broke a reader."""

import gzip
import io
import time

import numpy as np
import polars as pl
import pytest

from evband.errors import LONGEST, EvbandError, LogError, SettingsError, UnforeseenError, one_line
from evband.logs import border
from evband.logs.pages import checked_rows
from evband.logs.reading import read_trips

DRIVE = "time_s,speed_kmh,power_kw\n" + "".join(f"{i},{30 + i % 7},{5 + i % 3}\n" for i in range(40))
TORQUE = "GPS Time,Device Time,Speed (OBD)(km/h)\n" + "".join(f"-,05-Oct-2026 14:22:{i:02},{i}\n" for i in range(40))
LONG = '"SECONDS";"PID";"VALUE";"UNITS"\n' + "".join(f'"{i}";"Vehicle speed";"{i}";"km/h"\n' for i in range(40))


def read(tmp_path, data, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_trips(path)


def read_or_refuse(tmp_path, data, name="log.csv"):
    """The trips, or None where it was refused in a way that was foreseen."""
    try:
        return read(tmp_path, data, name)
    except UnforeseenError:
        raise
    except EvbandError:
        return None


def refused(tmp_path, data, says, name="log.csv"):
    with pytest.raises(EvbandError) as caught:
        read(tmp_path, data, name)
    text = str(caught.value)
    assert says in text
    assert not isinstance(caught.value, UnforeseenError), text
    assert len(text) <= LONGEST
    assert text.isprintable()


def test_a_message_is_one_printable_line_of_at_most_400_characters():
    hostile = "x.csv: " + "A" * 50_000_000 + "\n\x1b[31m\r\x00 red; correct it."
    text = str(LogError(hostile))
    assert len(text) <= LONGEST
    assert text.isprintable()
    assert text.startswith("x.csv: AAAA")
    assert text.endswith("red; correct it.")
    assert one_line("a\n  b\tc\u2028d") == "a b c d"


def test_quotes_that_never_close(tmp_path):
    broken = DRIVE.replace("10,33", '"10,33').replace("20,36", '2"0,36')
    refused(tmp_path, broken, "cannot be parsed")
    wide = 'time,"Vehicle speed (km/h)","Battery Current (A)",\n' + '12:00:00.000,"3,"4,\n12:00:01.000,""5"",4"\n' * 30
    assert read_or_refuse(tmp_path, wide) is None


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_long_export_cut_just_after_an_opening_quote(tmp_path, cut):
    trips = read_or_refuse(tmp_path, LONG[: len(LONG) - cut])
    assert trips is None or len(trips[0]) >= 38


def parquet(**columns):
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def test_flipped_parquet_bytes_never_panic(tmp_path, capfd):
    rng = np.random.default_rng(0)
    whole = parquet(time_s=np.arange(50.0), speed_kmh=np.arange(50.0), trip_id=["a"] * 50)
    for _ in range(300):
        data = bytearray(whole)
        for at in rng.integers(4, len(data), 3):
            data[at] = rng.integers(256)
        read_or_refuse(tmp_path, bytes(data), "log.parquet")
    assert "panicked" not in capfd.readouterr().err


def test_a_parquet_page_that_promises_a_negative_number_of_values(tmp_path):
    """polars would ask for 2^61 bytes and abort."""
    whole = parquet(time_s=np.arange(50.0), speed_kmh=np.arange(50.0))
    broken = whole.replace(b"\x15\x64\x15", b"\x15\x65\x15")  # fields of 32 bits: 50 as 100, -51 as 101
    assert broken != whole
    refused(tmp_path, broken, "promises -51 values", "log.parquet")


def test_parquet_with_nested_columns_small_pages_and_no_rows_is_let_through():
    buffer = io.BytesIO()
    columns = {"a": [[1, 2], None, []] * 50, "b": [{"c": 1.0}] * 150, "d": pl.Series(["x"] * 150, dtype=pl.Categorical)}
    pl.DataFrame(columns).write_parquet(buffer, data_page_size=64, row_group_size=40)
    assert checked_rows(buffer.getvalue()) == 150
    assert checked_rows(parquet(a=[])) == 0


def test_parquet_that_promises_more_cells_than_there_may_be(tmp_path, monkeypatch):
    monkeypatch.setattr(border, "MOST_CELLS", 99)
    refused(tmp_path, parquet(time_s=np.arange(50.0), speed_kmh=np.zeros(50)), "more than 99 cells")


def test_json_with_400_digits_with_5000_digits_and_100_000_brackets(tmp_path):
    lines = "".join(f'{{"utc": {i}, "speed": {i}}}\n' for i in range(20))
    trips = read(tmp_path, lines + f'{{"utc": 20, "speed": {"9" * 400}, "power": 1}}\n' + lines[-20:], "x.json")
    assert trips[0].table["speed_kmh"].max() == 19.0
    refused(tmp_path, lines + f'{{"utc": {"9" * 5000}}}\n' + lines, "line 21", "x.json")
    refused(tmp_path, '{"utc": 1, "speed": ' + "[" * 100_000, "no object with a time", "x.json")
    refused(tmp_path, '{"utc": 1, "speed": ' + "[" * 100_000 + "]" * 100_000 + "}\n" + lines, "JSON", "x.json")


@pytest.mark.parametrize("segment", [2**31, -(2**40), 2**63])
def test_a_segment_beyond_32_bits_is_somebody_elses_column(segment):
    frame = pl.DataFrame({"time_s": [0.0, 1.0], "speed_kmh": [1.0, 2.0], "segment": pl.Series([segment] * 2, dtype=pl.Int64 if segment < 2**63 else pl.UInt64)})  # fmt: skip
    assert read_trips(frame).hz is None


@pytest.mark.parametrize("ids", [[[1], [2]], [b"a", b"b"], [{"a": 1}, {"a": 2}]])
def test_a_trip_id_of_lists_bytes_or_structs(ids):
    with pytest.raises(LogError, match="trip_id holds"):
        read_trips(pl.DataFrame({"time_s": [0.0, 1.0], "speed_kmh": [1.0, 2.0], "trip_id": ids}))


@pytest.mark.parametrize("name", ["x" * 201, "a\nb", "\x1b[31m"])
def test_a_trip_id_that_no_terminal_should_see(name):
    with pytest.raises(LogError, match="printable"):
        read_trips(pl.DataFrame({"time_s": [0.0, 1.0], "speed_kmh": [1.0, 2.0], "trip_id": [name] * 2}))


def test_time_steps_near_1e_310_are_one_instant_and_times_near_1e300_none():
    tiny = pl.DataFrame({"time_s": [0.0, 1e-310, 1.0, 2.0], "speed_kmh": [1.0, 2.0, 3.0, 4.0], "segment": [0, 0, 0, 0]})
    assert read_trips(tiny)[0].table["speed_kmh"].to_list() == [2.0, 3.0, 4.0]
    assert len(read_trips(tiny.drop("segment"))[0]) == 3
    with pytest.raises(LogError, match="not a plausible time"):
        read_trips(pl.DataFrame({"time_s": [0.0, 1e300], "speed_kmh": [1.0, 2.0]}))


def test_a_speed_that_is_all_glitches_beside_a_power_that_is_not():
    frame = pl.DataFrame({"time_s": np.arange(50.0), "speed_kmh": np.full(50, 999.0), "power_kw": np.arange(50.0)})
    with pytest.raises(LogError, match="no speed is left"):
        read_trips(frame)


def test_a_power_that_is_all_glitches_beside_a_speed_that_is_not():
    frame = pl.DataFrame({"time_s": np.arange(50.0), "speed_kmh": np.arange(50.0), "power_kw": np.full(50, 1e7)})
    assert read_trips(frame)[0].channels == ("speed_kmh",)


def test_a_second_torque_header_without_a_clock(tmp_path):
    refused(tmp_path, TORQUE + TORQUE.replace("GPS Time,Device Time", "GPS Time x,Device Tim"), "no Device Time")


def test_a_gzip_bomb_is_stopped_at_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(border, "MOST_BYTES", 1 << 20)
    bomb = gzip.compress(bytes(1 << 26))
    assert len(bomb) < 1 << 20
    refused(tmp_path, bomb, "unpacks to more than 1 MiB", "log.csv.gz")
    refused(tmp_path, b"x" * ((1 << 20) + 1), "more than 1 MiB")


def test_gzip_of_very_many_members_takes_time_in_proportion(tmp_path):
    path = tmp_path / "many.csv.gz"
    path.write_bytes(gzip.compress(b"", mtime=0) * 100_000 + gzip.compress(DRIVE.encode()))
    assert border.log_bytes(path) == DRIVE.encode()  # copying the rest after each member would take minutes


def test_gzip_of_several_members_and_one_cut_short(tmp_path):
    half = len(DRIVE) // 2
    data = gzip.compress(DRIVE[:half].encode()) + gzip.compress(DRIVE[half:].encode())
    assert len(read(tmp_path, data)[0]) == 40
    refused(tmp_path, data[:-9], "cut short")
    refused(tmp_path, data[:20] + b"\xff" * 30 + data[50:], "gzip")


def test_a_header_of_a_million_columns_is_refused_at_once(tmp_path):
    started = time.process_time()
    many = ",".join(f"c{i}" for i in range(1_000_000))
    refused(tmp_path, f"time_s,speed_kmh,{many}\n1,2\n", "header line is longer")
    refused(tmp_path, f"time,Vehicle speed (km/h),{many.replace(',', ' (A),')}\n1,2\n", "header line is longer")
    few = ",".join(["c"] * 5000)
    refused(tmp_path, f"time_s,speed_kmh,{few}\n1,2\n", "5002 columns")
    assert time.process_time() - started < 5


def test_a_map_that_is_too_deep_or_too_large(tmp_path):
    (tmp_path / "log.csv").write_text(DRIVE)
    for text in ("a = " + "[" * 50_000, "# " + "x" * (1 << 20)):
        (tmp_path / "map.toml").write_text(text)
        with pytest.raises(SettingsError):
            read_trips(tmp_path / "log.csv", map=tmp_path / "map.toml")


def test_a_gridded_table_without_acceleration_gains_one_and_meets_the_limits():
    t = np.arange(1.0, 31.0)
    speed, power = 50 + 10 * np.sin(t), 5 + t
    speed[10], power[20] = 1000.0, 1e9
    frame = pl.DataFrame({"time_s": t, "speed_kmh": speed, "power_kw": power, "segment": [0] * 20 + [1] * 10})
    trip = read_trips(frame)[0]
    assert trip.hz == 1.0
    assert {(f.kind, f.channel, f.count) for f in trip.report.findings} == {("glitch", "speed_kmh", 1), ("glitch", "power_kw", 1)}  # fmt: skip
    assert trip.table["segment"].to_list() == [0] * 10 + [1] * 9 + [2] * 10
    change = trip.table["acceleration_ms2"].to_numpy()
    assert change[[0, 10, 19]].tolist() == [0.0, 0.0, 0.0]
    assert change[5] == pytest.approx((speed[5] - speed[4]) / 3.6)
    assert trip.table["power_kw"].null_count() == 1
    rows_without = pl.DataFrame({"time_s": t, "speed_kmh": speed, "segment": [0] * 30}).with_columns(
        speed_kmh=pl.when(pl.col("time_s") == 7).then(None).otherwise("speed_kmh")
    )
    assert len(read_trips(rows_without)[0]) == 28


def test_a_gridded_table_that_does_not_say_where_acceleration_was_measured_shows_it():
    speed = pl.Series([50.0, 51.0, 53.0, 53.0])
    edges = {"speed_start_kmh": speed - 1.8, "speed_end_kmh": speed + 1.8}
    frame = pl.DataFrame({"time_s": [1.0, 2.0, 3.0, 4.0], "speed_kmh": speed, "acceleration_ms2": [1.0, 1.2, None, 1.0], "segment": [0] * 4})  # fmt: skip
    (trip,) = read_trips(frame.with_columns(**edges))
    assert trip.table["acceleration_sensed"].to_list() == [0.0, 1.0, 0.0, 0.0]
    (again,) = read_trips(trip.table.with_columns(acceleration_sensed=pl.lit(1.0)))
    assert {*again.table["acceleration_sensed"]} == {1.0}
    assert "acceleration_sensed" not in read_trips(frame)[0].table.columns
    assert "acceleration_sensed" not in read_trips(again.table.drop("acceleration_ms2"))[0].table.columns


def test_a_reader_that_stumbles_is_one_sentence_and_a_fault_in_tests(tmp_path, monkeypatch):
    def stumble(*_):
        raise IndexError("list index out of range")

    monkeypatch.setattr("evband.logs.tidy.read", stumble)
    with pytest.raises(UnforeseenError, match="not foreseen"):
        read(tmp_path, DRIVE)
