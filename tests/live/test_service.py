"""From readings to states: bands as `predict` has them, drives found, stale values not shown, restarts without a seam."""

import json

import numpy as np
import polars as pl
import pytest

from evband.live.run import DEMO
from evband.model import load
from evband.trips import Trip

OFF = {"calibrate": False}


def bands(advances):
    return np.concatenate([advance.band for advance in advances])


def test_bands_equal_predict_on_the_same_readings(stepped, drive):
    live = stepped({"a": OFF, "b": OFF, "idle": OFF})
    table = drive.head(300)
    found = bands(live.drive("b", table))
    expected = load(DEMO / "demo.evband").predict(Trip("x", table))
    lower, upper = expected.interval(0.9)
    assert len(found) == len(expected.mean) == 300
    np.testing.assert_allclose(found[:, 0], expected.mean, atol=1e-3)
    np.testing.assert_allclose(found[:, 1:3], np.stack([lower, upper], -1), atol=1e-3)
    assert live.car("b")["state"] == "driving"
    assert live.car("idle")["state"] == "waiting" if "idle" in live.service.latest else True


def test_state_object_has_the_fields_of_the_contract(stepped, drive):
    live = stepped({"kona": {"name": "Kona"}})
    live.drive("kona", drive.head(200))
    live.service.pool.submit(int).result()  # the shared way is planned in the background
    live.drive("kona", drive.slice(200, 20))
    car = live.car("kona")
    named = {
        "id",
        "at",
        "state",
        "mean_kw",
        "lower_kw",
        "upper_kw",
        "energy_kwh",
        "kwh_100km",
        "range_km",
        "arrival_probability",
    }
    assert named | {"arrival_probability_empty", "outside", "degraded"} <= set(car)
    assert car["lower_kw"] < car["mean_kw"] < car["upper_kw"]
    assert 20 < car["range_km"]["p05"] < car["range_km"]["p50"] < car["range_km"]["p95"] < 1000
    assert car["energy_kwh"]["lower"] <= car["energy_kwh"]["mean"] <= car["energy_kwh"]["upper"]
    assert car["degraded"] is None
    assert car["at"] == live.now


def test_a_drive_begins_pauses_ends_and_is_kept(stepped, drive, tmp_path):
    live = stepped({"a": {}}, store={"path": "s.sqlite"})
    live.service.store.start()
    live.drive("a", drive.slice(200, 120))
    still = pl.DataFrame({"time_s": np.arange(400.0), "speed_kmh": np.zeros(400)})
    live.drive("a", still.head(60))
    assert live.car("a")["state"] == "paused"
    live.drive("a", still.slice(60, 260))
    assert live.car("a")["state"] == "parked"
    assert live.car("a")["mean_kw"] is None
    live.drive("a", drive.slice(300, 60))
    assert live.car("a")["state"] == "driving"
    live.put("a", live.now, speed_kmh=0.0, charging=1.0)
    for _ in range(12):
        live.step()
        live.put("a", live.now, speed_kmh=0.0, charging=1.0)
    assert live.car("a")["state"] == "charging"
    store = live.service.store
    live.service.stop()
    trips = store.trips(0)
    assert [trip["open"] for trip in trips] == [False, False]
    assert all(trip["distance_km"] > 0.3 and trip["mean_kwh"] is not None for trip in trips)
    rows = store.trip_rows(0, trips[1]["began"])
    assert len(rows["t"]) >= 180
    assert {"speed_kmh", "speed_start_kmh", "mean_kw", "power_kw"} <= set(rows)


def test_silence_hides_the_band_and_says_so(stepped, drive):
    live = stepped({"a": {}})
    live.drive("a", drive.slice(200, 60))
    assert live.car("a")["mean_kw"] is not None
    for _ in range(30):
        live.step()
    car = live.car("a")
    assert car["state"] == "silent"
    assert car["mean_kw"] is None
    assert car["speed_kmh"] is None
    assert car["degraded"].startswith("no speed for")
    for _ in range(95):
        live.step(10.0)
    assert live.car("a")["state"] == "offline"


def test_a_restart_goes_on_without_a_seam(stepped, drive, tmp_path):
    whole = stepped({"a": {}})
    expected = bands(whole.drive("a", drive.slice(100, 200)))
    first = stepped({"a": {}}, store={"path": "s.sqlite"})
    first.service.store.start()
    found = [bands(first.drive("a", drive.slice(100, 120)))]
    text = json.dumps({"distance_km": [0, 40], "speed_kmh": [90, 90]})
    first.service.routes.set("a", first.service.routes.plan("a", text), text)
    first.service.stop()
    second = stepped({"a": {}}, store={"path": "s.sqlite"})
    second.service.routes.start(second.service.trip_log.resume(first.now))
    second.service.pool.submit(int).result()
    assert second.service.ranges[0].routes[0][0].end_km == pytest.approx(40.0, abs=0.5)
    second.now = first.now
    found.append(bands(second.drive("a", drive.slice(220, 80))))
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-4)
    assert second.car("a")["energy_kwh"] == whole.car("a")["energy_kwh"]


def test_a_damaged_snapshot_starts_the_car_anew(stepped, drive):
    live = stepped({"a": {}}, store={"path": "s.sqlite"})
    live.service.store.start()
    live.drive("a", drive.slice(200, 20))
    live.service.store.snapshots([(0, live.now, b'{"power_check": {"scale": 1, "trusted": true}, "bins": {}}')])
    live.service.stop()
    again = stepped({"a": {}}, store={"path": "s.sqlite"})
    again.service.trip_log.resume(live.now)
    again.now = live.now
    again.drive("a", drive.slice(220, 5))
    assert again.car("a")["warmup"]


def test_a_route_gives_arrival(stepped, drive):
    live = stepped({"a": {}})
    live.drive("a", drive.slice(200, 30))
    ranges = live.service.ranges[0]
    chances = []
    for km in (20.0, 250.0, 900.0):
        text = json.dumps({"distance_km": [0, km], "speed_kmh": [90, 90]})
        live.service.routes.set("a", live.service.routes.plan("a", text), text)
        live.drive("a", drive.slice(230, 2))
        car = live.car("a")
        assert car["arrival_probability_empty"] >= car["arrival_probability"]
        chances.append(car["arrival_probability"])
    assert chances[0] > 0.99 >= chances[1] > chances[2]
    assert chances[2] < 0.01
    details = ranges.details(0)
    assert details["fan"]["km"][0] == 0.0
    assert len(details["fan"]["p50"]) == len(details["fan"]["km"]) > 10
    assert details["route_km_left"] == pytest.approx(900.0, abs=1.0)


def test_forgetting_a_car_leaves_nothing(stepped, drive):
    live = stepped({"a": {}}, store={"path": "s.sqlite"})
    live.service.store.start()
    live.drive("a", drive.slice(200, 40))
    live.service.forget("a")
    live.step()
    assert live.car("a")["state"] == "waiting"
    assert live.car("a")["range_km"]["p50"] is None
    live.service.stop()
    assert live.service.store.trips(0) == []
    assert live.service.store.saved() == {}


def test_a_range_that_falls_faster_than_driven_is_explained(stepped, drive):
    """A drive that takes far more power than the model expects: the change names it, before and after."""
    live = stepped({"a": {}})
    table = drive.slice(200, 300)
    live.drive("a", table, soc_pct=60.0)
    live.service.pool.submit(int).result()
    live.service.ranges[0].changes.forget(
        0
    )  # the way may have been planned before or after: the comparison begins here
    live.drive("a", table.slice(0, 60), soc_pct=60.0)
    live.drive("a", table.with_columns(power_kw=2.0 * table["power_kw"].fill_null(5.0) + 5.0), soc_pct=60.0)
    change = live.service.ranges[0].details(0)["changes"][0]
    lost = change["range_km"][0] - change["range_km"][1]
    gone = change["driven_km"][1] - change["driven_km"][0]
    assert lost > gone + 5.0
    assert change["drive_pct"][1] > change["drive_pct"][0] + 5.0
    assert 295.0 <= change["at"][1] - change["at"][0] <= 330.0
