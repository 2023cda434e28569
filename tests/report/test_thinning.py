"""Thinned drives keep their peaks, and packed drives unpack to what they were."""

import base64
import gzip
import json

import numpy as np

from evband.report.thinning import extreme_rows
from evband.report.timeline import SERIES, UNKNOWN, pack


def test_peaks_stay():
    rng = np.random.default_rng(0)
    values = rng.normal(size=72_000)
    values[54_321], values[12_345] = 99.0, -99.0
    rows = extreme_rows([values], 500)
    assert {54_321, 12_345, 0, 71_999} <= set(rows.tolist())
    assert len(rows) <= 1002
    assert np.all(np.diff(rows) > 0)


def test_every_bucket_keeps_its_extremes():
    values = np.random.default_rng(1).normal(size=1000)
    rows = extreme_rows([values], 10)
    for start in range(0, 1000, 100):
        kept = values[rows[(rows >= start) & (rows < start + 100)]]
        bucket = values[start : start + 100]
        assert kept.min() == bucket.min()
        assert kept.max() == bucket.max()


def test_short_series_are_left_alone_and_unknown_values_skipped():
    assert extreme_rows([np.zeros(50)], 100).tolist() == list(range(50))
    values = np.full(1000, np.nan)
    values[500] = 1.0
    assert extreme_rows([values], 10).tolist() == [0, 500, 999]
    assert extreme_rows([np.full(1000, np.nan)], 10).tolist() == [0, 999]


def unpack(text):
    """As page.js does it."""
    head = json.loads(text)
    data = gzip.decompress(base64.b64decode(head["data"]))
    units = {"share": 1e-4, "speed": 0.01}
    at, trips = 0, []
    for trip in head["trips"]:
        n = trip["rows"]
        found = {"time": trip["start"] + np.cumsum(np.frombuffer(data, "<i4", n, at)) * head["step_s"]}
        at += 4 * n
        for name in SERIES:
            whole = np.frombuffer(data, "<i2", n, at)
            found[name] = np.where(whole == UNKNOWN, np.nan, whole * units.get(name, head["step_kw"]))
            at += 2 * n
        trips.append(found)
    assert at == len(data)
    return head, trips


def test_packed_rows_unpack_to_what_they_were(chapter):
    head, trips = unpack(pack(chapter))
    assert [trip["id"] for trip in head["trips"]] == list(chapter.trips.ids)
    joined = {name: np.concatenate([trip[name] for trip in trips]) for name in ("time", *SERIES)}
    np.testing.assert_allclose(joined["time"], chapter.rows.time_s, atol=1e-6)
    np.testing.assert_allclose(joined["power"], chapter.power, atol=0.006)
    np.testing.assert_allclose(joined["mean"], chapter.rows.mean, atol=0.006)
    np.testing.assert_allclose(joined["lower"], chapter.interval[0], atol=0.006)
    np.testing.assert_allclose(joined["upper"], chapter.interval[1], atol=0.006)
    np.testing.assert_allclose(joined["share"], chapter.data_share, atol=1e-4)
    np.testing.assert_allclose(joined["speed"], chapter.rows.speed_kmh, atol=0.006)


def test_too_many_rows_are_thinned_with_their_peaks(chapter):
    head, trips = unpack(pack(chapter, max_rows=len(chapter.rows) // 3))
    assert head["thinned"]
    assert sum(trip["rows"] for trip in head["trips"]) < len(chapter.rows) / 2
    power = np.concatenate([trip["power"] for trip in trips])
    np.testing.assert_allclose([power.min(), power.max()], [chapter.power.min(), chapter.power.max()], atol=0.006)
