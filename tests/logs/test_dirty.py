"""Dirty logs: what neither neighbours nor motion explain is found, counted, dropped or told with the option that mends it."""

import numpy as np
import polars as pl
import pytest

from evband.errors import TripsError
from evband.logs.cleaning import clean
from evband.logs.reading import read_trips
from evband.logs.spikes import altitude_jumps, spikes
from evband.logs.summary import warnings_of
from evband.model import PowerModel
from evband.trips.quality import Cleaning


def drive(seconds=900, step=1.2, seed=0, jitter=0.0):
    """A car of 1.6 t in town and on the road, read every `step` seconds: speed, current, voltage, altitude."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, step)
    knots = np.maximum(rng.uniform(-20, 110, seconds // 20 + 2), 0)
    v = np.interp(time, 20.0 * np.arange(len(knots)), knots) / 3.6
    a = np.gradient(v, time)
    power = 1.6 * a * v + 0.15 * v + 0.0004 * v**3 + 0.6 + 0.3 * rng.normal(size=len(time))
    volts = 380.0 - 0.15 * power
    altitude = 1700.0 + np.cumsum(0.03 * v * step * np.sin(time / 60))
    return {
        "speed_kmh": (time, 3.6 * v), "battery_current_a": (time + 0.1 * (jitter > 0), 1000.0 * power / volts),
        "battery_voltage_v": (time, volts), "elevation_m": (time, altitude),
    }  # fmt: skip


def put(series, name, at, value):
    time, values = series[name]
    values = values.copy()
    values[at] = value
    return {**series, name: (time, values)}


def found(series, kind, options=None):
    return [f for f in clean(series, options or Cleaning())[1] if f.kind == kind]


@pytest.mark.parametrize("step", [0.1, 0.25, 1.2, 2.0])
def test_a_clean_drive_loses_nothing(step):
    series = drive(step=step)
    for name in series:
        assert not spikes(name, series, 10.0).any(), name
    assert not altitude_jumps(series["elevation_m"], series["speed_kmh"]).any()


def test_single_bogus_currents_every_half_minute_are_dropped_and_counted():
    bad = np.arange(20, 740, 25)
    series = put(drive(), "battery_current_a", bad, -466.0)
    cleaned, _ = clean(series, Cleaning())
    (finding,) = found(series, "spike")
    assert (finding.channel, finding.count, finding.action) == ("battery_current_a", len(bad), "dropped")
    assert cleaned["power_kw"][1].min() > -60.0
    kept, _ = clean(series, Cleaning(spikes=False))
    assert kept["power_kw"][1].min() < -170.0


def test_a_kick_down_is_no_spike():
    series = drive()
    time, speed = series["speed_kmh"]
    speed, amps = np.full(len(speed), 60.0), 25.0 + np.random.default_rng(0).normal(size=len(speed))
    speed[301:] = 60.0 + np.minimum(18.0 * np.arange(1, len(speed) - 300), 54.0)
    speed[310:] = 114.0
    amps[301] = 260.0
    series |= {"speed_kmh": (time, speed), "battery_current_a": (time, amps)}
    assert not spikes("battery_current_a", series, 10.0).any()
    assert spikes("battery_current_a", put(series, "battery_current_a", 500, 260.0), 10.0).any()


def test_a_lone_current_is_kept_where_the_voltage_sags_with_it():
    series = drive()
    time, amps = series["battery_current_a"]
    series["battery_voltage_v"] = (time - 0.06, 400.0 - 0.09 * amps)  # read just before the current
    bogus = put(series, "battery_current_a", 300, amps[300] + 190.0)
    assert spikes("battery_current_a", bogus, 10.0)[300]
    true = put(bogus, "battery_voltage_v", 300, 400.0 - 0.09 * (amps[300] + 190.0))
    assert not spikes("battery_current_a", true, 10.0).any()
    volts = true["battery_voltage_v"][1]
    as_power = {**true, "power_kw": (time, true["battery_current_a"][1] * volts / 1000.0)}
    assert not spikes("power_kw", as_power, 10.0).any()
    turned = {**true, "battery_current_a": (time, -true["battery_current_a"][1])}
    assert not spikes("battery_current_a", turned, 10.0).any()


def test_a_voltage_that_never_moves_confirms_no_current():
    series = drive()
    series["battery_voltage_v"] = (series["battery_voltage_v"][0], np.full(750, 380.0))
    assert spikes("battery_current_a", put(series, "battery_current_a", 300, 500.0), 10.0)[300]


def test_a_spike_written_twice_and_two_in_a_row_are_found():
    series = put(drive(), "battery_current_a", [100, 101, 200, 201], [500.0, 500.0, 520.0, 430.0])
    assert np.flatnonzero(spikes("battery_current_a", series, 10.0)).tolist() == [100, 101, 200, 201]


def test_a_dropout_to_zero_of_speed_and_current_is_found():
    series = drive()
    time, speed = series["speed_kmh"]
    steady = np.abs(np.gradient(speed, time)) < 2.0
    fast = np.flatnonzero(steady & (speed > 60) & (series["battery_current_a"][1] > 45))[2::6]
    assert len(fast) >= 4
    for name in ("speed_kmh", "battery_current_a"):
        hit = spikes(name, put(series, name, fast, 0.0), 10.0)
        assert hit[fast].mean() >= (1.0 if name == "speed_kmh" else 0.5), (
            name
        )  # under hard acceleration a 0 may be true
        assert hit.sum() == hit[fast].sum()


def test_altitude_0_in_the_mountains_is_dropped_and_no_slope_is_left():
    series = put(drive(), "elevation_m", slice(200, 260), 0.0)
    series = put(series, "elevation_m", slice(0, 4), 0.0)
    series = put(series, "elevation_m", slice(500, 520), 1950.0)
    (finding,) = found(series, "jump")
    assert finding.count == 60 + 4 + 20
    height = clean(series, Cleaning())[0]["elevation_m"][1]
    assert height.min() > 1500.0
    assert np.abs(np.diff(height)).max() < 30.0
    assert clean(series, Cleaning(jumps=False))[0]["elevation_m"][1].min() == 0.0


def power_of(series):
    return clean(series, Cleaning())[0]["power_kw"]


@pytest.mark.parametrize(("factor", "unit"), [(1000.0, '"w"'), (1e-3, '"MW"')])
def test_power_in_another_unit_names_the_map_that_mends_it(factor, unit):
    series = drive()
    time, kw = power_of(series)
    (finding,) = found({"speed_kmh": series["speed_kmh"], "power_kw": (time, factor * kw)}, "unit")
    assert finding.channel == "power_kw"
    assert f"unit = {unit}" in finding.text
    assert "--map" in finding.text


def test_speed_in_metres_per_second_is_suspected_by_power_by_acceleration_and_by_the_odometer():
    series = drive()
    time, speed = series["speed_kmh"]
    slow = {"speed_kmh": (time, speed / 3.6)}
    (finding,) = found(slow | {"power_kw": power_of(series)}, "unit")
    assert 'unit = "m/s"' in finding.text
    (finding,) = found(slow | {"acceleration_ms2": (time, np.gradient(speed / 3.6, time))}, "unit")
    assert 'unit = "m/s"' in finding.text
    way = np.concatenate([[0.0], np.cumsum(np.diff(time) * (speed[1:] + speed[:-1]) / 7200.0)])
    for factor, unit in ((3.6, "m/s"), (1.609344, "mph")):
        (finding,) = found({"speed_kmh": (time, speed / factor), "distance_km": (time, 5000.0 + way)}, "unit")
        assert f'unit = "{unit}"' in finding.text
    assert not found({"speed_kmh": (time, speed), "distance_km": (time, way), "power_kw": power_of(series)}, "unit")


def test_a_log_of_one_row_per_minute_is_told_and_not_trained_on():
    time = 60.0 * np.arange(100.0)
    frame = pl.DataFrame({"time_s": time, "speed_kmh": 50 + 20 * np.sin(time), "power_kw": 8 + np.cos(time)})
    trips = read_trips(frame)
    (finding,) = trips[0].report.of("rate")
    assert "every 60 s" in finding.text
    assert trips[0].distance_km == pytest.approx(50 * 99 / 60, rel=0.05)
    assert not trips[0].report.of("gap")
    with pytest.raises(TripsError, match="evband adapt"):
        PowerModel(members=2).fit(trips)


def as_frame(series, offset=0.0):
    frames = [pl.DataFrame({"time_s": t + offset, name: v}) for name, (t, v) in series.items()]
    frame = frames[0]
    for other in frames[1:]:
        frame = frame.join(other, on="time_s", how="full", coalesce=True)
    return frame.sort("time_s")


def test_a_recording_inside_another_is_left_out_and_told(tmp_path):
    whole = as_frame(drive())
    whole.write_csv(tmp_path / "whole.csv")
    whole[200:500].with_columns(pl.col("time_s") - 17.3).write_csv(tmp_path / "part.csv")
    as_frame(drive(seed=5)).write_csv(tmp_path / "other.csv")
    names = [str(tmp_path / f"{name}.csv") for name in ("part", "whole", "other")]
    trips = read_trips(names)
    assert trips.ids == ("whole", "other")
    (finding,) = trips[0].report.of("copy")
    assert "part" in finding.text
    assert any("copy" in text or "inside" in text for text in [f.text for f in trips[0].report.findings])
    assert len(read_trips(names, cleaning=Cleaning(copies=False))) == 3
    assert len(read_trips([names[1], names[1]])) == 1


def test_two_apps_on_one_drive_are_one_recording_by_their_clocks(tmp_path):
    one, two = drive(step=1.2), drive(step=0.5)
    as_frame(one, 1.7e9).write_csv(tmp_path / "one.csv")
    as_frame({"speed_kmh": (two["speed_kmh"][0] + 0.2, np.round(two["speed_kmh"][1]))}, 1.7e9 + 30).write_csv(
        tmp_path / "two.csv"
    )
    time, speed = drive(step=1.2)["speed_kmh"]
    shifted = {"speed_kmh": (time[100:600], speed[100:600] + 0.4)}
    as_frame(shifted, 1.7e9).write_csv(tmp_path / "gps.csv")
    assert read_trips([str(tmp_path / f"{n}.csv") for n in ("one", "gps")]).ids == ("one",)
    assert (
        len(read_trips([str(tmp_path / f"{n}.csv") for n in ("one", "two")])) == 2
    )  # half a minute apart is another drive


def test_fit_repeats_what_inspect_shows():
    dirty = put(drive(), "battery_current_a", np.arange(20, 740, 25), -466.0)
    time, kw = power_of(drive())
    wrong = {"speed_kmh": drive()["speed_kmh"], "power_kw": (time, -kw)}
    frame = pl.concat(
        [as_frame(s).with_columns(trip_id=pl.lit(n)) for n, s in (("d", dirty), ("w", wrong))], how="diagonal"
    )
    told = warnings_of(read_trips(frame))
    assert told[0].startswith("w: sign of power_kw")
    assert any(text.startswith("spike of battery_current_a: 29 readings dropped in d") for text in told)
