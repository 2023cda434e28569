"""Features as columns equal a stream for each vehicle, and online calibration as columns one for each."""

import numpy as np
import pytest

from drives import made_up_trip, small_model
from evband.calibration.online import OnlineCalibration
from evband.calibration.online_columns import OnlineColumns
from evband.features import memory
from evband.features.columns import FeatureColumns


@pytest.mark.parametrize("fade", [False, True])
def test_columns_equal_a_stream_for_each_vehicle(fade):
    features = small_model(fade=fade).feature_map_
    tables = [made_up_trip(f"car {i}", 200, i).on_grid(1.0).table for i in range(3)]
    streams, columns = [features.stream() for _ in tables], FeatureColumns(features, 5)
    rng = np.random.default_rng(0)
    names = [c for c in tables[0].columns if c not in ("time_s", "segment", "power_kw")]
    for t in range(200):
        cars = np.flatnonzero(rng.random(3) < 0.8)
        if not len(cars):
            continue
        if rng.random() < 0.05:
            columns.gap(cars + 1)
            [streams[c].gap() for c in cars]
        rows = [
            {n: None if rng.random() < 0.2 and n == "elevation_m" else tables[c][n][t] for n in names} for c in cars
        ]
        values = {n: np.array([np.nan if row[n] is None else row[n] for row in rows]) for n in names}
        x, r, outside = columns.tick(cars + 1, values)
        for i, c in enumerate(cars):
            one_x, one_r, one_outside = streams[c].tick(rows[i])
            np.testing.assert_allclose(x[i], one_x, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(r[i], one_r, rtol=1e-5, atol=1e-6)
            assert outside[i] == one_outside
    again = FeatureColumns(features, 5)
    again.restore(4, columns.to_dict(2))
    row = {n: np.array([tables[1][n][0]]) for n in names}
    np.testing.assert_array_equal(again.tick(np.array([4]), row)[0], columns.tick(np.array([2]), row)[0])


def test_online_calibration_as_columns_equals_one_for_each():
    rng = np.random.default_rng(1)
    ones, columns = [OnlineCalibration(0.9) for _ in range(4)], OnlineColumns(4)
    for _ in range(300):
        cars = np.flatnonzero(rng.random(4) < 0.7)
        mean = rng.normal(10, 5, len(cars))
        low, high = mean - rng.uniform(1, 3, len(cars)), mean + rng.uniform(1, 3, len(cars))
        power = np.where(rng.random(len(cars)) < 0.2, np.nan, mean + 1 + rng.normal(0, 2, len(cars)))
        centre, lower, upper = columns.learned(cars).band(mean, low, high)
        columns.observe(cars, mean, lower, upper, power)
        for i, c in enumerate(cars):
            assert ones[c].band(mean[i], low[i], high[i]) == pytest.approx((centre[i], lower[i], upper[i]))
            ones[c].observe(power[i])
    assert columns.learned(np.arange(4)).offset_kw == pytest.approx([one.learned.offset_kw for one in ones])
    assert columns.learned(np.arange(4)).log_stretch == pytest.approx([one.learned.log_stretch for one in ones])


def test_an_elevation_that_may_be_missing_is_unknown_until_it_is_seen():
    kinds, rows = np.array([memory.GRADE_IF_SEEN]), [[np.nan, 36.0], [5.0, 36.0], [6.0, 36.0], [np.nan, 36.0]]
    state, one = np.zeros((1, memory.LAST + 1)), np.zeros(1, np.int64)
    grades = []
    for row in rows:
        values = np.array([[*row, np.nan, np.nan]])
        memory.remember(kinds, 1.0, 0.0, state, one, values)
        grades.append(values[0, 0])
    assert np.isnan(grades[0])
    assert grades[1] == 0.0
    assert grades[2] > 0.0
    assert grades[3] == pytest.approx(grades[2], rel=0.5)
