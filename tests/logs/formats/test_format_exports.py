"""Logs that people have: Leaf Spy, TeslaMate, TeslaFi, Scan My Tesla, OVMS, VED, ChargeCar, ANL, Excel; small made-up files of each form."""

import io
import zipfile

import numpy as np
import pytest

from evband.errors import EvbandError, LogError
from evband.logs import border
from evband.logs.formats.ved import fresh
from evband.logs.reading import read_trips


def read(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_trips(path)


def median(trip, channel):
    return float(np.median(trip.series(channel)[1]))


LEAF = (
    "Date/Time,Lat,Long,Elv,Speed,Gids,SOC,AHr,Pack Volts,Pack Amps,Max CP mV,CP1,Odo(km),Ambient,epoch time,"
    "Motor Pwr(100w),Est Pwr A/C(50w),Est Pwr Htr(250w),Gear\n"
)


def leaf_row(i, speed, odometer, amps=40.0, epoch=1_700_000_000):
    return (
        f"11/14/2023 22:{13 + i // 12:02}:{5 * (i % 12):02},9 54.41179,53 30.1,{100 + i},{speed},200,{846000 - 100 * i},58.1,{380 - i % 3},"
        f"{amps},4000,3950,{odometer:.3f},50,{epoch + 5 * i},150,2,4,4\n"
    )


def test_leaf_spy_in_km_and_in_miles(tmp_path):
    rows = [leaf_row(i, 72.0, 5000 + 0.1 * i) for i in range(100)]
    rows[40] = rows[40].replace(",40.0,", ",,garbage,").replace("1700000200", "17")  # a shifted row
    (trip,) = read(tmp_path, LEAF + "".join(rows))
    assert trip.report.format == "Leaf Spy"
    assert median(trip, "speed_kmh") == 72.0
    assert median(trip, "ambient_temp_c") == pytest.approx(10.0)
    assert median(trip, "soc_pct") == pytest.approx(84.1, abs=0.2)
    assert median(trip, "hvac_power_kw") == pytest.approx(2 * 0.05 + 4 * 0.25)
    assert median(trip, "power_kw") == pytest.approx(15.2, abs=0.1)
    assert len(trip) == 99
    miles = "".join(leaf_row(i, 45.0, 5000 + 0.1006 * i) for i in range(100))
    (trip,) = read(tmp_path, LEAF + miles)
    assert median(trip, "speed_kmh") == pytest.approx(72.4, abs=0.1)
    assert any("mph" in note for note in trip.report.notes)
    rows = "".join(leaf_row(i, 45.0, 5000 + 0.0625 * i) for i in range(100))
    (trip,) = read(tmp_path, LEAF.replace("Odo(km)", "Odo(mi)") + rows)
    assert median(trip, "speed_kmh") == pytest.approx(72.4, abs=0.1)


def test_leaf_spy_without_an_epoch_and_over_two_drives(tmp_path):
    head = LEAF.replace("epoch time", "epoch")
    late = "".join(leaf_row(i, 50.0, 5000.0) for i in range(30)) + "".join(
        leaf_row(i + 400, 50.0, 5000.0) for i in range(30)
    )
    trips = read(tmp_path, head + late)
    assert trips.ids == ("log_1", "log_2")


def test_leaf_spy_units_follow_the_phone_not_each_other(tmp_path):
    """A British phone: mph, feet, but C; the car tells its own speed."""
    head = LEAF.replace("Max CP mV", "Pack T1 C").replace("Gear", "Gear, Speed1")
    rows = [
        leaf_row(i, 30, 5000 + 0.0667 * i).replace(",4000,", ",10.9,").replace(",50,17", ",8,17") for i in range(100)
    ]
    rows = [row.replace("\n", f",{4800 + i}\n") for i, row in enumerate(rows)]
    (trip,) = read(tmp_path, head + "".join(rows))
    assert median(trip, "speed_kmh") == pytest.approx(48.495)
    assert median(trip, "ambient_temp_c") == 8.0
    assert median(trip, "elevation_m") == pytest.approx(149.5 * 0.3048)
    dead = head + "".join(row.rpartition(",")[0] + ",0\n" for row in rows)
    (trip,) = read(tmp_path, dead)
    assert median(trip, "speed_kmh") == pytest.approx(30 * 1.609344)


def test_leaf_spy_without_a_fix(tmp_path):
    rows = [leaf_row(i, -3.6 if 20 <= i < 50 else 72.0, 5000 + 0.1 * i) for i in range(100)]
    (trip,) = read(tmp_path, LEAF + "".join(rows))
    assert trip.series("speed_kmh")[1].tolist() == [72.0] * 70
    assert any("30 rows have no speed" in note for note in trip.report.notes)


POSITIONS = "id,date,latitude,longitude,speed,power,odometer,battery_level,outside_temp,elevation,drive_id,car_id\n"


def position(i, drive):
    return f"{i},2024-01-05 11:{i // 20:02}:{3 * (i % 20):02}.250,48.1,11.5,{60 + i % 7},{12 + i % 4},{12000 + 0.05 * i},{80 - i // 50},4.5,{520 + i % 3},{drive},1\n"


def test_teslamate_as_csv_and_as_a_database_dump(tmp_path):
    rows = [position(i, 7 if i < 60 else "" if i < 70 else 8) for i in range(150)]
    trips = read(tmp_path, POSITIONS + "".join(rows))
    assert trips.ids == ("drive_7", "drive_8")
    assert trips[0].report.format == "TeslaMate"
    assert trips[0].table["time_s"][0] == pytest.approx(1704453600.25)
    assert median(trips[0], "power_kw") in (13.0, 13.5)
    names = POSITIONS.strip().replace(",", ", ")
    body = "".join(row.replace(",,", ",\\N,").replace(",", "\t") for row in rows)
    dump = f"--\n-- PostgreSQL database dump\n--\n\nCOPY public.cars (id) FROM stdin;\n1\n\\.\n\nCOPY public.positions ({names}) FROM stdin;\n{body}\\.\n\nALTER TABLE x;\n"
    dumped = read(tmp_path, dump, "teslamate.sql")
    assert dumped.ids == trips.ids
    assert dumped.fingerprints == trips.fingerprints
    with pytest.raises(LogError, match="no table positions"):
        read(tmp_path, "--\n-- PostgreSQL database dump\n--\nCOPY public.cars (id) FROM stdin;\n1\n\\.\n", "cars.sql")


def test_teslafi_is_in_miles_and_one_row_per_minute(tmp_path):
    head = "data_id,Date,charging_state,speed,power,shift_state,battery_level,outside_temp,odometer\n"
    rows = "".join(
        f"{i},2024-01-05 11:{i:02}:00,Disconnected,{60},{14},{'D' if i < 40 else ''},{80},{4.5},{8000 + i}\n"
        for i in range(60)
    )
    (trip,) = read(tmp_path, head + rows.replace("4.5", "None", 3))
    assert (trip.report.format, len(trip)) == ("TeslaFi", 40)
    assert median(trip, "speed_kmh") == pytest.approx(96.56, abs=0.01)
    assert trip.report.of("rate")
    assert trip.distance_km == pytest.approx(62.8, abs=0.5)


def test_teslamate_without_the_column_of_drives_is_cut_where_it_is_silent(tmp_path):
    rows = [position(i, 7) for i in range(60)] + [position(i, 8).replace(" 11:", " 15:") for i in range(60)]
    trips = read(tmp_path, POSITIONS.replace("drive_id", "number") + "".join(rows))
    assert (trips.ids, trips[0].report.format) == (("log_1", "log_2"), "TeslaMate")


def test_a_clock_of_seconds_is_not_scan_my_teslas(tmp_path):
    rows = "".join(f"{0.5 * i},{50 + i % 9},350,{20 + i % 5}\n" for i in range(100))
    with pytest.raises(EvbandError, match="its speed 'Speed' names no unit"):
        read(tmp_path, "Time,Speed,Battery voltage,Battery current\n" + rows)


def test_scan_my_tesla_counts_milliseconds_and_fills_what_changed(tmp_path):
    head = "Time,Battery voltage,Battery current,Battery power,Speed,Heating/cooling,Outside temp,\n"
    rows = "".join(
        f"{100 * i},{'350.5' if i % 3 == 0 else ''},{20 + i % 5 if i % 2 else ''},,{50 + i % 9 if i % 4 == 0 else ''},{'1.5' if i == 0 else ''},{'7' if i == 0 else ''},\n"
        for i in range(400)
    )
    (trip,) = read(tmp_path, head + rows)
    assert trip.report.format == "Scan My Tesla"
    assert trip.duration_s == pytest.approx(39.9, abs=0.2)
    assert median(trip, "power_kw") == pytest.approx(0.3505 * 22, rel=0.05)
    assert median(trip, "hvac_power_kw") == 1.5


@pytest.mark.parametrize("clock", ["{t}", "{ms}", "2024-01-05T11:{m:02}:{s:02}.000Z", "2024-01-05 11:{m:02}:{s:02}"])
def test_ovms_metrics(tmp_path, clock):
    head = "time,v.p.speed,v.b.power,v.b.voltage,v.b.current,v.e.temp(°C),v.p.altitude\n"
    rows = "".join(
        clock.format(t=1704453600 + i, ms=1000 * (1704453600 + i), m=i // 60, s=i % 60)
        + f",{50 + i % 9},{11.5 + i % 3},350,33,{4},{520}\n"
        for i in range(100)
    )
    (trip,) = read(tmp_path, head + rows)
    assert trip.report.format == "OVMS"
    assert trip.duration_s == pytest.approx(99.0)
    assert median(trip, "power_kw") == 12.5
    assert median(trip, "ambient_temp_c") == 4.0


VED = (
    "DayNum,VehId,Trip,Timestamp(ms),Latitude[deg],Longitude[deg],Vehicle Speed[km/h],MAF[g/sec],OAT[DegC],Air Conditioning Power[kW],"
    "Air Conditioning Power[Watts],Heater Power[Watts],HV Battery Current[A],HV Battery SOC[%],HV Battery Voltage[V]\n"
)


def test_ved_turns_the_current_and_drops_held_values_and_petrol_cars(tmp_path):
    rows = "".join(
        f"10.9,10,1599,{300 * i},42.2,-83.7,{40 + (i // 4) % 9},NaN,7.5,0.35,350,250,{-24.5 - (i // 4) % 3},88.2,{380}\n"
        for i in range(200)
    )
    petrol = "".join(f"10.9,11,77,{300 * i},42.2,-83.7,{40},3.2,7.5,NaN,NaN,NaN,NaN,NaN,NaN\n" for i in range(50))
    (trip,) = read(tmp_path, VED + rows + petrol)
    assert (trip.trip_id, trip.report.format) == ("ved_10_1599", "VED")
    assert median(trip, "battery_current_a") == 25.5
    assert median(trip, "hvac_power_kw") == pytest.approx(0.6)
    assert 45 <= len(trip.series("battery_current_a")[0]) <= 105
    time, value = fresh(np.array([0.0, 0.1, 0.2]), np.array([1.0, 1.0, 2.0]))
    assert (time.tolist(), value.tolist()) == ([0.0, 0.2], [1.0, 2.0])


def test_chargecar_has_no_header(tmp_path):
    rows = "".join(
        f"{162900 + 2 * (i % 30)},{2.0 * i},{285.6},{6.1},{6.1},{10 + i % 3},0.1,-12.0,-3.3,{-10.0 - i % 2},{330.5}\n"
        for i in range(90)
    )
    (trip,) = read(tmp_path, rows, "437.txt")
    assert trip.report.format == "ChargeCar"
    assert median(trip, "speed_kmh") == pytest.approx(39.6)
    assert median(trip, "power_kw") == pytest.approx(3.305, rel=0.11)


def test_argonne_tables_by_their_units(tmp_path):
    head = "Time[s]\tDyno_Spd[mph]\tDyno_TractiveForce[N]\tCell_Temp[C]\tHV_Batt_Volt_Hioki_U1[V]\tHV_Batt_Current_Hioki_I1[A]\t12V_Batt_Curr[A]\n"
    rows = "".join(f"{0.1 * i:.1f}\t{30 + i % 5}\t{350}\t{22.5}\t{360}\t{30}\t{9}\n" for i in range(200))
    (trip,) = read(tmp_path, head + rows, "61505019 Test Data.txt")
    assert trip.report.format == "ANL dynamometer"
    assert median(trip, "speed_kmh") == pytest.approx(32 * 1.609344)
    assert median(trip, "battery_current_a") == 30.0
    assert median(trip, "power_kw") == pytest.approx(10.8)
    assert median(trip, "force_n") == 350.0


def test_newer_argonne_tables_prefer_the_analyser_to_the_car(tmp_path):
    head = "DAQ_Time[s]\tTime[s]_RawFacilities\tDyno_Spd[mph]\tHVBatt_current_PTCAN__A\tHVBatt_Volt_Hioki_U1__V\tHVBatt_Curr_Hioki_I1__A\tHVBatt_SOC_CAN4__per\n"
    rows = "".join(f"{900 - i if i < 5 else i}\t{0.1 * i:.1f}\t{30 + i % 5}\t-30\t360\t{30}\t70\n" for i in range(200))
    (trip,) = read(tmp_path, head + rows, "62009051 Test Data.txt")
    assert (trip.report.format, len(trip)) == ("ANL dynamometer", 200)
    assert median(trip, "power_kw") == pytest.approx(10.8)


def workbook(rows):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def test_an_excel_sheet_is_read_as_what_it_holds(tmp_path, monkeypatch):
    data = workbook([["time_s", "speed_kmh", "power_kw"], *([float(i), 50 + i % 7, 8.5] for i in range(60))])
    (trip,) = read(tmp_path, data, "drive.xlsx")
    assert (len(trip), trip.report.format) == (60, "tidy table")
    monkeypatch.setattr(border, "MOST_BYTES", 10_000)
    with pytest.raises(LogError, match="unpacks to more"):
        read(tmp_path, data, "drive.xlsx")
    monkeypatch.undo()
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w") as file:
        file.writestr("xl/workbook.xml", "<a>" * 1000)
    with pytest.raises(LogError, match="Excel workbook"):
        read(tmp_path, bomb.getvalue(), "bomb.xlsx")


def test_cabin_power_of_an_i3_and_of_abrp(tmp_path):
    head = "Time [s];Velocity [km/h];Battery Voltage [V];Battery Current [A];Heating Power CAN [kW];AirCon Power [kW]\n"
    rows = "".join(f"{0.1 * i:.1f};{30 + i % 9};{380};{-20 - i % 3};{1.5};{0.25}\n" for i in range(100))
    (trip,) = read(tmp_path, head + rows)
    assert median(trip, "hvac_power_kw") == 1.75
    (trip,) = read(
        tmp_path, "".join(f'{{"utc": {i}, "speed": {i}, "power": 3, "hvac_power": 0.8}}\n' for i in range(20))
    )
    assert median(trip, "hvac_power_kw") == 0.8
