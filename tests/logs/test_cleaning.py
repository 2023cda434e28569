"""Faults: found, counted, told, and dropped only as the options say."""

import numpy as np
import pytest

from evband.logs.cleaning import clean
from evband.logs.fills import rounding_step, straight_line_fills
from evband.trips.quality import Cleaning


def drive(n=6000, step=0.1, seed=0):
    """A drive sampled steadily, rounded as loggers round."""
    rng = np.random.default_rng(seed)
    time = np.round(step * np.arange(n), 3)
    speed = 60 + 40 * np.sin(time / 25) + np.cumsum(rng.normal(size=n)) * 0.02
    acceleration = np.gradient(speed / 3.6, time)
    current = 40 + 60 * acceleration + rng.normal(size=n)
    return {
        "speed_kmh": (time, np.round(np.abs(speed), 2)),
        "battery_voltage_v": (time, np.round(390 - 0.05 * current, 1)),
        "battery_current_a": (time, np.round(current, 2)),
    }


def kinds(findings):
    return {(finding.kind, finding.channel) for finding in findings}


def test_a_clean_drive_has_no_findings_and_gains_power():
    series, findings = clean(drive(), Cleaning())
    assert findings == []
    volts, amps = series["battery_voltage_v"][1], series["battery_current_a"][1]
    np.testing.assert_allclose(series["power_kw"][1], volts * amps / 1000)


def test_power_given_is_kept():
    series = drive()
    series["power_kw"] = (series["speed_kmh"][0], np.full(6000, 3.0) + 0.1 * series["speed_kmh"][1])
    np.testing.assert_array_equal(clean(series, Cleaning())[0]["power_kw"][1], series["power_kw"][1])


@pytest.mark.parametrize(
    ("channel", "value"), [("battery_current_a", -655.36), ("speed_kmh", 655.35), ("battery_voltage_v", 1310.0)]
)
def test_glitches_are_counted_and_dropped_or_kept(channel, value):
    series = drive()
    values = series[channel][1].copy()
    values[[100, 2000]] = value
    series[channel] = (series[channel][0], values)
    cleaned, findings = clean(series, Cleaning())
    (finding,) = [f for f in findings if f.kind == "glitch"]
    assert (finding.channel, finding.count, finding.action) == (channel, 2, "dropped")
    assert value not in cleaned[channel][1]
    assert np.abs(cleaned["power_kw"][1]).max() < 200
    kept, findings = clean(series, Cleaning(glitches=False, spikes=False))
    assert value in kept[channel][1]
    assert findings[0].action == "kept"


def test_limits_can_be_set():
    cleaned, findings = clean(drive(), Cleaning(limits={"speed_kmh": (0.0, 80.0)}))
    assert ("glitch", "speed_kmh") in kinds(findings)
    assert cleaned["speed_kmh"][1].max() <= 80.0


def test_lone_spikes_within_the_limits_are_dropped():
    series = drive()
    values = series["battery_current_a"][1].copy()
    values[50] = 640.0
    values[70:72] = (1100.0, 600.0)  # a double one
    series["battery_current_a"] = (series["battery_current_a"][0], values)
    cleaned, findings = clean(series, Cleaning())
    assert ("spike", "battery_current_a") in kinds(findings)
    assert cleaned["battery_current_a"][1].max() < 300


def with_fill(series, start, end):
    filled = {}
    for name, (time, value) in series.items():
        inside = (time > start) & (time < end)
        line = np.interp(time, [start, end], [value[time <= start][-1] - 3.0, value[time >= end][0] + 7.0])
        decimals = 1 if name == "battery_voltage_v" else 2
        filled[name] = (time, np.where(inside, np.round(line, decimals), value))
    return filled


def test_a_straight_line_fill_is_found_to_the_sample_and_becomes_a_gap():
    cleaned, findings = clean(with_fill(drive(), 100.0, 220.0), Cleaning())
    (fill,) = [f for f in findings if f.kind == "fill"]
    assert fill.start_s == pytest.approx(100.0, abs=0.5)
    assert fill.end_s == pytest.approx(220.0, abs=0.5)
    time = cleaned["speed_kmh"][0]
    assert not ((time > 101) & (time < 219)).any()
    assert ("gap", "speed_kmh") in kinds(findings)
    kept, _ = clean(with_fill(drive(), 100.0, 220.0), Cleaning(fills=False))
    assert len(kept["speed_kmh"][0]) == 6000


def test_standing_still_is_no_fill():
    series = {name: (time, np.full(len(time), value[0])) for name, (time, value) in drive().items()}
    assert straight_line_fills(series, 10.0) == []


def test_rounding_step():
    assert rounding_step(np.round(np.random.default_rng(0).normal(size=1000), 2)) == pytest.approx(0.01)
    assert rounding_step(np.zeros(5)) == 0.0


def standing(power):
    """Two minutes of driving, half an hour of standing, two minutes of driving; 1 Hz."""
    time = np.arange(2040.0)
    still = (time >= 120) & (time < 1920)
    speed = np.where(still, 0.0, 50 + 20 * np.sin(time / 7))
    kw = np.where(still, power + 0.01 * np.sin(time), 10 + 5 * np.cos(time / 7))
    return {"speed_kmh": (time, speed), "power_kw": (time, kw)}


def test_charging_is_left_out():
    cleaned, findings = clean(standing(-7.0), Cleaning())
    assert ("charging", None) in kinds(findings)
    time = cleaned["power_kw"][0]
    assert not ((time >= 120) & (time < 1920)).any()
    kept, findings = clean(standing(-7.0), Cleaning(charging=False, parked=False))
    assert len(kept["power_kw"][0]) == 2040
    assert {f.action for f in findings} == {"kept"}


def test_a_parked_car_is_trimmed_to_margins():
    cleaned, findings = clean(standing(0.4), Cleaning())
    assert ("parked", None) in kinds(findings)
    assert ("charging", None) not in kinds(findings)
    assert len(cleaned["speed_kmh"][0]) == pytest.approx(240 + 2 * 60, abs=2)


def test_a_stuck_channel_is_reported():
    series = drive()
    time, value = series["battery_current_a"]
    series["battery_current_a"] = (time, np.where((time > 200) & (time < 300), 42.0, value))
    cleaned, findings = clean(series, Cleaning())
    assert ("stuck", "battery_current_a") in kinds(findings)
    assert len(cleaned["battery_current_a"][0]) == 6000
    dropped, _ = clean(series, Cleaning(stuck=True))
    assert len(dropped["battery_current_a"][0]) == pytest.approx(5000, abs=5)


def test_a_power_sign_that_contradicts_the_motion_names_the_option():
    series = drive()
    time, amps = series["battery_current_a"]
    amps = 200 * np.gradient(series["speed_kmh"][1], time)
    _, right = clean({**series, "battery_current_a": (time, np.clip(amps, -300, 300))}, Cleaning())
    _, wrong = clean({**series, "battery_current_a": (time, np.clip(-amps, -300, 300))}, Cleaning())
    assert ("sign", "power_kw") not in kinds(right)
    (finding,) = [f for f in wrong if f.kind == "sign"]
    assert "--flip-power" in finding.text


def test_a_wrong_sign_is_found_though_the_car_still_draws_power_while_it_brakes_gently():
    time = np.arange(300.0)
    speed, acceleration = 60 + 40 * np.sin(time / 25), 40 / 25 * np.cos(time / 25) / 3.6
    power = 5 + 0.15 * speed + 1.8 * acceleration * speed / 3.6
    for sign in (1, -1):
        _, findings = clean({"speed_kmh": (time, speed), "power_kw": (time, sign * power)}, Cleaning())
        assert (("sign", "power_kw") in kinds(findings)) == (sign < 0)


def test_a_gap_in_power_is_told_but_starts_no_segment():
    series = drive()
    time, amps = series["battery_current_a"]
    silent = (time > 100) & (time < 130)
    _, findings = clean({**series, "battery_current_a": (time[~silent], amps[~silent])}, Cleaning())
    assert {(f.channel, f.action) for f in findings} == {("battery_current_a", "kept"), ("power_kw", "kept")}
