"""Rows of several trips are those of each, one after the other."""

import numpy as np

from evband.features import FeatureMap, Rows
from evband.features.rows import age
from tiny_car import drives

TRIPS = drives(3, seconds=60)


def test_joined_rows_are_each_trips_own():
    features = FeatureMap.fit(TRIPS, "motion")
    rows, parts = features.transform_all(TRIPS), [features.transform(trip) for trip in TRIPS]
    assert len(rows) == 180
    assert rows.lengths.tolist() == [60, 60, 60]
    for t, part in enumerate(parts):
        own = rows.trip == t
        np.testing.assert_array_equal(rows.x[own], part.x)
        np.testing.assert_array_equal(rows.y[own], part.y)
        assert set(rows.trip_id[own]) == {TRIPS[t].trip_id}
    assert Rows.join(parts[:1]) is parts[0]
    some = rows.of([2, 0])
    assert some.lengths.tolist() == [60, 60]
    assert some.trip_id[[0, -1]].tolist() == [TRIPS[2].trip_id, TRIPS[0].trip_id]
    np.testing.assert_array_equal(some.x, np.concatenate([parts[2].x, parts[0].x]))
    assert rows.warmup(1.0).sum() == 3 * 30
    assert rows.warmup(0.5).sum() == 3 * 15


def test_the_first_channel_outside_is_named():
    features = FeatureMap.fit(TRIPS, "motion")
    rows = features.transform_all(TRIPS)
    assert not rows.outside.any()
    features.high = features.high - np.array([30.0, 0.0])
    rows = features.transform_all(TRIPS)
    assert set(rows.outside_channel(features.channels)[rows.outside]) == {"speed_kmh"}
    assert set(rows.outside_channel(features.channels)[~rows.outside]) == {""}


def test_rows_since_a_start():
    assert age(np.array([1, 0, 0, 1, 0], bool)).tolist() == [0, 1, 2, 0, 1]
