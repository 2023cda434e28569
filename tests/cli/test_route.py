"""`evband route` as typed."""

import json
from functools import partial

import numpy as np
import pytest

GPX = "<gpx><rte>" + "".join(f'<rtept lat="47.{i:03d}" lon="9.5"/>' for i in range(100, 200, 5)) + "</rte></gpx>"


@pytest.fixture
def run(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "way.gpx").write_text(GPX)
    np.full((121, 121), 450, dtype=">i2").tofile(tmp_path / "N47E009.hgt")
    return partial(call, "route")


def test_a_file_as_table_json_and_profile(run, tmp_path):
    status, out, err = run("way.gpx")
    assert status == 0
    assert "way.gpx: 10.6 km" in out
    assert "elevation not known" in out
    assert "taken at 60 km/h" in err
    status, out, _ = run("way.gpx", "--dem", ".", "--speed-kmh", "80", "--json", "-o", "profile.csv")
    found = json.loads(out)
    assert found["distance_km"] == pytest.approx(10.56, abs=0.01)
    assert found["climb_m"] == 0
    assert found["duration_s"] == pytest.approx(10.56 / 80 * 3600, rel=0.05)
    assert sum(leg["to_km"] - leg["from_km"] for leg in found["legs"]) == pytest.approx(found["distance_km"])
    assert (tmp_path / "profile.csv").read_text().startswith("distance_km,speed_kmh,elevation_m")
    assert json.loads(run("profile.csv", "--json")[1])["distance_km"] == pytest.approx(10.56, abs=0.01)


def test_legs_of_a_sparse_profile_by_time(run, tmp_path):
    (tmp_path / "time.csv").write_text("time_s,speed_kmh\n0,0\n900,90\n")
    found = json.loads(run("time.csv", "--json", "-o", "profile.csv")[1], parse_constant=pytest.fail)
    for leg in found["legs"]:  # v^2 = 90^2 x share of the way, and the mean of an even acceleration is that of its ends
        ends = [90 * np.sqrt(leg[end] / found["distance_km"]) for end in ("from_km", "to_km")]
        assert leg["fastest_kmh"] == pytest.approx(ends[1], abs=0.1)
        assert leg["speed_kmh"] == pytest.approx(np.mean(ends), abs=0.1)
    assert json.loads(run("profile.csv", "--json")[1])["duration_s"] == pytest.approx(900, rel=0.02)


def test_a_distance_at_a_speed(run):
    status, out, _ = run("--distance-km", "120", "--speed-kmh", "110")
    assert status == 0
    assert "120.0 km, 66 min, 0 m up, 0 m down" in out


def test_bad_input_is_one_sentence(run):
    for words in ((), ("--distance-km", "1"), ("none.gpx",), ("way.gpx", "--dem", "none"), ("way.gpx", "--speed-kmh", "0"),
                  ("--router", "http://127.0.0.1:9", "47.1,9.5", "47.2,9.5"), ("--router", "x", "1,1", "1,1")):  # fmt: skip
        status, _, err = run(*words)
        assert status == 2
        assert err.startswith("evband: error: ")
        assert err.count("\n") == 1
