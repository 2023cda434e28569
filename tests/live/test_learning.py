"""A started model learns its car from the feed as `stream --adapt` does; what it learned is kept, shown and can be switched off."""

import json

import numpy as np
import pytest

import evband
from evband.live.http import Api
from evband.live.learning import Learning
from evband.streaming import LineStream
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip

HEAVY = trip(2, mass=1.3 * KG, seconds=200).table.select("time_s", "speed_kmh", "power_kw").gather_every(4)


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "started.evband"
    evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR).save(path)
    return str(path)


def resumed(stepped, before, started, **more):
    """The service after a kill: nothing but the store is left of the one before."""
    before.service.store.stop()
    after = stepped({"a": {"model": started} | more}, store={"path": "s.sqlite"})
    after.service.trip_log.resume(before.now)
    after.service.store.start()
    after.now = before.now
    return after


def kept(stepped, started):
    live = stepped({"a": {"model": started}}, store={"path": "s.sqlite"})
    live.service.store.start()
    return live


def test_the_update_is_that_of_stream_adapt(stepped, started):
    live = stepped({"a": {"model": started}})
    stream = LineStream(evband.load(started), adapt=True)
    live.drive("a", HEAVY)
    for at, speed, power in HEAVY.iter_rows():
        stream.line(json.dumps({"utc": live.now - 199 + at, "speed": speed, "power": power}))
    (group,) = live.service.groups
    assert group.model.adaptation_.minutes > 2.0
    np.testing.assert_allclose(group.model.theta_, stream.model.theta_, atol=1e-4)
    for key in ("mean_kw", "lower_kw", "upper_kw"):
        assert live.car("a")[key] == pytest.approx(stream.shown[key], abs=2e-3)


def test_what_was_learned_is_told_and_plans_follow(stepped, started):
    live = stepped({"a": {"model": started}, "off": {"model": started, "learn": False}, "plain": {}})
    assert len(live.service.groups) == 3
    live.drive("a", HEAVY.head(90), soc_pct=80.0)
    api = Api(live.service)
    learned = api._details("a")["learned"]
    assert 1.0 <= learned["minutes"] <= 1.6
    assert learned["band_wider_pct"] < -20.0
    assert api._details("off")["learned"] is None
    assert api._details("plain")["learned"] is None
    _, group, ranges, _ = live.service.where("a")
    assert ranges.ways.model is group.model
    text = json.dumps({"distance_km": [0, 30], "speed_kmh": [90, 90]})
    live.service.routes.set("a", live.service.routes.plan("a", text), text)
    before = ranges.routes[0]
    live.drive("a", HEAVY.slice(90, 60), soc_pct=80.0)
    live.service.pool.submit(int).result()
    after = ranges.routes[0]
    assert after[0] is not before[0]
    assert after[1:] == before[1:]


def test_a_killed_service_goes_on_learning(stepped, started):
    whole = stepped({"a": {"model": started}})
    expected = np.concatenate([a.band for a in whole.drive("a", HEAVY)])
    live, found = kept(stepped, started), []
    for first, until in ((0, 50), (50, 120), (120, 200)):
        live = live if first == 0 else resumed(stepped, live, started)
        found += [a.band for a in live.drive("a", HEAVY.slice(first, until - first))]
    np.testing.assert_allclose(np.concatenate(found), expected, atol=1e-3)


def test_whole_drives_stay_until_the_car_is_deleted(stepped, started):
    live = kept(stepped, started)
    live.drive("a", HEAVY)
    live.put("a", live.now, speed_kmh=0.0, charging=1.0)
    for _ in range(8):
        live.step()
        live.put("a", live.now, speed_kmh=0.0, charging=1.0)
    assert live.car("a")["state"] == "charging"
    learned = live.service.groups[0].model
    assert learned.adaptation_.trips == 1
    off = resumed(stepped, live, started, learn=False)
    assert off.service.groups[0].model.adaptation_.minutes == 0.0
    again = resumed(stepped, off, started)
    np.testing.assert_array_equal(again.service.groups[0].model.theta_, learned.theta_)
    again.service.forget("a")
    assert again.service.groups[0].model.adaptation_.minutes == 0.0
    empty = resumed(stepped, again, started)
    assert empty.service.groups[0].model.adaptation_.minutes == 0.0


def test_what_does_not_fit_is_left_out(started):
    model = evband.load(started)
    learning = Learning(model, 0.9)
    saved = learning.to_dict()
    for damaged in (saved | {"rows": 3}, saved | {"stood": -5.0}, {"given": learning.digest, "rows": 0}, None):
        learning.restore(damaged, [], (learning.digest, b"no model"))
        assert learning.model.adaptation_.minutes == 0.0
    learning.restore(saved, [], ("another", b"whatever"))
    assert learning.model.adaptation_.minutes == 0.0
