"""Messages as feeds send them, to readings; formulas and dongle answers."""

import json

import pytest

from evband.errors import SettingsError
from evband.live.config import Car, Mqtt
from evband.live.reading import Reading
from evband.live.sources import MQTT
from evband.live.sources.elm_protocol import answer, messages
from evband.live.sources.formula import compiled
from evband.live.sources.json_messages import decode
from evband.live.sources.pids import SAE, read_pids


def source(kind, topic=None, **more):
    return MQTT[kind](Car(id="c", model="m", source=kind, topic=topic, **more), Mqtt())


def read(kind, base, messages_, **more):
    one = source(kind, base, **more)
    return [r for topic, payload in messages_.items() for r in one.read(f"{base}/{topic}", payload.encode(), False)]


def test_ovms_metrics():
    found = read("ovms", "ovms/me/KONA", {
        "metric/v/p/speed": "57.3", "metric/v/b/power": "12.1", "metric/v/b/soc": "71.5", "metric/v/c/charging": "no",
        "metric/v/e/temp": "", "metric/v/t/pressure": "2.2", "metric/v/b/capacity": "64",
    })  # fmt: skip
    assert {r.channel: r.value for r in found} == {
        "speed_kmh": 57.3, "power_kw": 12.1, "soc_pct": 71.5, "charging": 0.0, "capacity_kwh": 64.0,
    }  # fmt: skip
    assert all(r.at is None and r.car == "c" for r in found)
    with pytest.raises(ValueError):
        read("ovms", "ovms/me/KONA", {"metric/v/p/speed": "fast"})


def test_teslamate_values():
    found = read("teslamate", "teslamate/cars/1", {
        "speed": "88", "power": "14", "outside_temp": "7.5", "usable_battery_level": "60", "battery_level": "62",
        "state": "charging", "elevation": "", "display_name": "Blue",
    })  # fmt: skip
    assert [(r.channel, r.value) for r in found] == [
        ("speed_kmh", 88.0), ("power_kw", 14.0), ("ambient_temp_c", 7.5), ("soc_pct", 60.0), ("charging", 1.0),
    ]  # fmt: skip


def test_fleet_telemetry_values_with_and_without_quotes():
    found = read("fleet_telemetry", "tele/5YJ", {
        "v/VehicleSpeed": '"50"', "v/PackVoltage": "380.5", "v/PackCurrent": '"-12.5"', "v/Soc": "<invalid>", "v/Gear": '"D"',
    })  # fmt: skip
    assert {r.channel: r.value for r in found} == pytest.approx(
        {"speed_kmh": 80.4672, "battery_voltage_v": 380.5, "battery_current_a": -12.5}
    )


def test_wican_frames_and_names(tmp_path):
    (tmp_path / "p.toml").write_text('[[can]]\nid = 0x3B4\nsoc_pct = "[1]/2"\n[names]\nHV_V = "battery_voltage_v"\n')
    frame = json.dumps({"bus": "0", "type": "rx", "frame": [{"id": 948, "dlc": 2, "data": [0, 130]}]})
    found = read(
        "wican",
        "wican/1",
        {"can/rx": frame, "status": "x", "auto": '{"HV_V": 355, "SPEED": "40"}'},
        pids=str(tmp_path / "p.toml"),
    )
    assert {r.channel: r.value for r in found} == {"soc_pct": 65.0, "battery_voltage_v": 355.0, "speed_kmh": 40.0}
    with pytest.raises(ValueError):
        read("wican", "wican/1", {"can/rx": '{"frame": [{"id": 948, "data": "x"}]}'}, pids=str(tmp_path / "p.toml"))


@pytest.mark.parametrize("payload", ["", "[]", "3", "{", '{"x": 1}', '"a"', "[" * 100_000])
def test_json_that_is_not_a_sample_is_a_value_error(payload):
    with pytest.raises((ValueError, RecursionError)):
        list(source("json").read("evband/c/in", payload.encode(), False))


def test_json_takes_nan_and_wrapped_objects():
    assert decode('{"speed": NaN}')["speed"] != 0
    (found,) = source("json").read("evband/c/in", b'{"tlm": {"utc": 5, "speed": 50, "is_charging": true}}', False)
    assert found.values == {"speed_kmh": 50.0, "charging": 1.0}


@pytest.mark.parametrize(
    ("text", "data", "value"),
    [
        ("A", b"\x10", 16.0),
        ("A*256+B", b"\x01\x02", 258.0),
        ("(signed(A*256+B, 16))/10", b"\xff\x38", -20.0),
        ("[0:1]", b"\x01\x02", 258.0),
        ("[S00:S01]/10", b"\xff\x38", -20.0),
        ("B01 - 40", b"\x00\x32", 10.0),
        ("-A + 2*(B-1)", b"\x01\x03", 3.0),
        ("A & 15 | B << 4", b"\xf3\x01", 19.0),
        ("AA", bytes(26) + b"\x07", 7.0),
    ],
)
def test_formulas(text, data, value):
    assert compiled(text)(data) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A B",
        "__import__('os')",
        "A.real",
        "(A",
        "A)",
        "[5:2]",
        "[0:9]",
        "exec(A)",
        "A**2",
        "(" * 200 + "A",
        "lambda: 1",
        "A+" * 300,
    ],
)
def test_what_is_not_a_formula_is_refused(text):
    with pytest.raises(SettingsError):
        compiled(text)


def test_a_short_answer_is_an_index_error():
    with pytest.raises(IndexError):
        compiled("C")(b"\x01")


def test_isotp_frames_are_put_together_per_sender():
    text = "7EC103E62010101020304\r7EC2105060708090A0B\r7EA037F2231\r7EC220C0D0E0F101112\r"
    assert messages(text) == [bytes.fromhex("7F2231")]
    whole = "7EC100A6201010102030\r7EC2104050607AAAAAA\r"
    assert answer(
        whole.replace("0102030\r", "01020304\r").replace("7EC2104050607AAAAAA", "7EC210506070809AAAA"), "220101"
    )
    assert answer("7E8 03 41 0D 32", "010D") == b"\x32"
    assert answer("18DAF110 03 41 0D 32", "010D") == b"\x32"
    for refusal in ("NO DATA", "?", "UNABLE TO CONNECT", "7E8037F0D12", "SEARCHING...", "7E8"):
        assert answer(refusal, "010D") is None


def test_a_lost_frame_is_not_papered_over():
    assert messages("7EC100F6201010102030\r7EC22 04050607080910\r".replace(" ", "")) == []


def test_standard_questions_decode():
    speed, ambient, soc = SAE
    assert speed.channels["speed_kmh"](b"\x64") == 100.0
    assert ambient.channels["ambient_temp_c"](b"\x3c") == 20.0
    assert soc.channels["soc_pct"](b"\xff") == 100.0


def test_a_makers_list_is_checked(tmp_path):
    path = tmp_path / "p.toml"
    path.write_text('[[pid]]\nheader = "7E4"\ncommand = "220101"\nbattery_current_a = "signed(K*256+L, 16)/10"\n')
    (pid,) = read_pids(path).pids
    assert pid.channels["battery_current_a"](bytes(10) + b"\xff\x9c") == -10.0
    for bad in (
        '[[pid]]\ncommand = "xyz"\n',
        '[[pid]]\ncommand = "01"\nspeedy = "A"\n',
        "[[pid]]\ncommand = 1\n",
        "[[can]]\nx = 1\n",
        "[",
    ):
        path.write_text(bad)
        with pytest.raises(SettingsError):
            read_pids(path)


def test_a_reading_says_what_it_is():
    assert Reading("c", "speed_kmh", 1.0) == ("c", "speed_kmh", 1.0, None, False)
