"""Mistakes of real life and what evband says to them, word for word: a stranger must know what to do next."""

import random

import numpy as np
import polars as pl
import pytest

from drives import made_up_trip, small_model
from evband.errors import SettingsError
from tiny_car import drives

BATTERY = ("--soc", "60", "--capacity-kwh", "40")
FLAT = ("--distance-km", "20", "--speed-kmh", "50")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("car")
    small_model(members=2).save(path / "car.evband")
    small_model(features="torque", members=2).save(path / "torque.evband")
    made_up_trip("new", 300, 77).table.write_csv(path / "drive.csv")
    (path / "odd.csv").write_text("km,v\n0,50\n5,50\n")
    (path / "german.csv").write_text("Zeit,v,P\n0,50,6\n5,50,7\n")
    (path / "old.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    draw = random.Random(1)
    slow = [f"{30 * i},{draw.uniform(20, 90):.0f},{draw.uniform(2, 20):.1f}" for i in range(60)]
    (path / "slow.csv").write_text("\n".join(["time_s,speed_kmh,power_kw", *slow]))
    quick = [f"{i},{30 + i % 20}" for i in range(200)]
    (path / "no_power.csv").write_text("\n".join(["time_s,speed_kmh", *quick]))
    return path


@pytest.fixture
def run(call, monkeypatch, folder):
    monkeypatch.chdir(folder)
    return call


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (  # a table as its owner made it
            ("inspect", "german.csv"),
            'german.csv: no reader knows this file, which begins "Zeit,v,P"; if it is a table, evband inspect german.csv '
            "--write-map map.toml writes a first guess of its columns, to correct and to give with --map.",
        ),
        (  # the clock is not a channel that another name can be given to
            ("inspect", "german.csv", "--alias", "time_s=Zeit"),
            '--alias time_s=Zeit: time_s is not a measured channel; write "Zeit" = "time_s" under [columns] in a TOML file and '
            "give it with --map.",
        ),
        (  # a spreadsheet of long ago
            ("inspect", "old.xls"),
            "old.xls: this is a workbook of Excel 97 to 2003; save it as .xlsx or as CSV.",
        ),
        (  # a folder where files are meant
            ("inspect", "."),
            ".: this is a directory; name its logs, for example './*.csv'.",
        ),
        (  # a log without what is to be learned
            ("fit", "no_power.csv", "-o", "new.evband"),
            "None of these trips has measured power (power_kw, or battery_voltage_v and battery_current_a), which a fit learns "
            "from; give logs that have it, or make a model from the car's name with evband start.",
        ),
        (  # the answer as an input
            ("fit", "drive.csv", "-o", "new.evband", "--features", "speed_kmh,soc_pct"),
            "soc_pct cannot be a feature: electrical channels and other estimates of power are the answer, not inputs.",
        ),
        (  # a route in columns of its own
            ("range", "car.evband", *BATTERY, "--route", "odd.csv"),
            "odd.csv: this is neither a route nor a log; a route profile is a CSV file with the columns speed_kmh and distance_km "
            'or time_s, and this file begins "km,v".',
        ),
        (  # Wh for kWh
            ("range", "car.evband", "--soc", "60", "--capacity-kwh", "46000", *FLAT),
            "The usable capacity is 46000 kWh, more than any car or truck has; give kWh, not Wh: 46 kWh?",
        ),
        (  # half a question
            ("range", "car.evband", *BATTERY, "--distance-km", "120"),
            "--distance-km needs --speed-kmh beside it: --distance-km 120 --speed-kmh 110.",
        ),
        (  # weather that the model needs and the question does not give
            ("range", "car.evband", *BATTERY, *FLAT),
            "The route does not supply ambient_temp_c, which this model needs; give it with --ambient, or plan with a model fitted "
            "with --features speed_kmh,acceleration_ms2,elevation_m.",
        ),
        (  # a model that no route can feed
            ("range", "torque.evband", *BATTERY, *FLAT),
            "The route does not supply motor_torque_nm, which this model needs; add it to the route, or plan with a model fitted "
            "with --features motion.",
        ),
        (  # a log where the model belongs
            ("predict", "drive.csv", "drive.csv", "-o", "bands.csv"),
            "drive.csv: this is not a .evband file, or it was cut short; make or copy it again.",
        ),
        (  # a table that nobody can write
            ("predict", "car.evband", "drive.csv", "-o", "bands.xlsx"),
            "bands.xlsx: the name must end in .parquet, .csv or .jsonl, or be - for JSON lines on standard output; that decides "
            "what is written.",
        ),
        (  # a car by the wrong name
            ("start", "Renault Zebra"),
            "There is no vehicle 'Renault Zebra' in the catalogue; the nearest are Renault Zoe 22 kWh, Renault Zoe 41 kWh, Renault "
            "Zoe 52 kWh, Renault Master E-Tech 87 kWh, Renault Megane E-Tech 60 kWh; write one of them, or give a data sheet of "
            "your own (sheet.toml).",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value[:2]),
)  # fmt: skip
def test_a_mistake_is_one_sentence_that_says_what_to_do(run, words, says):
    status, out, err = run(*words)
    assert (status, out, err) == (2, "", f"evband: error: {says}\n")


def test_a_log_too_slow_to_learn_motion_from_is_sent_to_adapt(run):
    status, _, err = run("fit", "slow.csv", "-o", "new.evband")
    assert status == 2
    assert err.splitlines() == [
        "evband: warning: slow: rate of speed_kmh: one reading every 30 s: power is read as the mean over each interval, and what "
        "happens within one is lost.",
        "evband: error: Trip 'slow' has one reading every 30 s, and a model learns from motion at steps of at most 15 s; start "
        "from a named car or another model and take this log as energy: evband adapt.",
    ]


def test_one_bad_file_does_not_stop_a_batch_that_may_skip_it(run):
    status, _, err = run("inspect", "drive.csv", "german.csv", "old.xls", "--skip-bad")
    assert status == 0
    first, *rest = err.splitlines()
    assert first == "evband: warning: 2 logs were skipped:"
    assert [line.split(":")[0] for line in rest] == ["  german.csv", "  old.xls"]


def test_a_percentage_given_as_a_share_is_asked_about(run):
    status, _, err = run("range", "car.evband", "--soc", "0.6", "--capacity-kwh", "40", *FLAT, "--ambient", "9")
    assert status == 0
    assert err.splitlines()[0] == "evband: warning: --soc 0.6 is 0.6 percent; write --soc 60 if you mean 60."


def test_a_study_says_beforehand_how_long_it_takes(run, monkeypatch):
    def begin(*_):
        raise SettingsError("That is enough.")

    monkeypatch.setattr("evband.studies.compare.compare", begin)
    status, _, err = run("study", "compare", "--logs", "drive.csv", "--methods", "t-anchor,t-dropout", "--out", "study")
    assert status == 2
    assert err.splitlines() == [
        "evband: 2 fits (1 vehicles x 2 methods and seeds); 30 members on one simulated run take 1 to 5 minutes each on two "
        "cores, long logs longer; the same command continues a stopped study",
        "evband: error: That is enough.",
    ]


def test_what_a_fit_does_not_use_is_named_and_a_simulated_car_is_called_so(folder, run):
    cold = drives(2, seconds=120, extra=lambda rng, n: {"ambient_temp_c": np.full(n, 9.0)})
    both = pl.concat([trip.table.with_columns(trip_id=pl.lit(f"sim_{k}")) for k, trip in enumerate(cold)])
    windy = both.with_columns(wind_ms=pl.when(pl.col("trip_id") == "sim_0").then(pl.lit(3.0)))
    windy.write_parquet(folder / "sims.parquet")
    words = ("--members", "2", "--epochs", "1", "--device", "cpu", "--no-calibrate")
    status, out, _ = run("fit", "sims.parquet", "-o", "sim.evband", *words)
    assert status == 0
    assert "not used: wind_ms (in 1 of 2 trips only), ambient_temp_c (always 9)" in out.splitlines()
    _, out, _ = run("info", "sim.evband")
    (line,) = [line for line in out.splitlines() if line.startswith("trained on")]
    assert line.endswith(", 2 of them simulated: no measured car is behind those")
