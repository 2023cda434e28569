"""`evband demo`: what it writes and says, with small models in place of the real ones."""

import json
from dataclasses import replace
from functools import partial

import pytest

import evband.demo

pytest.importorskip("fastsim")


@pytest.fixture
def run(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return partial(call, "demo")


def test_two_vehicles_are_simulated_trained_scored_and_shown(run, tmp_path, monkeypatch):
    whole, small = evband.demo.chapter, {"members": 2, "epochs": 2, "hidden": 8}
    vehicles = tuple(replace(evband.demo.VEHICLES[number], held_out=(2,)) for number in (0, 4))
    monkeypatch.setattr(evband.demo, "VEHICLES", vehicles)
    monkeypatch.setattr(evband.demo, "TRIPS", 3)
    monkeypatch.setattr(evband.demo, "chapter", lambda vehicle, show: whole(vehicle, show, **small))
    status, out, err = run("--out", "a/demo")
    assert status == 0
    page = (tmp_path / "a/demo/report.html").read_text()
    assert "Sedan 1" in page
    assert "simulated data, nothing here was measured" in page
    scores = json.loads((tmp_path / "a/demo/report.json").read_text())
    assert scores["simulated"]
    assert set(scores["vehicles"]) == {"sedan_1", "highway"}
    assert 0 < scores["vehicles"]["highway"]["coverage"] <= 1
    assert scores["vehicles"]["sedan_1"]["trips"] == 1
    assert "Open a/demo/report.html" in out
    assert "simulated" in out
    assert "epoch 2/2" in err


def test_held_out_drives_leave_enough_to_calibrate_on():
    from evband.calibration import minimum_trips

    for vehicle in evband.demo.VEHICLES:
        assert all(number < evband.demo.TRIPS for number in vehicle.held_out)
        assert evband.demo.TRIPS - len(vehicle.held_out) >= minimum_trips(evband.demo.LEVEL)


def test_a_place_that_cannot_be_written_is_one_sentence_at_once(run, tmp_path):
    (tmp_path / "taken").write_text("a file")
    status, _, err = run("--out", "taken")
    assert status == 2
    assert err.startswith("evband: error: taken: ")
    assert err.count("\n") == 1
