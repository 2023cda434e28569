"""Logs that went through other hands: saved again by Excel or pandas, zipped, with a title above, with other dates and minus signs."""

import datetime as dt
import io
import zipfile

import numpy as np
import polars as pl
import pytest

from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import clock, columns
from evband.logs.reading import read_trips

HEADER = "time,Vehicle speed (km/h),HV EV Battery Power (kW)"


def rows(when="12:41:{s:06.3f}", count=50):
    return [f"{when.format(s=float(i), m=i // 60)},{40 + i % 9},{10 + i % 7}" for i in range(count)]


def read(tmp_path, data, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return read_trips(path)


def zipped(files):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


PLAIN = "\n".join([HEADER, *rows()]) + "\n"
INDEXED = "\n".join([f",{HEADER}", *(f"{i},{row}" for i, row in enumerate(rows()))])


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("12:41:", "41:"),  # Excel shows, and saves, minutes and tenths
        PLAIN.replace("12:41:", "41:").replace(",", ";").replace(".", ","),
        "sep=,\n" + PLAIN,
        "Peugeot e-208\n\nmine\n" + PLAIN,
        PLAIN.replace("\n", "\r"),
        INDEXED,
        INDEXED.replace("time", "Time", 1),
        PLAIN.replace("12:41:", ""),  # seconds
        "\n".join([HEADER, *(f"{1000 * i},{row.split(',', 1)[1]}" for i, row in enumerate(rows()))]),
    ],
)
def test_a_log_saved_again_is_the_same_drive(tmp_path, text):
    (trip,) = read(tmp_path, text)
    time, speed = trip.series("speed_kmh")
    np.testing.assert_allclose(time - time[0], np.arange(50), atol=1e-6)
    np.testing.assert_array_equal(speed, [40 + i % 9 for i in range(50)])
    np.testing.assert_array_equal(trip.series("power_kw")[1], [10 + i % 7 for i in range(50)])


def test_minutes_alone_are_no_clock_for_seconds(tmp_path):
    with pytest.raises(LogError, match="'12:41'"):
        read(tmp_path, "\n".join([HEADER, *rows("12:{m:02}")]).replace("12:00", "12:41"))


def test_a_zip_archive_is_read_file_by_file(tmp_path, monkeypatch):
    packed = zipped({"a/monday.csv": PLAIN, "tuesday.csv": PLAIN.replace("12:41", "15:02"), "__MACOSX/x": b"\0"})
    assert read(tmp_path, packed, "drives.zip").ids == ("monday", "tuesday")
    with pytest.raises(LogError, match=r"drives.zip.notes.txt: no reader knows"):
        read(tmp_path, zipped({"notes.txt": "nothing"}), "drives.zip")
    with pytest.raises(LogError, match="zip archive is empty"):
        read(tmp_path, zipped({"__MACOSX/x": b"x"}), "drives.zip")
    with pytest.raises(LogError, match="zip archive cannot be parsed"):
        read(tmp_path, packed[:-30], "drives.zip")
    monkeypatch.setattr(border, "MOST_BYTES", 2000)
    with pytest.raises(LogError, match="unpacks to more"):
        read(tmp_path, packed, "drives.zip")


def test_excel_in_russian_saves_its_own_code_page(tmp_path):
    names = HEADER.replace("Vehicle speed (km/h)", "Скорость автомобиля (км/ч)").replace(
        "HV EV Battery Power (kW)", "Мощность ВВБ (кВт)"
    )
    (trip,) = read(tmp_path, PLAIN.replace(HEADER, names).encode("cp1251"))
    assert (len(trip), trip.channels) == (50, ("speed_kmh", "power_kw"))


def test_a_true_minus_is_a_minus(tmp_path):
    (trip,) = read(tmp_path, PLAIN.replace(",16\n", ",\u221216\n"))
    assert (trip.series("power_kw")[1] == -16.0).sum() == 7


@pytest.mark.parametrize(
    ("dates", "days"),
    [
        (["01/31/2024 23:59:59", "02/01/2024 00:00:01"], [0, 1]),
        (["31/01/2024 23:59:59", "01/02/2024 00:00:01"], [0, 1]),
        (["2/1/24 17:00:00", "3/1/24 8:00:00"], [0, 1]),  # the day moves, so it is the first
        (["01-05-2024 17:00:00", "01-06-2024 08:00:00"], [0, 1]),
    ],
)
def test_the_order_of_day_and_month_is_that_of_the_shorter_log(dates, days):
    found = clock.since_first_day(pl.Series(dates)) // clock.DAY_S
    assert found.tolist() == days


@pytest.mark.parametrize(
    "dates",
    [
        ["2024-01-05 11:26:58", "2024-01-05 11:26:59.5"],
        ["2024-01-05T11:26:58Z", "2024-01-05T11:26:59.500000Z"],
        ["2024-01-05 11:26:58+00", "2024-01-05 11:26:59.5+00"],
        ["2024-01-05 06:26:58-05:00", "2024-01-05 12:26:59.5+01"],
        ["1704454018000", "1704454019500"],
        ["1704454018000000000", "1704454019500000000"],
    ],
)
def test_dates_of_databases(dates):
    np.testing.assert_allclose(columns.seconds(pl.Series(dates)), [1704454018.0, 1704454019.5])


def test_dates_that_excel_wrote():
    np.testing.assert_allclose(columns.seconds(pl.Series(["1/5/2024 11:26", "1/5/2024 11:27"])), [41160.0, 41220.0])
    np.testing.assert_allclose(np.diff(clock.of_numbers(45296.0 + np.arange(5) / clock.DAY_S)), 1.0, rtol=1e-4)


@pytest.mark.parametrize("header", ["time,Vehicle speed (km/h),HV Battery Power (kW)", "elapsed,speed_kmh,power_kw"])
@pytest.mark.parametrize(("step_s", "per_second"), [(0.05, 1000), (0.5, 1000), (60, 1000), (10, 1), (60, 1), (120, 1), (300, 1)])  # fmt: skip
def test_a_bare_time_is_told_by_how_fast_speed_changes(tmp_path, header, step_s, per_second):
    time = step_s * np.arange(200)
    speed = np.round(np.abs(60 * np.sin(time / 97) + 40 * np.sin(time / 31)))
    rows = "".join(f"{t * per_second:.0f},{v:g},{5 + v / 10:g}\n" for t, v in zip(time, speed, strict=True))
    (tmp_path / "log.csv").write_text(f"{header}\n{rows}")
    trip = read_trips(tmp_path / "log.csv")[0]
    np.testing.assert_allclose(trip.rate_hz, 1 / step_s)
    doubtful = per_second == 1000 or step_s > 60
    assert doubtful == any("its times name no unit" in note for note in trip.report.notes)


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["950", "12,340", "1,021"], [950, 12340, 1021]), (["88.5", "1,020"], [88.5, 1020]), (["1,234,567", "2"], [1234567, 2]),
        (["3,681", "3,7", "4"], [3.681, 3.7, 4]), (["3,681", "3,699"], [3.681, 3.699]), (["0", "12,345"], [0, 12.345]),
        (["12 345", "12\u202f346", "12'347", "12’348"], [12345, 12346, 12347, 12348]), (["1.234.567", "5"], [1234567, 5]),
        (["1.234,5", "999,5"], [1234.5, 999.5]), (["998,7", "1.001,2", "1.234"], [998.7, 1001.2, 1234]), (["3,680", "255", "255"], [3.68, 255, 255]),
    ],
)  # fmt: skip
def test_marks_of_thousands_and_decimal_commas(cells, values):
    assert columns.numbers(pl.DataFrame({"0": cells}), 0).tolist() == values


def test_quoted_thousands_beside_decimal_points(tmp_path):
    lines = [f'{i},{40 + i % 9}.5,"{12_000 + 60 * i:,}",3' for i in range(50)]
    trip = read(tmp_path, "time (s),Speed (km/h),Battery Power (W),SoC (%)\n" + "\n".join(lines))[0]
    assert trip.series("power_kw")[1].max() == pytest.approx(12 + 0.06 * 49)


def test_grafanas_cells_with_units_scaled_one_by_one(tmp_path):
    power = ["950 W" if i % 5 == 0 else f"{10 + i % 7}.25 kW" for i in range(50)]
    lines = [f"2024-01-05 11:26:{i:02},{40 + i % 9} km/h,{power[i]},{12.3 + i / 100:.2f} °C" for i in range(50)]
    trip = read(tmp_path, "Time,Speed,Power,Outside temperature\n" + "\n".join(lines))[0]
    assert trip.series("speed_kmh")[1].tolist() == [40 + i % 9 for i in range(50)]
    assert sorted(set(trip.series("power_kw")[1]))[:2] == pytest.approx([0.95, 10.25])
    assert trip.series("ambient_temp_c")[1][0] == 12.3


def drive(when, count=900):
    """Lines of a table with units, their times as `when(second)` writes them."""
    speed = np.abs(60 * np.sin(np.arange(count) / 97) + 40 * np.sin(np.arange(count) / 31))
    lines = [f"{when(i)},{v:.2f},{5 + v / 10 + i % 3:.2f}" for i, v in enumerate(speed)]
    return ["timestamp,speed_kmh,power_kw", *lines], float(speed.sum()) / 3600


def local(second, zones=False):
    """The night in which summer time ends, 400 s before 3 o'clock is 2 o'clock again."""
    winter = second >= 400
    when = dt.datetime(2024, 10, 27, 2, 53, 20) + dt.timedelta(seconds=second - 3600 * winter)
    return f"{when}{'+01:00' if winter else '+02:00'}" if zones else str(when)


@pytest.mark.parametrize("zones", [False, True])
def test_the_night_in_which_clocks_are_put_back(tmp_path, zones):
    lines, km = drive(lambda i: local(i, zones))
    (trip,) = read(tmp_path, "\n".join(lines))
    assert trip.duration_s == 899
    assert trip.distance_km == pytest.approx(km, rel=0.01)


@pytest.mark.parametrize(
    "when", [lambda i: 1_700_000_000 + i, lambda i: 500 * i, lambda i: f"12:{i // 60:02}:{i % 60:02}"]
)
def test_an_export_that_begins_with_the_newest_row(tmp_path, when):
    (header, *lines), _ = drive(when)
    forward, backward = (read(tmp_path, "\n".join([header, *part])) for part in (lines, lines[::-1]))
    assert backward[0].table.equals(forward[0].table)
    assert any("newest" in note for note in backward[0].report.notes)


def test_a_header_that_files_put_together_repeat(tmp_path):
    (header, *lines), _ = drive(lambda i: i)
    header = "time_s,speed_kmh,power_kw"
    once, twice = (read(tmp_path, "\n".join([header, *lines[:50], *again, *lines[50:]])) for again in ([], [header]))
    assert twice[0].table.equals(once[0].table)


def test_a_power_in_watts_without_saying_so_and_a_charge_between_0_and_1(tmp_path):
    (_, *lines), _ = drive(lambda i: 1_700_000_000 + i)
    rows = [line.rpartition(",") for line in lines]
    table = [f"{front},{1000 * float(power):.0f},{0.8 - i / 1e4:.4f}" for i, (front, _, power) in enumerate(rows)]
    (trip,) = read(tmp_path, "\n".join(["timestamp,speed_kmh,power,soc", *table]))
    assert trip.series("power_kw")[1].tolist() == pytest.approx([float(power) for _, _, power in rows])
    assert any("in W by its size" in note for note in trip.report.notes)
    assert [finding.channel for finding in trip.report.of("unit")] == ["soc_pct"]


def test_ovms_units_in_brackets_are_heeded(tmp_path):
    lines = [f"2024-05-01 10:00:{i:02},{30 + i % 7},{9000 + i}" for i in range(60)]
    (trip,) = read(tmp_path, "\n".join(["time,v.p.speed (mph),v.b.power (W)", *lines]))
    assert trip.series("speed_kmh")[1][0] == pytest.approx(30 * 1.609344)
    assert trip.series("power_kw")[1][0] == pytest.approx(9.0)
    with pytest.raises(LogError, match="unit 'furlongs', which is unknown"):
        read(tmp_path, "\n".join(["time,v.p.speed (furlongs),v.b.power", *lines]))


@pytest.mark.parametrize("step_s", [5, 10, 30, 60])
@pytest.mark.parametrize("header", ["time,Vehicle speed (km/h),HV Battery Power (kW)", "elapsed,speed_mph,power_kw"])
def test_minutes_at_one_speed_are_no_milliseconds(tmp_path, header, step_s):
    rows = [f"{step_s * i},{88 + i // 40},12" for i in range(60)]
    trip = read(tmp_path, "\n".join([header, *rows]))[0]
    assert trip.duration_s == 59 * step_s


@pytest.mark.parametrize(("step", "seconds"), [(120, 120), (50, 0.05)])
def test_the_unit_of_bare_times_is_that_of_all_drives_of_a_table(tmp_path, step, seconds):
    speed = np.round(np.abs(60 * np.sin(np.arange(200) * seconds / 31)))
    rows = [f"{trip},{step * i},{v * (trip == 'a'):g},1" for trip in "ab" for i, v in enumerate(speed)]
    trips = read(tmp_path, "\n".join(["trip,elapsed,speed_kmh,power_kw", *rows]))
    assert [trip.duration_s for trip in trips] == pytest.approx([199 * seconds] * 2)


def clock_time(second):
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


@pytest.mark.parametrize("when", [lambda i: clock_time(43_200 + i % 100 * 36), lambda i: str(i % 100 * 36)])
def test_a_clock_that_falls_by_an_hour_in_the_day_runs_backwards(tmp_path, when):
    rows = [f"{when(i)},{40 + i % 9},12" for i in range(200)]
    with pytest.raises(LogError, match="time runs backwards"):
        read(tmp_path, "\n".join([HEADER, *rows]))


def test_clocks_with_a_zone_and_no_date_pass_midnight(tmp_path):
    rows = [f"{clock_time((86_300 + i) % 86_400)}+01:00,{40 + i % 9},12" for i in range(200)]
    (trip,) = read(tmp_path, "\n".join(["timestamp,speed_kmh,power_kw", *rows]))
    assert trip.duration_s == 199


def test_a_clock_with_points_is_no_number(tmp_path):
    rows = [f"12.{41 + i // 60}.{i % 60:02};{40 + i % 9},5;12,5" for i in range(100)]
    with pytest.raises(LogError, match="all its times are missing"):
        read(tmp_path, "\n".join(["Zeit;Geschwindigkeit [km/h];Leistung [kW]", *rows]))


def test_three_decimals_beside_a_number_for_none(tmp_path):
    rows = [f"{i};{40 + i % 9},5;{12 + i % 7},{i % 50 * 10:03};{234 + i // 9},{i * 10:03}" for i in range(99)]
    rows = [row if i % 10 else row.rpartition(";")[0] + ";-1" for i, row in enumerate(rows)]
    trip = read(tmp_path, "\n".join(["Zeit [s];Geschwindigkeit [km/h];Leistung [kW];Höhe [m]", *rows]))[0]
    assert trip.series("elevation_m")[1].max() == pytest.approx(244.98)


def test_points_that_group_thousands_beside_decimal_commas(tmp_path):
    rows = [f"{i};{40 + i % 9},5;12,5;{f'{900 + 2 * i:,}'.replace(',', '.')}" for i in range(100)]
    trip = read(tmp_path, "\n".join(["Zeit [s];Geschwindigkeit [km/h];Leistung [kW];Höhe [m]", *rows]))[0]
    assert trip.series("elevation_m")[1].tolist() == [900 + 2 * i for i in range(100)]


@pytest.mark.parametrize("slowest", [0, 40])
def test_quoted_decimal_commas_beside_coordinates_with_points(tmp_path, slowest):
    rows = [f'{48.1 + i / 1e5:.6f},{i},"{slowest + i % 9},{i * 7:03}","{352 + i % 5},{i * 10:03}"' for i in range(99)]
    trip = read(tmp_path, "\n".join(["Latitude,time (s),Speed (km/h),Battery Voltage (V)", *rows]))[0]
    assert trip.series("speed_kmh")[1].max() == pytest.approx(slowest + 8.686, abs=0.1)
    assert trip.series("battery_voltage_v")[1].min() >= 352


def test_the_power_of_a_truck_uphill_and_one_that_never_changes(tmp_path):
    rows = [f"{1_700_000_000 + i},{40 + i % 9}," for i in range(200)]
    truck = read(
        tmp_path, "\n".join(["timestamp,speed_kmh,power", *(f"{row}{420 + i % 9}" for i, row in enumerate(rows))])
    )
    assert truck[0].series("power_kw")[1][0] == 420
    stuck = read(tmp_path, "\n".join(["timestamp,speed_kmh,power", *(f"{row}65535" for row in rows)]))
    assert not stuck[0].has("power_kw")


@pytest.mark.parametrize(
    "column", ["v.p.latitude (dd)", "v.p.odometer (kms)", "v.e.temp (ºC)", "v.p.gpsspeed (native)"]
)
def test_other_units_of_ovms_do_not_stop_it(tmp_path, column):
    lines = [f"2024-05-01 10:00:{i:02},{30 + i % 7},{9 + i % 3},12.5" for i in range(60)]
    (trip,) = read(tmp_path, "\n".join([f"time,v.p.speed (km/h),v.b.power (kW),{column}", *lines]))
    assert trip.series("speed_kmh")[1].tolist() == [30 + i % 7 for i in range(60)]
    assert ("unknown" in " ".join(trip.report.notes)) == ("temp" not in column)
