"""`evband vehicles` as typed."""

import json

import pytest


@pytest.fixture
def run(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    return call


def test_lists_and_sheets(run, tmp_path):
    status, out, _ = run("vehicles", "--json")
    assert status == 0
    assert len(json.loads(out)) >= 90
    status, out, _ = run("vehicles", "model 3", "--json")
    assert len(json.loads(out)) >= 4
    status, out, _ = run("vehicles", "i3 60")
    assert "1195" in out
    assert "maker" in out
    _, out, _ = run("vehicles", "i3 60", "--sharpen")
    assert "sharpened" in out
    (tmp_path / "sheet.toml").write_text('name = "Mine"\nkerb_kg = 1500\ncda_m2 = 0.6\ncrr = 0.009\n')
    _, out, _ = run("vehicles", "mine", "--sheets", "sheet.toml", "--json")
    assert json.loads(out)["kerb_kg"]["source"] == "user"


def test_an_unknown_vehicle(run):
    status, out, err = run("vehicles", "modell 3x")
    assert (status, out) == (2, "")
    assert "the nearest are" in err
    assert err.count("\n") == 1
