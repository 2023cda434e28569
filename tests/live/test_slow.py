"""Slow feeds: bands that widen with what is unknown, and say so when they are too slow."""

import numpy as np

from evband.live.assemble import Batch
from evband.live.engine import Group
from evband.live.power_check import PowerCheck
from evband.live.reading import COLUMNS
from evband.live.run import DEMO
from evband.live.slow import Slow, effective_mass_t
from evband.model import load


def test_the_models_own_mean_shows_the_mass():
    assert 1.0 < effective_mass_t(load(DEMO / "demo.evband")) < 4.0


def test_bands_widen_with_speed_and_doubt_only():
    slow = Slow(load(DEMO / "demo.evband"), 0.9, np.ones(1))
    speed, sure, age = np.array([80.0, 80.0, 0.0, 40.0]), np.array([1.0, 0.2, 0.2, 0.2]), np.array([0.0, 3.0, 0.0, 3.0])
    hidden = slow.hidden(np.zeros(4, int), speed, sure, age)
    assert hidden[0] == hidden[2] == 0.0
    assert hidden[1] > hidden[3] > 3.0


def one_car(model):
    check = PowerCheck(np.ones(1), np.ones(1, bool), np.zeros(1, bool))
    return Group(model, np.zeros(1, np.int64), True, check)


def fed(group, seconds, values):
    """The bands of a feed of `values(t)` at each of `seconds`."""
    found = []
    for t in seconds:
        row = np.full((1, len(COLUMNS)), np.nan)
        for name, value in values(t).items():
            row[0, COLUMNS.index(name)] = value
        batch = Batch(np.zeros(1, np.int64), np.array([float(t)]), row)
        found += list(group.step(batch, np.array([float(t)])))
    return np.concatenate([advance.band for advance in found])


def test_single_readings_of_power_do_not_blow_up_the_band_between_them():
    model, rng = load(DEMO / "demo.evband"), np.random.default_rng(0)
    around = {"speed_kmh": 60.0, "elevation_m": 100.0, "ambient_temp_c": 20.0}
    calm = fed(one_car(model), range(0, 600, 5), lambda _: around)
    mean = calm[-1, 0]
    told = fed(one_car(model), range(0, 600, 5), lambda _: around | {"power_kw": mean + rng.normal(0, 3.0)})
    widths = [np.mean((bands[:, 2] - bands[:, 1])[-100:]) for bands in (calm, told)]
    assert widths[1] < 1.3 * widths[0]
    assert np.abs(told[-100:, 0] - mean).max() < 2.0


def test_a_feed_every_five_seconds_covers_and_one_every_thirty_says_degraded(stepped, drive):
    live = stepped({"a": {}})
    inside = []
    for i, row in enumerate(drive.slice(200, 300).iter_rows(named=True)):
        live.now += 1.0
        if i % 5 == 0:
            live.put("a", None, **{k: v for k, v in row.items() if k not in ("time_s", "power_kw") and v is not None})
        for advance in live.service.step(live.now):
            inside += ((advance.band[:, 1] <= row["power_kw"]) & (row["power_kw"] <= advance.band[:, 2])).tolist()
    assert 0.75 < np.mean(inside) <= 1.0
    assert len(inside) > 280
    assert live.car("a")["degraded"] is None
    for row in drive.slice(500, 300).iter_rows(named=True):
        live.now += 1.0
        if int(row["time_s"]) % 30 == 0:
            live.put("a", None, speed_kmh=row["speed_kmh"], elevation_m=row["elevation_m"])
        live.service.step(live.now)
    assert "every" in live.car("a")["degraded"] or "no speed" in live.car("a")["degraded"]
