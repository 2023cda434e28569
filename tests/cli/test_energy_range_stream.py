"""`evband energy`, `range` and `stream` as typed: what they print and write, and bad input in one sentence."""

import io
import json
import sys
from types import SimpleNamespace

import pytest

import evband.cli
from drives import made_up_trip, small_model

PROFILE = "distance_km,speed_kmh,elevation_m,ambient_temp_c\n0,50,0,9\n5,80,20,9\n12,0,0,9\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("car")
    small_model().save(path / "car.evband")
    small_model(features="torque", members=2).save(path / "torque.evband")
    made_up_trip("new", 500, 77).table.write_csv(path / "drive.csv")
    made_up_trip("new", 500, 77).table.drop("power_kw").write_csv(path / "silent.csv")
    (path / "route.csv").write_text(PROFILE)
    return path


@pytest.fixture
def run(monkeypatch, capsys, folder):
    monkeypatch.chdir(folder)

    def go(*words, stdin=None):
        monkeypatch.setattr("sys.argv", ["evband", *map(str, words)])
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as exit:
            evband.cli.main()
        shown = capsys.readouterr()
        return exit.value.code or 0, shown.out, shown.err

    return go


def test_energy(run, folder):
    status, out, err = run("energy", "car.evband", "drive.csv", "--json", "energy.json", "--level", 0.8)
    assert (status, err) == (0, "")
    found = json.loads((folder / "energy.json").read_text())
    assert [set(trip) for trip in found] == [
        {"trip_id", "distance_km", "energy_kwh", "mean_kwh", "lower_kwh", "upper_kwh", "level"}
    ]
    assert found[0]["level"] == 0.8
    assert found[0]["lower_kwh"] < found[0]["mean_kwh"] < found[0]["upper_kwh"]
    assert "of the measured energies" in out
    status, out, _ = run("energy", "car.evband", "silent.csv", "--json", "energy.json", "--units", "mi", "--from-km", 2)
    assert status == 0
    assert json.loads((folder / "energy.json").read_text())[0]["energy_kwh"] is None
    assert "of the measured energies" not in out
    assert "mi/kWh" in out


def test_range(run, folder):
    words = ("range", "car.evband", "--soc", 62, "--capacity-kwh", 20, "--route", "route.csv")
    status, out, err = run(*words, "--json", "range.json", "--plot", "fan.html")
    assert (status, err) == (0, "")
    found = json.loads((folder / "range.json").read_text())
    assert set(found) == {"distance_km", "arrival_probability", "soc_at_arrival", "energy_kwh", "beyond_route"}
    assert set(found["distance_km"]) == {"p05", "p50", "p95"}
    assert (folder / "fan.html").stat().st_size > 10_000
    status, out, _ = run(*words, "--what-if", "--so-far", "drive.csv", "--json", "range.json")
    assert status == 0
    assert "10 % slower" in out
    assert "no wind_ms" in json.loads((folder / "range.json").read_text())["what_if"]["5 m/s head wind"]
    status, _, err = run(*words, "--ambient", 45)
    assert status == 0
    assert "warning" in err
    assert "leaves what the model has seen" in err


def test_stream(run, folder):
    lines = "".join(f'{{"utc": {i}, "speed": 50, "ext_temp": 9, "elevation": 0}}\n' for i in range(5)) + "broken\n"
    words = ("stream", "car.evband", "--state", "state.json", "--soc", 50, "--capacity-kwh", 20, "--route", "route.csv")
    status, out, _ = run(*words, stdin=lines)
    assert status == 0
    answers = [json.loads(line) for line in out.splitlines()]
    assert len(answers) == 6
    assert answers[4]["range_km"]["p50"] > 0
    assert answers[5]["line"] == 6
    status, out, _ = run(*words, stdin='{"utc": 5, "speed": 50}\n')
    assert json.loads(out)["energy_kwh"]["p50"] > answers[4]["energy_kwh"]["p50"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("energy", "car.evband", "drive.csv", "--level", "90"), "between 0 and 1"),
        (("energy", "car.evband", "nowhere.csv"), "no such file"),
        (("energy", "car.evband", "drive.csv", "--from-km", "500"), "km long"),
        (("range", "car.evband", "--soc", "120", "--capacity-kwh", "20", "--route", "route.csv"), "from 0 to 100"),
        (("range", "car.evband", "--soc", "50", "--capacity-kwh", "0", "--route", "route.csv"), "positive number"),
        (("range", "car.evband", "--soc", "50", "--capacity-kwh", "9", "--route", "none.csv"), "cannot be read"),
        (("range", "car.evband", "--soc", "50", "--capacity-kwh", "9", "--route", "route.csv", "--plot", "a.gif"), ".html or .png"),
        (("range", "torque.evband", "--soc", "50", "--capacity-kwh", "9", "--route", "route.csv"), "does not supply motor_torque_nm"),
        (("range", "nowhere.evband", "--soc", "50", "--capacity-kwh", "9", "--route", "route.csv"), "cannot be read"),
        (("stream", "car.evband", "--soc", "50"), "together"),
        (("stream", "car.evband", "--state", "drive.csv"), "no saved state"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(run, words, says):
    status, _, err = run(*words, stdin="")
    assert status == 2
    assert err.startswith("evband: error: ")
    assert err.count("\n") == 1
    assert says in err
