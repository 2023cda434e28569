"""What feeds do: retained ghosts, wrong clocks, NaN, duplicates, two cars under one id, changed units. All counted, none believed."""

import math

import numpy as np
import pytest

from evband.live.assemble import COLUMN, Assembler
from evband.live.reading import Reading, Sample, number, sample

NOW = 1_790_000_000.0


def drained(assembler, *items, at=NOW):
    for item in items:
        assembler.put(item, arrived=at)
    return assembler.drain(at)


def total(assembler):
    return {name: count for name, count in assembler.drops.total().items() if count}


def test_a_retained_speed_is_never_a_reading_but_a_retained_charge_primes():
    a = Assembler(["x"], ["x"])
    batch = drained(a, Reading("x", "speed_kmh", 50.0, None, True), Reading("x", "soc_pct", 60.0, None, True))
    assert len(batch.cars) == 1
    assert total(a) == {"retained": 1}
    assert np.isnan(a.last_v[0, 0])
    drained(a, Reading("x", "soc_pct", 61.0))
    drained(a, Reading("x", "soc_pct", 12.0, None, True))
    assert total(a) == {"retained": 2}
    assert a.last_v[0, COLUMN["soc_pct"]] == 61.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e308])
def test_impossible_numbers_are_counted(value):
    a = Assembler(["x"], ["x"])
    batch = drained(a, Reading("x", "speed_kmh", value))
    assert len(batch.cars) == 0
    assert sum(total(a).values()) == 1


def test_limits_are_those_of_the_channels():
    a = Assembler(["x"], ["x"])
    drained(a, Sample("x", {"speed_kmh": 500.0, "soc_pct": 120.0, "ambient_temp_c": 20.0}))
    assert total(a) == {"out_of_limits": 2}


@pytest.mark.parametrize("clock", [100.0, 2_177_452_800.0, NOW - 5000.0])
def test_a_wrong_clock_that_runs_is_shifted_and_one_that_jumps_is_dropped(clock):
    a = Assembler(["x"], ["x"])
    taken = [drained(a, Sample("x", {"speed_kmh": 30.0}, clock + i), at=NOW + i) for i in range(6)]
    assert [len(batch.cars) for batch in taken] == [0, 0, 1, 1, 1, 1]
    assert taken[-1].times[0] == pytest.approx(NOW + 5)
    assert total(a) == {"clock": 2}
    rng = np.random.default_rng(0)
    for i in range(6):
        drained(a, Sample("x", {"speed_kmh": 30.0}, float(rng.uniform(0, 1e9))), at=NOW + 10 + i)
    assert total(a)["clock"] == 8
    right = drained(a, Sample("x", {"speed_kmh": 30.0}, NOW + 20), at=NOW + 20)
    assert right.times[0] == NOW + 20


def test_a_backlog_is_not_taken_for_a_wrong_clock():
    a = Assembler(["x"], ["x"])
    batch = drained(a, *(Sample("x", {"speed_kmh": 30.0}, NOW - 400.0 + i) for i in range(50)))
    assert len(batch.cars) == 0
    assert total(a) == {"clock": 50}


def test_of_two_cars_under_one_id_the_first_is_followed():
    a = Assembler(["x"], ["x"])
    for i in range(10):
        drained(a, Sample("x", {"speed_kmh": 100.0}), at=NOW + i)
        drained(a, Sample("x", {"speed_kmh": 0.0}), at=NOW + i + 0.5)
    assert a.last_v[0, COLUMN["speed_kmh"]] == 100.0
    assert total(a) == {"jump": 10}
    assert a.jumps[0] > 3


def test_a_charge_of_zero_out_of_nothing_is_a_glitch():
    a = Assembler(["x"], ["x"])
    drained(a, Reading("x", "soc_pct", 55.0))
    drained(a, Reading("x", "soc_pct", 0.0), at=NOW + 1)
    assert a.last_v[0, COLUMN["soc_pct"]] == 55.0
    assert total(a) == {"jump": 1}


def test_a_flood_is_cut_and_others_are_heard():
    a = Assembler(["x", "y"], ["x", "y"])
    batch = drained(
        a, *(Sample("x", {"speed_kmh": 30.0}, NOW + i / 1000) for i in range(1000)), Sample("y", {"speed_kmh": 10.0})
    )
    assert (batch.cars == 0).sum() == 100
    assert (batch.cars == 1).sum() == 1
    assert total(a) == {"too_fast": 900}


def test_unknown_cars_are_counted():
    a = Assembler(["x"])
    drained(a, Reading("nobody", "speed_kmh", 1.0))
    assert total(a) == {"unknown_car": 1}


def test_numbers_come_as_text_and_nothing_else_passes():
    assert [number(v) for v in ("12.5", 3, True, "x", None, [], {}, "9" * 100)] == [
        12.5,
        3.0,
        1.0,
        None,
        None,
        None,
        None,
        None,
    ]
    assert number(10**400) == math.inf
    assert sample("x", {"utc": 1_790_000_000_000, "speed": "50", "lat": 3}).at == NOW
    assert sample("x", {"lat": 3}) is None


@pytest.mark.parametrize(("scale", "sign"), [(1.0, -1.0), (1000.0, 1.0), (1000.0, -1.0)])
def test_unit_and_sign_of_power_are_found_by_motion(stepped, drive, scale, sign):
    live = stepped({"a": {"source": "elm327", "port": "/dev/null"}})
    table = drive.slice(200, 400).with_columns(drive["power_kw"].slice(200, 400) * scale * sign)
    live.drive("a", table)
    assert live.service.check.trusted[0]
    assert live.service.check.scale[0] == pytest.approx(sign / scale)
    assert "power" in live.car("a")["degraded"]
    measured = live.car("a")["power_kw"]
    assert measured == pytest.approx(drive["power_kw"][599], abs=1e-3)


def test_a_car_that_changes_its_unit_is_noticed(stepped, drive):
    live = stepped({"a": {}})
    live.drive("a", drive.slice(200, 100))
    assert live.service.check.trusted[0]
    watts = drive.slice(300, 200).with_columns(drive["power_kw"].slice(300, 200) * 1000.0)
    live.drive("a", watts)
    assert live.service.check.scale[0] == pytest.approx(1e-3)
