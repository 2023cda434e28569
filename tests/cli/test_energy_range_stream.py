"""`evband energy`, `range` and `stream` as typed: what they print and write, and bad input in one sentence."""

import io
import json
import sys
from types import SimpleNamespace

import pytest

from drives import made_up_trip, small_model
from router_answers import server, valhalla

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
def run(call, monkeypatch, folder):
    monkeypatch.chdir(folder)

    def go(*words, stdin=None):
        if stdin is not None:
            monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin.encode())))
        return call(*words)

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
    assert set(found) == {
        "distance_km", "arrival_probability", "arrival_probability_empty", "reserve_soc", "soc_at_arrival", "energy_kwh", "beyond_route",
        "shares", "soc_for_95", "load_kwh_for_95", "kmh_for_95",
    }  # fmt: skip
    assert found["reserve_soc"] == 10.0
    assert "arrives with 10 % left" in out
    assert "arrives at all" in out
    assert set(found["distance_km"]) == {"p05", "p50", "p95"}
    assert (folder / "fan.html").stat().st_size > 10_000
    status, out, _ = run(*words, "--what-if", "--so-far", "drive.csv", "--json", "range.json")
    assert status == 0
    assert "10 % slower" in out
    what_if = json.loads((folder / "range.json").read_text())["what_if"]
    assert "no hvac_power_kw" in what_if["heater off"]
    assert what_if["5 m/s head wind"]["energy_kwh"]["p50"] > 0
    status, _, err = run(*words, "--ambient", 45)
    assert status == 0
    assert "warning" in err
    assert "leaves what the model has seen" in err


def test_range_shows_both_chances_with_their_reserve(run, folder):
    words = ("range", "car.evband", "--soc", 30, "--capacity-kwh", 8, "--route", "route.csv", "--reserve-soc", 15)
    status, out, _ = run(*words, "--json", "range.json")
    found = json.loads((folder / "range.json").read_text())
    assert status == 0
    assert found["arrival_probability"] < found["arrival_probability_empty"]
    assert "arrives with 15 % left" in out
    assert f"{found['arrival_probability']:.1%}" in out
    assert f"{found['arrival_probability_empty']:.1%}" in out


def test_range_without_a_route(run, folder):
    words = ("range", "car.evband", "--soc", 60, "--capacity-kwh", 20, "--ambient", 9)
    status, out, _ = run(*words, "--distance-km", 12, "--speed-kmh", 60)
    assert status == 0
    assert "route 12.0 km" in out
    assert "--distance-km needs --speed-kmh" in run(*words, "--distance-km", 12)[2]
    assert "stands alone" in run(*words, "--distance-km", 12, "--speed-kmh", 60, "--route", "route.csv")[2]
    assert "Give one route file" in run(*words)[2]


def test_range_along_a_gpx(run, folder):
    points = "".join(f'<rtept lat="47.{i:03d}" lon="9.5"><ele>450</ele></rtept>' for i in range(100, 200, 5))
    (folder / "way.gpx").write_text(f"<gpx><rte>{points}</rte></gpx>")
    words = ("range", "car.evband", "--soc", 60, "--capacity-kwh", 20, "--ambient", 9, "--route", "way.gpx")
    status, out, err = run(*words)
    assert status == 0
    assert "route 10.6 km" in out
    assert "has no speed and is taken at 60 km/h" in err
    assert run(*words, "--speed-kmh", 70)[0] == 0


def test_range_along_the_way_of_a_router(run):
    words = ("range", "car.evband", "--soc", 60, "--capacity-kwh", 20, "--ambient", 9, "--from", "47.0,9.5")
    up = valhalla(elevation=[400.0 + i for i in range(149)], elevation_interval=30.0)
    with server({"/route": up}) as url:
        status, out, _ = run(*words, "--to", "47.04,9.5", "--router", url)
        assert status == 0
        assert "route 4.4 km" in out
        assert "needs two points and has 1" in run(*words, "--router", url)[2]
    assert "does not answer" in run(*words, "--to", "47.04,9.5", "--router", "http://127.0.0.1:9")[2]


def test_what_ifs_go_on_at_the_speed_of_the_drive_so_far(folder):
    """On a distance profile a variant that began from rest would pay for speeding up once more."""
    from evband.energy import what_ifs

    found = what_ifs(small_model(), 60, 20, folder / "route.csv", so_far=str(folder / "drive.csv"))
    driven = made_up_trip("new", 500, 77).table["speed_kmh"][-1]
    assert driven > 5
    for name in ("as given", "10 % slower", "10 C colder"):
        first = found[name].route.km[0] * 3600  # km/h in the first second
        assert first == pytest.approx(driven * (0.9 if "slower" in name else 1.0), abs=5.0)


def test_a_piped_table_is_not_cut_and_has_a_total(run, folder):
    for name in ("one with a very long name so that eighty columns are not enough", "two"):
        made_up_trip(name, 300, len(name)).table.write_csv(folder / f"{name}.csv")
    status, out, _ = run("energy", "car.evband", "one*.csv", "two.csv", "--json", "energy.json")
    assert status == 0
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines() if "│" in line]
    assert rows[0][0].startswith("one with a very long name so that eighty columns are not enough")
    assert rows[-1][0] == "total"
    for column in (1, 2, 4):
        assert float(rows[-1][column]) == pytest.approx(sum(float(row[column]) for row in rows[:-1]), abs=0.11)
    assert rows[-1][3] == "-"


def test_a_trip_that_does_not_move_has_no_consumption(run, folder):
    table = made_up_trip("new", 300, 5).table
    table.with_columns(table["speed_kmh"] * 0).write_csv(folder / "still.csv")
    status, out, _ = run("energy", "car.evband", "still.csv", "--keep", "parked")
    assert status == 0
    assert "nan" not in out


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


def test_a_model_that_is_not_calibrated_says_so_each_time(run, folder):
    small_model(members=2, calibrate=False).save(folder / "raw.evband")
    warning = (
        "evband: warning: this model is not calibrated (fitted with --no-calibrate), so its bands may be too narrow or too "
        "wide; evband calibrate does it with 9 new trips or more.\n"
    )
    assert run("predict", "raw.evband", "drive.csv", "-o", "bands.csv")[2] == warning
    assert run("predict", "car.evband", "drive.csv", "-o", "bands.csv")[2] == ""


def test_predict_to_standard_output(run, folder):
    status, out, err = run("predict", "car.evband", "drive.csv", "-o", "-")
    assert status == 0
    rows = [json.loads(line) for line in out.splitlines()]
    assert {"trip_id", "time_s", "mean_kw", "lower_kw", "upper_kw", "warmup", "outside"} <= set(rows[0])
    assert err.startswith(f"-: {len(rows)} rows of 1 trips")


@pytest.mark.parametrize(
    "words",
    [
        ("energy", "car.evband", "drive.csv"),
        ("evaluate", "car.evband", "drive.csv"),
        ("range", "car.evband", "--soc", "50", "--capacity-kwh", "9", "--route", "route.csv"),
    ],
)
def test_json_stands_alone_on_standard_output(run, folder, words):
    status, out, err = run(*words, "--json", "-")
    assert status == 0
    assert json.loads(out)
    assert err  # what people read
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("energy", "car.evband", "drive.csv", "--level", "90"), "between 0 and 1"),
        (("energy", "car.evband", "nowhere.csv"), "no such file"),
        (("energy", "car.evband", "drive.csv", "--from-km", "500"), "km long"),
        (("range", "car.evband", "--soc", "120", "--capacity-kwh", "20", "--route", "route.csv"), "from 0 to 100"),
        (("range", "car.evband", "--soc", "50", "--capacity-kwh", "0", "--route", "route.csv"), "positive number"),
        (("range", "car.evband", "--soc", "50", "--capacity-kwh", "9", "--route", "none.csv"), "no such file"),
        (("range", "car.evband", "--soc", "50", "--capacity-kwh", "9", "--route", "route.csv", "--plot", "a.gif"), ".html or .png"),
        (("range", "torque.evband", "--soc", "50", "--capacity-kwh", "9", "--route", "route.csv"), "does not supply motor_torque_nm"),
        (("range", "car.evband", "--soc", "50", "--capacity-kwh", "46000", "--route", "route.csv"),
         "The usable capacity is 46000 kWh, more than any car or truck has; give kWh, not Wh: 46 kWh?"),
        (("range", "nowhere.evband", "--soc", "50", "--capacity-kwh", "9", "--route", "route.csv"), "no such file"),
        (("stream", "car.evband", "--soc", "50"), "together"),
        (("stream", "car.evband", "--state", "drive.csv"), "not a saved state"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(run, words, says):
    status, _, err = run(*words, stdin="")
    assert status == 2
    assert err.startswith("evband: error: ")
    assert err.count("\n") == 1
    assert says in err
