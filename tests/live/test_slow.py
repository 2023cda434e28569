"""Slow feeds: bands that widen with what is unknown, and say so when they are too slow."""

import numpy as np

from evband.live.run import DEMO
from evband.live.slow import Slow, effective_mass_t
from evband.model import load


def test_the_models_own_mean_shows_the_mass():
    assert 1.0 < effective_mass_t(load(DEMO / "demo.evband")) < 4.0


def test_bands_widen_with_speed_and_doubt_only():
    slow = Slow(load(DEMO / "demo.evband"), 0.9, np.ones(1))
    raw = np.tile([10.0, 8.0, 12.0, 1.0, 0.3], (4, 1))
    mean, lower, upper = slow.widened(
        np.zeros(4, int), raw, np.array([80.0, 80.0, 0.0, 40.0]), np.array([1.0, 0.2, 0.2, 0.2])
    )
    assert (mean == 10.0).all()
    widths = upper - lower
    assert widths[0] == widths[2] == 4.0
    assert widths[1] > widths[3] > 8.0


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
