"""The stream: the same bands as predict, one answer a line whatever comes, gaps, late lines, state, adaptation."""

import copy
import io
import json
import random
import time

import numpy as np
import polars as pl
import pytest

from drives import made_up_trip, small_model
from evband.calibration import Calibration
from evband.energy.ways import Ways
from evband.errors import ChannelError, SettingsError
from evband.model import PowerModel
from evband.streaming import Battery, LineStream
from evband.streaming.pump import LONGEST, keep, pump, resume
from evband.trips import Trip, Trips
from evband.trips.bins import Bins

NUMBERS = ("mean_kw", "lower_kw", "upper_kw", "aleatoric_kw", "epistemic_kw")
ROUTE = pl.DataFrame(
    {"distance_km": [0.0, 20.0], "speed_kmh": [60.0, 60.0], "elevation_m": [0.0, 0.0], "ambient_temp_c": [9.0, 9.0]}
)


@pytest.fixture(scope="module")
def model():
    return small_model()


def lines_of(table, power=True):
    """ABRP-style lines of a table, null cells left out."""
    names = {
        "time_s": "utc",
        "speed_kmh": "speed",
        "elevation_m": "elevation",
        "ambient_temp_c": "ext_temp",
        "power_kw": "power",
    }
    for row in table.iter_rows(named=True):
        yield json.dumps({names[k]: v for k, v in row.items() if v is not None and (power or k != "power_kw")})


def patchy(trip, seed=0):
    """Cells missing, readings between grid steps, a short hole, one at the limit, a long one, and a stale channel."""
    rng = np.random.default_rng(seed)
    time = trip.table["time_s"].to_numpy()
    kept = ~((time > 100) & (time < 130) | (time > 200) & (time < 208) | (time > 300) & (time < 311))
    table = trip.table.filter(pl.Series(kept))
    gone = pl.Series((rng.random(table.height) < 0.4) | (table["time_s"].to_numpy() > 360))
    jitter = np.append(0.0, rng.uniform(-0.3, 0.3, table.height - 1))
    return table.with_columns(
        elevation_m=pl.when(gone).then(None).otherwise(pl.col("elevation_m")), time_s=table["time_s"] + jitter
    )


@pytest.mark.parametrize("hz", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("bridge_s", [0.0, 15.0, 60.0])
def test_bins_equal_the_grid_of_the_whole_log(hz, seed, bridge_s):
    trip = made_up_trip("x", 600, 5)
    table = patchy(trip, seed)
    if seed:  # the first speed comes late
        first = pl.when(pl.int_range(pl.len()) < 3).then(None).otherwise(pl.col("speed_kmh")).alias("speed_kmh")
        table = table.with_columns(first)
    grid = Trip("x", table).on_grid(hz, bridge_s=bridge_s).table
    bins, rows = Bins(hz, bridge_s=bridge_s), []
    for sample in table.iter_rows(named=True):
        time = sample.pop("time_s")
        rows += bins.add(time, {k: v for k, v in sample.items() if v is not None})
    assert len(rows) == len(grid)
    assert [r.time_s for r in rows] == pytest.approx(grid["time_s"].to_list())
    segment = grid["segment"].to_numpy()
    assert [r.start for r in rows] == [True, *(np.diff(segment) > 0).tolist()]
    for name in set(grid.columns) - {"time_s", "segment", "power_kw"}:
        ours = np.array([r.values.get(name, np.nan) for r in rows])
        np.testing.assert_allclose(ours, grid[name].fill_null(np.nan).to_numpy(), atol=1e-9, err_msg=name)


@pytest.mark.parametrize("bridge_s", [0.0, 30.0])
def test_a_whole_log_gives_the_bands_of_predict(model, bridge_s):
    if bridge_s:
        model = small_model(bridge_s=bridge_s)
        assert "age_s" in model.feature_map_.input_names
    table = patchy(made_up_trip("x", 600, 5))
    bands = {round(row["time_s"], 6): row for row in model.predict(Trip("x", table)).to_frame().iter_rows(named=True)}
    stream, compared = LineStream(model), 0
    for line in lines_of(table):
        answer = json.loads(stream.line(line))
        if not answer["held"]:
            compared += 1
            row = bands[round(stream.band_s, 6)]
            assert [answer[k] for k in NUMBERS] == pytest.approx([row[k] for k in NUMBERS], abs=1e-5, rel=1e-5)
            assert (answer["warmup"], answer["outside"]) == (row["warmup"], row["outside"])
    assert compared > 300


def test_stop_and_go_has_the_bands_and_the_energy_of_predict_with_either_stretch(model):
    halting = PowerModel()
    halting.__dict__.update(model.__dict__)
    halting.calibration_ = Calibration(1.7, 0.3)
    table = made_up_trip("x", 400, 5).table
    speed = np.where(table["time_s"].to_numpy() % 90 < 25, 0.0, table["speed_kmh"].to_numpy())
    trip = Trip("x", table.with_columns(pl.Series("speed_kmh", speed)))
    bands = {round(row["time_s"], 6): row for row in halting.predict(trip).to_frame().iter_rows(named=True)}
    stream = LineStream(halting)
    for line in lines_of(trip.table, power=False):
        answer = json.loads(stream.line(line))
        if not answer["held"]:
            row = bands[round(stream.band_s, 6)]
            assert [answer[k] for k in NUMBERS] == pytest.approx([row[k] for k in NUMBERS], abs=1e-5, rel=1e-5)
    low, high = halting.energy(trip)[0].interval(0.9)
    assert (answer["energy_kwh"]["p05"], answer["energy_kwh"]["p95"]) == pytest.approx((low, high), rel=1e-3)


def test_ticks_of_grid_steps_are_bands_of_predict(model):
    trip = made_up_trip("x", 200, 6)
    frame = model.predict(trip).to_frame(0.8)
    stream = model.stream(level=0.8)
    for row, expected in zip(trip.on_grid(1.0).table.iter_rows(named=True), frame.iter_rows(named=True), strict=True):
        band = stream.tick(**{k: v for k, v in row.items() if k not in ("time_s", "segment", "power_kw")})
        assert [getattr(band, k) for k in NUMBERS] == pytest.approx([expected[k] for k in NUMBERS], abs=1e-5, rel=1e-5)
        assert (band.warmup, band.outside) == (expected["warmup"], expected["outside"])
    with pytest.raises(ChannelError, match="speed is not a channel"):
        stream.tick(speed=88.0)
    again = model.stream(0.8)
    again.restore(json.loads(json.dumps(stream.to_dict())))
    one, other = again.tick(speed_kmh=50.0), stream.tick(speed_kmh=50.0)
    assert [getattr(one, k) for k in NUMBERS] == pytest.approx([getattr(other, k) for k in NUMBERS], rel=1e-9)
    assert (one.warmup, one.outside) == (other.warmup, other.outside)
    endless = stream.to_dict()
    endless["features"] |= {"ticks": float("inf")}
    with pytest.raises(SettingsError, match="does not fit this model"):
        again.restore(endless)


def test_between_grid_steps_the_band_is_held(model):
    stream = LineStream(model)
    assert json.loads(stream.line('{"utc": -0.5, "ext_temp": 9}')) | {} == {
        "utc": -0.5, "mean_kw": None, "lower_kw": None, "upper_kw": None, "aleatoric_kw": None, "epistemic_kw": None,
        "warmup": True, "outside": False, "held": True,
    }  # fmt: skip
    answers = [json.loads(stream.line(json.dumps({"utc": 0.25 * i, "speed": 50, "elevation": 1.0}))) for i in range(9)]
    assert [a["held"] for a in answers] == [False, True, True, True, False, True, True, True, False]
    assert answers[3] == answers[0] | {"utc": 0.75, "held": True}
    assert set(answers[0]) == {*NUMBERS, "utc", "warmup", "outside", "held", "energy_kwh", "range_km"}


def test_late_and_duplicate_lines_change_nothing(model):
    plain, disturbed = LineStream(model), LineStream(model)
    lines = list(lines_of(made_up_trip("x", 60, 7).table))
    for i, line in enumerate(lines):
        expected = plain.line(line)
        assert disturbed.line(line) == expected
        if i > 5:
            for old in (i, i - 3):
                answer = json.loads(disturbed.line(lines[old]))
                assert answer["held"]
                assert answer["ignored"] == ("duplicate" if old == i else "late")


def test_long_silence_or_a_clock_set_back_begins_a_trip(model):
    stream = LineStream(model)
    for line in lines_of(made_up_trip("x", 60, 7).table):
        stream.line(line)
    fresh = json.loads(LineStream(model).line('{"utc": 9000, "speed": 50, "ext_temp": 9, "elevation": 0}'))
    for moment in (9000, 1000):  # ahead, then back
        answer = json.loads(stream.line(json.dumps({"utc": moment, "speed": 50, "ext_temp": 9, "elevation": 0})))
        assert answer["energy_kwh"] == fresh["energy_kwh"]
        assert not answer["held"]
    other = json.loads(stream.line('{"utc": 1001, "trip_id": "b", "speed": 50, "ext_temp": 9, "elevation": 0}'))
    assert other["energy_kwh"] == fresh["energy_kwh"]


MALFORMED = ("", "   ", "{", "nul", "[1, 2]", '"text"', "17", "{}", '{"speed": 5}', '{"utc": null}', '{"utc": "noon"}', '{"utc": NaN}',
             '{"utc": 1e999}', '{"utc": true}', "[" * 5000, "\x00\xff", '{"utc": ' + "9" * 5000 + "}", '{"tlm": 3}')  # fmt: skip


@pytest.mark.parametrize("line", MALFORMED)
def test_a_malformed_line_is_answered_on_its_line(model, line):
    answer = json.loads(LineStream(model).line(line))
    assert answer["line"] == 1
    assert answer["error"].startswith("Line 1 was passed over: ")


def test_ten_thousand_random_lines_do_not_stop_it(model):
    rng = random.Random(0)
    good = '{"utc": 5, "speed": 50.5, "power": 9.1, "ext_temp": 20, "elevation": 100.0, "soc": 50}'
    values = ["-1e308", "1e308", "null", "true", '"x"', "[]", "{}", "NaN", "-Infinity", "1" * 400, "5", '"7.5"']
    sent = []
    for _ in range(10_000):
        kind = rng.randrange(4)
        if kind == 0:
            sent.append(
                "".join(
                    chr(rng.choice((rng.randrange(32, 127), rng.randrange(1, 0x3000))))
                    for _ in range(rng.randrange(40))
                )
            )
        elif kind == 1:
            text = list(good)
            for _ in range(rng.randrange(1, 4)):
                text[rng.randrange(len(text))] = chr(rng.randrange(32, 127))
            sent.append("".join(text))
        elif kind == 2:
            sent.append(good[: rng.randrange(len(good))])
        else:
            keys = rng.choices(
                ["utc", "time_s", "speed", "power", "elevation", "soc", "current", "voltage", "trip_id"], k=4
            )
            sent.append("{" + ", ".join(f'"{key}": {rng.choice(values)}' for key in keys) + "}")
    sent = [line.replace("\n", " ").replace("\r", " ") for line in sent]
    source = io.BytesIO(b"".join(line.encode("utf-8", "replace") + b"\n" for line in sent))
    sink = io.StringIO()
    stream = LineStream(model, adapt=True, battery=Battery(model, 60, 10.0, ROUTE))
    pump(stream, source, sink)
    answers = sink.getvalue().splitlines()
    assert len(answers) == len(sent)
    for answer in answers:
        json.loads(answer, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    after = [
        json.loads(stream.line(json.dumps({"utc": 1e6 + i, "speed": 50, "elevation": 0, "ext_temp": 9})))
        for i in range(40)
    ]
    assert after[-1]["mean_kw"] is not None


def test_an_endless_line_does_not_fill_the_memory(model):
    sink = io.StringIO()
    pump(LineStream(model), io.BytesIO(b"x" * (2 * LONGEST + 5) + b'\n{"utc": 1, "speed": 5}\n'), sink)
    assert len(sink.getvalue().splitlines()) == 2


def test_it_goes_on_from_its_state_as_if_it_had_never_stopped(model, tmp_path):
    lines = list(lines_of(patchy(made_up_trip("x", 400, 8))))
    battery = Battery(model, 60, 10.0, ROUTE)
    whole, parts = LineStream(model, adapt=True, battery=battery), LineStream(model, adapt=True, battery=battery)
    for i, line in enumerate(lines):
        if i in (1, 90, 205, 300):
            keep(parts, tmp_path / "state.json")
            parts = LineStream(model, adapt=True, battery=battery)
            resume(parts, tmp_path / "state.json")
        ours, expected = json.loads(parts.line(line)), json.loads(whole.line(line))
        for name in NUMBERS:
            assert ours.pop(name) == pytest.approx(expected.pop(name), abs=1e-5)
        why = ours.pop("because", None), expected.pop("because", None)
        assert why == (None, None) or why[0] == pytest.approx(why[1], abs=1e-3)
        assert ours == expected
    assert why[0] is not None


def test_a_state_that_does_not_fit_is_refused(model, tmp_path):
    resume(LineStream(model), tmp_path / "none.json")  # nothing to go on from: a fresh start
    for text in (
        "{",
        "[]",
        "{}",
        json.dumps(LineStream(model).to_dict() | {"model": "another"}),
        json.dumps(LineStream(model).to_dict() | {"bins": {}}),
    ):
        (tmp_path / "state.json").write_text(text)
        with pytest.raises(SettingsError):
            resume(LineStream(model), tmp_path / "state.json")


def test_a_state_that_adapted_another_level_is_refused(model):
    saved = json.loads(json.dumps(LineStream(model, adapt=True, level=0.9).to_dict()))
    with pytest.raises(SettingsError, match=r"0\.9 bands, not 0\.5"):
        LineStream(model, adapt=True, level=0.5).restore(saved)


def test_an_adapted_band_and_its_parts_are_stretched_alike(model):
    plain, adapting = LineStream(model), LineStream(model, adapt=True)
    for line in lines_of(made_up_trip("x", 300, 9, heater_kw=6.0).table):
        one, other = (json.loads(stream.line(line)) for stream in (plain, adapting))
    stretch = (other["upper_kw"] - other["lower_kw"]) / (one["upper_kw"] - one["lower_kw"])
    assert stretch != pytest.approx(1, abs=0.01)
    for part in ("aleatoric_kw", "epistemic_kw"):
        assert other[part] == pytest.approx(stretch * one[part], rel=1e-3)


def test_measured_power_corrects_the_mean_and_the_energy(model):
    trip = made_up_trip("x", 500, 9, heater_kw=6.0)
    plain, adapting = LineStream(model), LineStream(model, adapt=True)
    error = []
    for line, power in zip(lines_of(trip.table), trip.table["power_kw"], strict=True):
        answers = [json.loads(stream.line(line)) for stream in (plain, adapting)]
        error.append([a["mean_kw"] - power for a in answers])
    late = np.abs(np.mean(error[200:], axis=0))
    assert late[1] < 0.3 * late[0]
    used = trip.table["power_kw"].sum() / 3600
    assert answers[1]["energy_kwh"]["p50"] == pytest.approx(used, rel=0.02)
    blind = LineStream(model)
    for line in lines_of(trip.table, power=False):
        answer = json.loads(blind.line(line))
    assert answer["energy_kwh"] == answers[0]["energy_kwh"]
    anywhere = copy.copy(model)  # a stream does not know its way before its end
    anywhere.energy_ = model.energy_ | {"ways": Ways().to_dict()}
    band = anywhere.energy(Trips([trip]))[0]
    assert answer["energy_kwh"] == pytest.approx(
        {"p05": band.quantile(0.05), "p50": band.mean_kwh, "p95": band.quantile(0.95)}, rel=1e-3
    )


def test_range_shrinks_as_the_car_drives_and_follows_a_reported_charge(model):
    stream = LineStream(model, battery=Battery(model, 60, 10.0, ROUTE))
    answers = [json.loads(line) for line in map(stream.line, lines_of(made_up_trip("x", 300, 9).table))]
    first, last = answers[0]["range_km"], answers[-1]["range_km"]
    assert first["p05"] < first["p50"] < first["p95"]
    assert first["p50"] == pytest.approx(model.range(60, 10.0, ROUTE).distance_km(0.5), rel=0.02)
    assert last["p50"] < first["p50"]
    empty = json.loads(stream.line('{"utc": 320, "speed": 50, "soc": 5}'))
    assert empty["range_km"] == {"p05": 0.0, "p50": 0.0, "p95": 0.0}


def test_every_minute_says_why_range_changed(model):
    """A heater that nobody planned takes range away under its own name, and the reasons add up to the change."""
    table = made_up_trip("x", 400, 9).table
    usual, heated = (
        [
            json.loads(line)["because"]
            for line in map(
                LineStream(model, adapt=True, battery=Battery(model, 60, 10.0, ROUTE)).line,
                lines_of(table.with_columns(power_kw=pl.col("power_kw") + kw)),
            )
        ]
        for kw in (0.0, 4.0)
    )
    assert usual[30] is None
    different = {json.dumps(reasons) for reasons in usual}
    assert 6 <= len(different) <= 8  # once per minute
    for reasons in heated[70::60]:
        assert reasons["change_km"] == pytest.approx(sum(v for k, v in reasons.items() if k != "change_km"))
    assert sum(r["auxiliaries_km"] for r in heated[70::60]) < sum(r["auxiliaries_km"] for r in usual[70::60]) - 0.5
    assert heated[-1]["slope_km"] == pytest.approx(usual[-1]["slope_km"])


def test_current_and_voltage_make_power(model):
    stream = LineStream(model, adapt=True)
    for i in range(30):
        stream.line(json.dumps({"utc": i, "speed": 50, "current": 30, "voltage": 400}))
    assert stream.measured_kwh == pytest.approx(30 * 12.0 / 3600)


@pytest.mark.parametrize("attempt", [3])
def test_it_keeps_up_with_thousands_of_lines_a_second(model, attempt):
    """Far under what is measured in benchmarks, so that a busy machine passes."""
    lines = list(lines_of(made_up_trip("x", 900, 9).table))
    best = 0.0
    for _ in range(attempt):
        stream = LineStream(model)
        stream.line(lines[0])
        began = time.process_time()
        for line in lines[1:]:
            stream.line(line)
        best = max(best, (len(lines) - 1) / (time.process_time() - began))
    assert best > 1500
