"""`evband vehicles` as typed."""

import json

import pytest

import evband.cli


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)

    def go(*words):
        monkeypatch.setattr("sys.argv", ["evband", *words])
        with pytest.raises(SystemExit) as exit:
            evband.cli.main()
        shown = capsys.readouterr()
        return exit.value.code or 0, shown.out, shown.err

    return go


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
