"""TeslaLogger, Soul EV Spy, eVED, Home Assistant's history, tables that name their units; small made-up files of each form."""

import json

import numpy as np
import pytest

from evband.errors import EvbandError
from evband.logs.consumption import minutes
from evband.logs.reading import read_trips


def read(tmp_path, text, name="log.csv", **options):
    path = tmp_path / name
    path.write_text(text)
    return read_trips(path, **options)


def median(trip, channel):
    return float(np.median(trip.series(channel)[1]))


def test_teslalogger_counts_power_in_ps_and_is_cut_where_it_is_silent(tmp_path):
    head = (
        "id,Datum,lat,lng,speed,power,odometer,ideal_battery_range_km,outside_temp,altitude,battery_level,inside_temp\n"
    )
    rows = [
        f"{i},2024-01-05 {11 + i // 40}:{2 * (i % 40) // 60:02}:{2 * (i % 40) % 60:02},48.1,11.5,{60 + i % 5},{20 + i % 3},{12000 + 0.03 * i},300,4.5,{520 + i % 3},70,21\n"
        for i in range(80)
    ]
    trips = read(tmp_path, head + "".join(rows))
    assert trips.ids == ("log_1", "log_2")
    assert trips[0].report.format == "TeslaLogger"
    assert median(trips[0], "power_kw") == pytest.approx(21 * 0.7355, rel=0.01)
    assert median(trips[0], "speed_kmh") == 62.0


def test_soul_ev_spy_names_units_and_counts_milliseconds(tmp_path):
    head = '"VIN","system.scan_start_time_ms","system.scan_end_time_ms","route.elevation_m","car.speed_kph","car.odo_km","car.ambient_C","battery.SOC_display_pct","battery.DC_V","battery.DC_current_A"\n'
    rows = [
        f'"X",{5000 * i},{5000 * i + 4900},{100 + i},{80 + i % 3},{500 + 0.1 * i},21.5,90,380,{30 + i % 5}\n'
        for i in range(60)
    ]
    (trip,) = read(tmp_path, head + "".join(rows))
    assert trip.report.format == "Soul EV Spy"
    assert median(trip, "power_kw") == pytest.approx(380 * 32 / 1000)
    assert trip.series("speed_kmh")[0][1] - trip.series("speed_kmh")[0][0] == pytest.approx(5.0)


def test_eved_brings_its_elevation(tmp_path):
    head = "DayNum,VehId,Trip,Timestamp(ms),Latitude[deg],Longitude[deg],Vehicle Speed[km/h],OAT[DegC],HV Battery Current[A],HV Battery SOC[%],HV Battery Voltage[V],Elevation Raw[m],Elevation Smoothed[m],Gradient,Energy_Consumption\n"
    rows = [
        f"1.5,10,7,{1000 * i},42.3,-83.7,{40 + i % 9},12,{-20 - i % 7},80,{380 - i % 3},{205 + i},{200 + i},0.01,0.1\n"
        for i in range(60)
    ]
    (trip,) = read(tmp_path, head + "".join(rows))
    assert trip.report.format == "VED"
    assert trip.series("elevation_m")[1][0] == 200.0
    assert median(trip, "power_kw") > 0


def history(seconds=600, watts=False):
    """(entity, state, when) of a drive: power changes every 5 s, speed every 20 s."""
    rows = []
    for s in range(0, seconds, 5):
        when = f"2024-05-01T10:{s // 60:02}:{s % 60:02}.123Z"
        rows.append(("sensor.zoe_battery_power", (9 + s % 4) * (1000 if watts else 1), when))
        rows.append(("sensor.zoe_charger_power", 7, when))
        if s % 20 == 0:
            rows.append(("sensor.zoe_speed", 50 + s % 60, when))
        if s % 60 == 0:
            rows.append(("sensor.zoe_outside_temperature", 12.5, when))
            rows.append(("sensor.average_speed", 44, when))
    return rows


@pytest.mark.parametrize("watts", [False, True])
def test_home_assistants_download_holds_a_state_until_the_next(tmp_path, watts):
    rows = [*history(watts=watts), ("sensor.zoe_speed", "unavailable", "2024-05-01T10:09:58.000Z")]
    text = "entity_id,state,last_changed\n" + "".join(f"{e},{s},{w}\n" for e, s, w in rows)
    (trip,) = read(tmp_path, text, "history.csv")
    assert trip.report.format == "Home Assistant"
    assert 9 <= median(trip, "power_kw") <= 12
    speed = trip.series("speed_kmh")
    assert np.diff(speed[0]).max() == pytest.approx(5.0)  # held while power changes
    assert set(speed[1]) == {50.0, 70.0, 90.0}
    assert median(trip, "ambient_temp_c") == 12.5
    assert "names no unit" in trip.report.of("unit")[0].text


def test_home_assistants_json_has_units_and_names_an_entity_once(tmp_path):
    lists = {}
    for entity, state, when in history():
        first = {
            "entity_id": entity,
            "attributes": {"unit_of_measurement": "mph" if "speed" in entity else "kW" if "power" in entity else "°C"},
        }
        states = lists.setdefault(entity, [])
        states.append({**({} if states else first), "state": str(state), "last_changed": when.replace("Z", "+00:00")})
    (trip,) = read(tmp_path, json.dumps([*lists.values()]), "history.json")
    assert trip.report.format == "Home Assistant"
    assert float(trip.series("speed_kmh")[1].min()) == pytest.approx(50 * 1.609344)
    with pytest.raises(EvbandError, match="not whole JSON"):
        read(tmp_path, json.dumps([*lists.values()])[:-20], "cut.json")


def test_home_assistants_entities_may_be_named(tmp_path):
    text = "entity_id,state,last_changed\n" + "".join(
        f"{e.replace('battery_power', 'verbrauch')},{s},{w}\n" for e, s, w in history()
    )
    (trip,) = read(tmp_path, text, aliases={"power_kw": ["sensor.zoe_verbrauch"]})
    assert 9 <= median(trip, "power_kw") <= 12


def test_a_table_that_names_its_units_needs_no_map(tmp_path):
    rows = "".join(f"{1_700_000_000_000 + 1000 * i},{10 + i % 5},{12000 + i},{281 + i % 2}\n" for i in range(60))
    (trip,) = read(tmp_path, "timestamp_ms,vehicle_speed_mps,battery_power_w,ambient_temperature_K\n" + rows)
    assert trip.report.format == "table with units"
    assert median(trip, "speed_kmh") == pytest.approx(43.2)
    assert median(trip, "power_kw") == pytest.approx(12.03, abs=0.01)
    assert median(trip, "ambient_temp_c") == pytest.approx(8.35, abs=0.6)
    assert trip.series("speed_kmh")[0][1] - trip.series("speed_kmh")[0][0] == pytest.approx(1.0)
    rows = "".join(f"2024-05-01 10:00:{i:02};{30 + i % 5};{20 + i}\n" for i in range(60))
    (trip,) = read(tmp_path, "Timestamp;Speed [mph];Battery Power [kW]\n" + rows)
    assert median(trip, "speed_kmh") == pytest.approx(32 * 1.609344)
    with pytest.raises(EvbandError, match="write-map"):
        read(tmp_path, "Timestamp;Speed;Power\n" + rows)


@pytest.mark.parametrize(
    ("header", "row"),
    [
        ("timestamp,vehicle_speed_kph,pack_power_w", "2024-05-01T10:00:{i:02}-05:00,{v},{w}"),
        ("timestamp,speed_kmh,power_kw", "2024-05-01 10:00:{i:02},{v},{p}"),
        (",speed_kmph,power_w", "2024-05-01 10:00:{i:02}.000000,{v},{w}"),  # a frame's index
        ("Datum;Uhrzeit;Geschwindigkeit in km/h;Leistung in kW", "01.05.2024;10:00:{i:02};{v};{kw}"),
        ("# StartTime = 05/01/2024 10:00:00 AM\nTime (sec), Vehicle speed (mph), Power (kW)", "{i}.0, {mph}, {p}"),
        ("Time,Vehicle Speed,Battery Current,Battery Voltage\ns,km/h,A,V", "{i},{v},{a},400"),
        ("Time (s),Speed (km/h),Voltage (V),Current (A),12V Current (A)", "{i},{v},400,{a},3"),
        ("timestamp,speed_mph,power_w", "{ns},{mph},{w}"),
        ("t [s],VehSpd [km/h],BattCurr [A],HV_Batt_Volt [V]", "{i},{v},{a},400"),
        ("utc,soc,power,speed,is_charging", "{ns},50,{p},{v},0"),  # keys of ABRP
        ("timestamps,SPEED,HV_POWER", "{i}.000000,{v} kilometer_per_hour,{w} watt"),  # asammdf's time, Pint's units
        ("Lap,Elapsed Time (ms),Speed (MPH),Power Level (KW)", "1,{i}000,{mph},{p}"),
    ],
)
def test_tables_of_many_hands(tmp_path, header, row):
    kw = [8 + i % 7 for i in range(60)]
    rows = [
        row.format(i=i, v=50 + i % 5, mph=(50 + i % 5) / 1.609344, w=1000 * p, p=p, kw=f"{p},0", a=2.5 * p, ns=(1704454018 + i) * 10**9)
        for i, p in enumerate(kw)
    ]  # fmt: skip
    (trip,) = read(tmp_path, "\n".join([header, *rows]))
    time, speed = trip.series("speed_kmh")
    np.testing.assert_allclose(time - time[0], np.arange(60), atol=1e-6)
    np.testing.assert_allclose(speed, [50 + i % 5 for i in range(60)])
    np.testing.assert_allclose(trip.series("power_kw")[1], kw)


def test_cars_and_trips_in_one_table_stay_apart(tmp_path):
    rows = [
        f"{car},{trip},{i},{40 + i % 9 + 10 * trip},{9 + i % 5}" for trip in (1, 2) for i in range(60) for car in "AB"
    ]
    text = "\n".join(["vehicle_id,trip,Time (s),Speed (km/h),Battery power (kW)", *rows])
    trips = read(tmp_path, text)
    assert trips.ids == ("A_1", "B_1", "A_2", "B_2")
    assert {median(trip, "speed_kmh") for trip in trips} == {54.0, 64.0}
    assert all(len(trip) == 60 for trip in trips)


def test_a_speed_without_a_unit_is_asked_for_and_an_alias_tells_it(tmp_path):
    rows = "".join(f"{1_700_000_000 + i},{30 + i % 20},{380 - i % 3},{20 + i % 5}\n" for i in range(100))
    table = "timestamp,vehicle_speed,hv_battery_voltage,hv_battery_current\n" + rows
    with pytest.raises(EvbandError, match=r"names no unit; add it with --alias 'speed_kmh=vehicle_speed \(km/h\)'"):
        read(tmp_path, table)
    (trip,) = read(tmp_path, table, aliases={"speed_kmh": ["vehicle_speed (mph)"]})
    assert median(trip, "speed_kmh") == pytest.approx(39.5 * 1.609344)
    assert "power_kw" in trip.channels


def test_evdash_is_negative_on_discharge_and_says_minus_one_for_unknown(tmp_path):
    rows = [
        {"carType": 0, "currTime": 1640995200 + 2 * i, "lat": 48.1, "lon": -1, "alt": 210, "speedKmh": 50 + i % 5, "socPerc": 80.5,
         "batPowKw": -9.25, "batPowA": -25.0, "batV": 370.0, "outC": -1 if i < 3 else 8}
        for i in range(60)
    ]  # fmt: skip
    rows[0] |= {"batPowKw": -1, "batPowA": -1, "batV": -1}
    (trip,) = read(tmp_path, "".join(json.dumps(row) + ",\n" for row in rows), "log.json")
    assert trip.report.format == "evDash"
    assert trip.series("power_kw")[1].tolist() == pytest.approx([9.25] * 59)
    assert median(trip, "speed_kmh") == 52.0
    assert trip.series("ambient_temp_c")[1].tolist() == [8.0] * 57
    assert len(trip.series("battery_voltage_v")[0]) == 59


@pytest.mark.parametrize(
    "header",
    [
        "vin,time,vehiclestatus,speed,summileage,sumvoltage,sumcurrent,soc,max_cell_volt",
        "VID,TIME,CHARGE_STATUS,SPEED,SUM_MILE,SUM_VOLTAGE,SUM_CURRENT,SOC,MAX_CELL_VOLT",
        "车架号,数据采集时间,车辆状态,车速,累计里程,总电压,总电流,SOC,最高电压",
    ],
)
def test_the_chinese_standard_fixes_its_units(tmp_path, header):
    rows = [
        f"LX{car},2019-01-10 01:{i // 6:02}:{10 * (i % 6):02},1,{50 + i % 9}.0,{20000 + 0.15 * i:.1f},370.5,{40 + i % 7}.5,80,4.1\n"
        for car in (1, 2)
        for i in range(60)
    ]
    trips = read(tmp_path, header + "\n" + "".join(rows))
    assert trips.ids == ("LX1", "LX2")
    assert median(trips[0], "speed_kmh") == 54.0
    assert median(trips[0], "power_kw") == pytest.approx(370.5 * 43.5 / 1000, rel=0.05)
    assert any("GB/T 32960" in note for note in trips[0].report.notes)


def download(unit="", how="none", **names):
    """A history whose speed is in `unit`, told `how`: in a column, in the attributes, at the end of the entity's name, or not at all."""
    units = {"sensor.zoe_speed": unit, "sensor.zoe_outside_temperature": "°F", "sensor.zoe_battery_power": "kW"}
    header = {"column": ",unit_of_measurement", "attributes": ",attributes"}.get(how, "")
    lines = []
    for entity, state, when in history():
        state = 70 if "temperature" in entity else state
        own = units.get(entity, "")
        more = {"column": f",{own}", "attributes": f',"{json.dumps({"unit_of_measurement": own})}"'.replace('"{"', '"{""').replace('": "', '"": ""').replace('"}"', '""}"')}.get(how, "")  # fmt: skip
        lines.append(f"{entity}{'_mph' * (how == 'name' and entity == 'sensor.zoe_speed')},{state},{when}{more}\n")
    return f"entity_id,state,last_changed{header}\n" + "".join(lines)


@pytest.mark.parametrize("how", ["column", "attributes"])
def test_home_assistants_imperial_units_are_read_where_they_are_named(tmp_path, how):
    (trip,) = read(tmp_path, download("mph", how), "history.csv")
    assert float(trip.series("speed_kmh")[1].min()) == pytest.approx(50 * 1.609344)
    assert median(trip, "ambient_temp_c") == pytest.approx((70 - 32) / 1.8)
    assert not trip.report.of("unit")


def test_home_assistants_unnamed_units_are_a_finding_and_70_degrees_are_not_celsius(tmp_path):
    with pytest.raises(EvbandError, match=r"--alias 'speed_kmh=sensor.zoe_speed \(mph\)'"):
        read(tmp_path, download(), "history.csv")
    given = {"speed_kmh": ["sensor.zoe_speed (mph)"], "ambient_temp_c": ["sensor.zoe_outside_temperature (F)"]}
    (trip,) = read(tmp_path, download(), "history.csv", aliases=given)
    assert float(trip.series("speed_kmh")[1].min()) == pytest.approx(50 * 1.609344)
    assert median(trip, "ambient_temp_c") == pytest.approx((70 - 32) / 1.8)
    assert not trip.report.of("unit")
    (trip,) = read(tmp_path, download(how="name"), "history.csv")
    assert float(trip.series("speed_kmh")[1].min()) == pytest.approx(50 * 1.609344)
    cold = download().replace(",70,", ",12,")
    (trip,) = read(tmp_path, cold, "history.csv")
    assert "names no unit for sensor.zoe_speed" in trip.report.of("unit")[0].text


def test_home_assistants_unit_is_known_though_the_first_state_has_none(tmp_path):
    states = [{"entity_id": "sensor.zoe_speed", "state": "unavailable", "last_changed": "2024-05-01T09:59:59.123Z"}]
    for entity, state, when in history():
        if entity == "sensor.zoe_speed":
            states.append({"state": str(state), "last_changed": when, "attributes": {"unit_of_measurement": "mph"}})
    (trip,) = read(tmp_path, json.dumps([states]), "history.json")
    assert float(trip.series("speed_kmh")[1].min()) == pytest.approx(50 * 1.609344)


def test_home_assistants_units_that_change_are_unknown_or_written_by_python(tmp_path):
    (header, *lines), when = download("mph", "column").splitlines(), "sensor.zoe_speed,"
    speeds = [i for i, line in enumerate(lines) if line.startswith(when)]
    changed = [line.replace("mph", "km/h") if i > speeds[len(speeds) // 2] else line for i, line in enumerate(lines)]
    (trip,), (whole,) = (read(tmp_path, "\n".join([header, *own]), "history.csv") for own in (changed, lines))
    early, late = trip.series("speed_kmh")[1][:3], trip.series("speed_kmh")[1][-3:]
    np.testing.assert_allclose(early, whole.series("speed_kmh")[1][:3])
    np.testing.assert_allclose(late, whole.series("speed_kmh")[1][-3:] / 1.609344)
    with pytest.raises(EvbandError, match="unit 'furlongs', which is unknown"):
        read(tmp_path, "\n".join([header, *lines]).replace("mph", "furlongs"), "history.csv")
    python = [line.rpartition(",") for line in lines]
    both = [f"""{front},,"{{'unit_of_measurement': '{unit}'}}\"""" for front, _, unit in python]
    (trip,) = read(tmp_path, "\n".join(["entity_id,state,last_changed,unit,attributes", *both]), "history.csv")
    assert trip.table.equals(whole.table)


def test_a_lone_reading_of_power_is_no_consumption(tmp_path):
    (trip,) = read(tmp_path, "time_s,speed_kmh,battery_voltage_v,battery_current_a\n0,5,,\n1,6,350,9\n")
    assert minutes(trip) is None
