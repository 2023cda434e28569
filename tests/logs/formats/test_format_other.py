"""Dynamometer, i3, ABRP, MF4 and mapped tables; and who recognises what."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evband.errors import LogError, SettingsError
from evband.logs.formats import (
    FORMATS,
    abrp,
    bmw_i3,
    car_scanner_long,
    car_scanner_wide,
    dynamometer,
    mapped,
    mdf,
    torque_pro,
)
from evband.trips.readings import ReadOptions


def read(module, data, name="run.csv", **options):
    data = data if isinstance(data, bytes) else data.encode()
    assert module.detect(data[:65536])
    assert [m for m in FORMATS if m.detect(data[:65536])] in ([module], [])
    return module.read(Path(name), data, ReadOptions(**options))


DYNO = "Time,Speed,Acceleration,DY_flt_force,DY_Roadld,DY_Parasitic,DY_DriveRef,Power\n0.0,10,0.1,300,200,20,11,5\n0.1,11,0.2,310,201,21,12,6\n"


def test_dynamometer_names():
    (drive,) = read(dynamometer, DYNO)
    values = {name: value[0] for name, (_, value) in drive.series.items()}
    assert values == {
        "speed_kmh": 10, "acceleration_ms2": 0.1, "force_n": 300, "road_load_n": 200, "parasitic_n": 20, "drive_ref_kmh": 11, "power_kw": 5,
    }  # fmt: skip
    assert any("no unit is given" in note for note in drive.notes)


@pytest.mark.parametrize(
    "header",
    [
        "Time [s],Speed [mph],DY_flt_force [lbf],Battery power [W]\n",
        "Time,Speed_mph,DY_flt_force_lbf,Battery power_W\n",
        "Time,Speed,DY_flt_force,Battery power\ns,mph,lbf,W\n",
        "Test cell 3\n\nTime (s),Speed (mph),DY_flt_force (lbf),Battery Power (W)\n",
    ],
)
def test_dynamometer_units(header):
    (drive,) = read(dynamometer, header + "0,10,1,2000\n1,20,2,3000\n")
    np.testing.assert_allclose(drive.series["speed_kmh"][1], [16.09344, 32.18688])
    np.testing.assert_allclose(drive.series["force_n"][1][0], 4.4482216)
    np.testing.assert_allclose(drive.series["power_kw"][1], [2, 3])


def test_dynamometer_keeps_power_beside_current_and_voltage():
    (drive,) = read(
        dynamometer, "Time,Speed,DY_flt_force,Battery Voltage,Battery Current,Battery Power\n0,10,1,350,10,3.6\n"
    )
    assert drive.series["power_kw"][1][0] == 3.6
    with pytest.raises(LogError, match="no time among"):
        read(dynamometer, "Speed,DY_flt_force\n1,2\n")


I3 = (
    "Time [s];Velocity [km/h];Elevation [m];Throttle [%];Motor Torque [Nm];Longitudinal Acceleration [m/s^2];Battery Voltage [V];Battery Current [A];"
    "Battery Temperature [°C];SoC [%];max. SoC [%)];Heating Power CAN [kW];Ambient Temperature [°C]\n"
    "0;5;500;10;20;0.3;390;-12.5;20;80;99;1.5;15.5\n0.1;6;500;10;20;0.3;390;4;20;80;99;1.5;15.5\n"
)


def test_i3_current_is_turned():
    (drive,) = read(bmw_i3, I3.encode("latin-1"), "TripA01.csv")
    assert drive.trip_id == "TripA01"
    np.testing.assert_array_equal(drive.series["battery_current_a"], [[0, 0.1], [12.5, -4]])
    assert {name: value[0] for name, (_, value) in drive.series.items()} == {
        "speed_kmh": 5, "acceleration_ms2": 0.3, "motor_torque_nm": 20, "elevation_m": 500, "ambient_temp_c": 15.5, "soc_pct": 80,
        "battery_voltage_v": 390, "battery_current_a": 12.5, "hvac_power_kw": 1.5,
    }  # fmt: skip


def jsonl(*samples):
    return "\n".join(json.dumps(sample) for sample in samples) + "\n"


def test_abrp_lines():
    a = {
        "utc": 1700000000,
        "speed": 50,
        "power": 12.5,
        "soc": 62,
        "is_charging": False,
        "ext_temp": 7,
        "elevation": 120,
        "lat": 1.0,
    }
    b = {"utc": 1700000001, "speed": 51, "power": -3, "voltage": 390, "current": -8, "is_charging": 1}
    (drive,) = read(abrp, jsonl(a, b), "drive.jsonl")
    assert drive.trip_id == "drive"
    np.testing.assert_array_equal(drive.series["power_kw"], [[1700000000, 1700000001], [12.5, -3]])
    np.testing.assert_array_equal(drive.series["soc_pct"], [[1700000000], [62]])
    assert any("while charging" in note for note in drive.notes)
    (wrapped,) = read(abrp, jsonl({"tlm": a}, {"tlm": b}))
    (listed,) = read(abrp, json.dumps([a, {**b, "utc": b["utc"] * 1000}]))
    for other in (wrapped, listed):
        np.testing.assert_array_equal(other.series["speed_kmh"], drive.series["speed_kmh"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"utc": 1, "speed": 3}\nnonsense\n{"utc": 2, "speed": 3}\n', "line 2 is not JSON"),
        ('{"utc": 5, "speed": 3}\n{"utc": 1, "speed": 3}\n', "backwards by 4.0 s"),
        ('{"utc": 5, "power": 3}\n', "speed"),
        ('{"utc": 5, "speed": 3}\n{"speed": 3}\n', "line 2 has no time"),
    ],
)
def test_bad_abrp(text, words):
    with pytest.raises(LogError, match=words):
        read(abrp, text)


def test_a_last_line_cut_short_is_passed_over():
    (drive,) = read(abrp, '{"utc": 1, "speed": 3}\n{"utc": 2, "spe')
    assert drive.series["speed_kmh"][1].size == 1


MAP = {
    "columns": {
        "t": {"channel": "time_s", "unit": "ms"},
        "Veh Spd": {"channel": "speed_kmh", "unit": "mph"},
        "I": {"channel": "battery_current_a", "sign": -1},
        "run": "trip_id",
    }
}


def test_a_map_gives_unit_sign_and_trips():
    text = "t;Veh Spd;I;run\n0;10;-5;a\n500;20;-6;a\n0;30;7;b\n"
    first, second = read(mapped, text, map=MAP)
    assert (first.trip_id, second.trip_id) == ("a", "b")
    np.testing.assert_allclose(first.series["speed_kmh"], [[0, 0.5], [16.09344, 32.18688]])
    np.testing.assert_array_equal(first.series["battery_current_a"][1], [5, 6])
    buffer = io.BytesIO()
    pl.DataFrame({"t": [0, 500, 0], "Veh Spd": [10, 20, 30], "I": [-5, -6, 7], "run": ["a", "a", "b"]}).write_parquet(
        buffer
    )
    again = mapped.read(Path("x.parquet"), buffer.getvalue(), ReadOptions(map=MAP))
    np.testing.assert_array_equal(again[0].series["speed_kmh"], first.series["speed_kmh"])


def test_a_map_by_channel_and_with_a_clock_and_a_delimiter():
    table = {
        "delimiter": "|",
        "speed_kmh": {"column": "v", "unit": "m/s"},
        "time_s": {"column": "when", "unit": "clock"},
    }
    (drive,) = read(mapped, "when|v\n2026-01-01 23:59:59|10\n2026-01-02 00:00:01|20\n", map=table)
    np.testing.assert_allclose(drive.series["speed_kmh"], [[86399, 86401], [36, 72]])


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"v": {"channel": "spede_kmh"}}, "did you mean speed_kmh"),
        ({"v": {"channel": "speed_kmh", "unit": "parsec"}}, "'parsec'"),
        ({"v": {"channel": "speed_kmh", "sign": 2}}, "must be 1 or -1"),
        ({"v": "speed_kmh", "w": "speed_kmh"}, "several columns"),
        ({"v": "speed_kmh"}, "no column for time_s"),
        ({}, r"no \[columns\]"),
    ],
)
def test_bad_maps(entry, words):
    with pytest.raises(SettingsError, match=words):
        read(mapped, "t,v,w\n0,1,2\n", map={"columns": entry})
    with pytest.raises(LogError, match="nearest is 'Veh Spd'"):
        read(mapped, "t,Veh Spd\n0,1\n", map={"columns": {"t": "time_s", "veh_spd": "speed_kmh"}})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"delimiter": "||"}, "delimiter"),
        ({"delimiter": "é"}, "delimiter"),
        ({"delimiter": 5}, "delimiter"),
        ({"skip_rows": "x"}, "skip_rows"),
        ({"skip_rows": -1}, "skip_rows"),
        ({"skip_rows": 9}, "no line 10"),
        ({"skip_row": 1}, "known are columns"),
        ({"columns": {"t": "time_s", "v": {"channel": "speed_kmh", "sgn": -1}}}, "'sgn'"),
        ({"columns": {"t": "time_s", "v": "speed_kmh", "w": "trip_id"}}, "1 rows have no 'w'"),
    ],
)
def test_bad_settings_of_a_map(settings, words):
    with pytest.raises((SettingsError, LogError), match=words):
        read(mapped, "t,v,w\n0,1,2\n1,2,\n", map={"columns": {"t": "time_s", "v": "speed_kmh"}, **settings})


def mf4(tmp_path, signals):
    asammdf = pytest.importorskip("asammdf")
    file = asammdf.MDF(version="4.10")
    for name, unit, time, values in signals:
        file.append([asammdf.Signal(np.array(values, dtype=float), np.array(time, dtype=float), name=name, unit=unit)])
    path = file.save(tmp_path / "bus.mf4", overwrite=True)
    file.close()
    return Path(path)


def test_mf4_signals_by_alias_and_by_map(tmp_path):
    path = mf4(
        tmp_path, [("VehicleSpeed", "m/s", [0, 1], [10, 20]), ("BMS_BatteryVoltage", "V", [0.5, 1.5], [390, 391])]
    )
    (drive,) = read(mdf, path.read_bytes(), "bus.mf4")
    np.testing.assert_allclose(drive.series["speed_kmh"], [[0, 1], [36, 72]])
    np.testing.assert_allclose(drive.series["battery_voltage_v"], [[0.5, 1.5], [390, 391]])
    table = {"columns": {"VehicleSpeed": {"channel": "speed_kmh", "unit": "m/s", "sign": -1}}}
    (turned,) = mapped.read(Path("bus.mf4"), path.read_bytes(), ReadOptions(map=table))
    np.testing.assert_allclose(turned.series["speed_kmh"][1], [-36, -72])
    assert mapped.detect(b"UnFinMF " + path.read_bytes()[8:])  # of a logger that lost its power


DBC = """VERSION ""
NS_ :
BS_:
BU_: ECU
BO_ 256 Drive: 8 ECU
 SG_ VehicleSpeed : 0|16@1+ (0.1,0) [0|400] "km/h" ECU
 SG_ MotorTorque : 16|16@1- (0.5,0) [-500|500] "Nm" ECU
"""


def test_mf4_bus_frames_need_their_dbc(tmp_path):
    asammdf = pytest.importorskip("asammdf")
    from asammdf.blocks import v4_constants
    from asammdf.blocks.source_utils import Source

    payload = np.zeros((3, 8), dtype="u1")
    payload[:, :2] = np.array([500, 510, 520], dtype="<u2").view("u1").reshape(3, 2)
    fields = {
        "BusChannel": np.ones(3, "u1"), "ID": np.full(3, 256, "<u4"), "IDE": np.zeros(3, "u1"), "DLC": np.full(3, 8, "u1"),
        "DataLength": np.full(3, 8, "u1"), "DataBytes": payload,
    }  # fmt: skip
    types = [(f"CAN_DataFrame.{name}", value.dtype.str, value.shape[1:]) for name, value in fields.items()]
    frames = np.rec.fromarrays(list(fields.values()), dtype=types)
    source = Source("CAN", "CAN", "CAN", bus_type=v4_constants.BUS_TYPE_CAN, source_type=v4_constants.SOURCE_BUS)
    with asammdf.MDF(version="4.10") as file:
        file.append(asammdf.Signal(frames, np.array([0.0, 0.1, 0.2]), name="CAN_DataFrame", source=source))
        data = Path(file.save(tmp_path / "can.mf4")).read_bytes()
    with pytest.raises(LogError, match="--dbc"):
        mdf.read(Path("can.mf4"), data, ReadOptions())
    with pytest.raises(LogError, match="no such DBC"):
        mdf.read(Path("can.mf4"), data, ReadOptions(dbc=tmp_path / "none.dbc"))
    (tmp_path / "car.dbc").write_text(DBC)
    (drive,) = mdf.read(Path("can.mf4"), data, ReadOptions(dbc=tmp_path / "car.dbc"))
    np.testing.assert_allclose(drive.series["speed_kmh"], [[0, 0.1, 0.2], [50, 51, 52]])


def test_mf4_without_asammdf_or_broken(tmp_path, monkeypatch):
    with pytest.raises(LogError, match="cannot be read"):
        mdf.read(Path("x.mf4"), b"MDF     4.10    " + b"\0" * 10, ReadOptions())
    monkeypatch.setitem(sys.modules, "asammdf", None)
    with pytest.raises(LogError, match=r"evband\[mdf\]"):
        mdf.parse(Path("x.mf4"), b"MDF     4.10    ", ReadOptions())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00\x01\x02\xff" * 50,
        b"hello world\n",
        b"a,b\n1,2\n",
        b"time_s,speed_kmh\n0,1\n",
        b'{"a": 1}',
        b"\x89PNG\r\n\x1a\n\0\0",
    ],
)
def test_others_are_recognised_by_nobody(data):
    assert not [module.NAME for module in FORMATS if module.detect(data)]


def test_names_are_distinct():
    names = [module.NAME for module in (*FORMATS, mapped)]
    assert len(set(names)) == len(names)
    assert {car_scanner_long, car_scanner_wide, torque_pro} <= set(FORMATS)
