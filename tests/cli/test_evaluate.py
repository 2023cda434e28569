"""`evband evaluate`: the JSON it writes, its warning about training trips, and bad input."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import evband.cli
import evband.model
from evband.bands import Bands, GaussianMixture

DRIVE = "time_s,speed_kmh,power_kw\n" + "".join(f"{i},{30 + i % 7},{5 + i % 3}\n" for i in range(60))


class Model:
    """A stand-in that predicts 6 kW everywhere."""

    settings_ = SimpleNamespace(hz=1.0, bridge_s=0.0)
    feature_map_ = SimpleNamespace(lag=0.0)
    fingerprints_: tuple[str, ...] = ()

    def predict(self, trips):
        n = [len(trip) for trip in trips]
        total = sum(n)
        members = GaussianMixture(np.full((2, total), 6.0), np.ones((2, total)))
        warmup = np.concatenate([np.arange(k) < 10 for k in n])
        time = np.concatenate([trip.table["time_s"].to_numpy() for trip in trips])
        return Bands(
            np.repeat([trip.trip_id for trip in trips], n), time, members, warmup, np.zeros(total, bool), hz=1.0
        )


@pytest.fixture
def run(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(evband.model, "load", lambda path: Model())
    return partial(call, "evaluate", "car.evband")


def test_scores_are_printed_and_written(run, tmp_path):
    (tmp_path / "drive.csv").write_text(DRIVE)
    status, out, err = run("drive.csv", "--json", "scores.json", "--level", "0.8")
    assert (status, err) == (0, "")
    scores = json.loads((tmp_path / "scores.json").read_text())
    assert scores["level"] == 0.8
    assert scores["warmup"]["n"] == 10
    assert "city" in scores["by_regime"]
    assert len(scores["by_trip"]) == 1
    assert "rmse_kw" in out
    assert "city" in out


def test_a_training_trip_is_warned_about(run, tmp_path, monkeypatch):
    (tmp_path / "drive.csv").write_text(DRIVE)
    trained = evband.read_trips("drive.csv").on_grid(1.0)
    monkeypatch.setattr(Model, "fingerprints_", trained.fingerprints)
    status, _, err = run("drive.csv")
    assert status == 0
    assert "1 of 1 trips were in the training or calibration data" in err


def test_a_log_given_twice_counts_once(run, tmp_path):
    for name in ("drive.csv", "copy.csv"):
        (tmp_path / name).write_text(DRIVE)
    status, _, err = run("drive.csv", "copy.csv", "--json", "scores.json")
    assert status == 0
    assert "copy" in err
    assert len(json.loads((tmp_path / "scores.json").read_text())["by_trip"]) == 1


@pytest.mark.parametrize(
    ("log", "words", "says"),
    [
        ("time_s,speed_kmh\n" + "".join(f"{i},{30 + i % 7}\n" for i in range(60)), (), "power_kw"),
        (DRIVE, ("--level", "90"), "between 0 and 1"),
        (DRIVE, ("--json", "nowhere/scores.json"), "directory does not exist"),
    ],
)
def test_bad_input_is_one_sentence(run, tmp_path, log, words, says):
    (tmp_path / "drive.csv").write_text(log)
    status, _, err = run("drive.csv", *words)
    assert status == 2
    assert err.startswith("evband: error: ")
    assert err.count("\n") == 1
    assert says in err
