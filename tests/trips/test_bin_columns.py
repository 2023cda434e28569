"""Bins as columns give the rows of `Bins`, vehicle by vehicle, and of the whole log's grid."""

import numpy as np
import pytest

from evband.channels import AGE, EDGES, ELECTRICAL, READINGS, SENSED
from evband.trips.bin_columns import DUPLICATE, LATE, NEW_TRIP_S, BinColumns
from evband.trips.bins import Bins
from evband.trips.grid import to_grid

CHANNELS = (
    "speed_kmh",
    "acceleration_ms2",
    "power_kw",
    "battery_current_a",
    "battery_voltage_v",
    "elevation_m",
    "ambient_temp_c",
)


def readings(seed, count=300, step=1.0):
    """Readings at uneven instants, each of some channels, with holes of up to 40 s."""
    rng = np.random.default_rng(seed)
    gaps = rng.exponential(step, count) + (rng.random(count) < 0.05) * rng.uniform(5, 40, count)
    times = 1000.0 + np.cumsum(gaps)
    values = np.full((count, len(CHANNELS)), np.nan)
    drawn = {0: (0, 120), 1: (-2, 2), 2: (-20, 60), 5: (100, 300), 6: (5, 25)}
    for j, (low, high) in drawn.items():
        known = rng.random(count) < (0.9 if j == 0 else 0.3)
        values[known, j] = rng.uniform(low, high, known.sum())
    values[0, 0] = 30.0
    return times, values


def one_by_one(times, values, hz, bridge_s=0.0):
    bins, rows = Bins(hz, bridge_s=bridge_s), []
    for time, row in zip(times.tolist(), values, strict=True):
        rows += bins.add(time, {c: float(v) for c, v in zip(CHANNELS, row, strict=True) if v == v})
    return rows


def row_dicts(columns, pieces, car, bridge_s=0.0):
    for rows in pieces:
        for i in np.flatnonzero(rows.car == car):
            known = {c: float(v) for c, v in zip(columns.names, rows.values[i], strict=True) if v == v}
            known |= {READINGS: float(rows.readings[i]), SENSED: float(rows.sensed[i])}
            if bridge_s:
                known[AGE] = 0.0 if rows.readings[i] else float(rows.age[i])
            yield float(rows.time[i]), known, bool(rows.start[i])


@pytest.mark.parametrize("hz", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("bridge_s", [0.0, 30.0])
def test_columns_equal_bins_of_each_vehicle(hz, bridge_s):
    feeds = [readings(seed, step=0.4 + 0.3 * seed) for seed in range(4)]
    cars = np.repeat(np.arange(4), 300)
    times, values = np.concatenate([t for t, _ in feeds]), np.concatenate([v for _, v in feeds])
    order = np.argsort(times, kind="stable")
    columns = BinColumns(hz, 4, CHANNELS, bridge_s=bridge_s)
    pieces, fate = columns.take(cars[order], times[order], values[order].copy())
    assert (fate == 0).all()
    for car, (t, v) in enumerate(feeds):
        expected = one_by_one(t, v, hz, bridge_s)
        found = list(row_dicts(columns, pieces, car, bridge_s))
        assert len(found) == len(expected) > 100
        for (time, known, start), row in zip(found, expected, strict=True):
            assert time == pytest.approx(row.time_s, abs=1e-9)
            assert known == pytest.approx(row.values, abs=1e-9)
            assert start == row.start


@pytest.mark.parametrize("hz", [1.0, 0.5, 2.0])
@pytest.mark.parametrize("bridge_s", [0.0, 30.0])
def test_file_bins_and_columns_have_one_rule_for_what_comes_before_the_first_speed(hz, bridge_s):
    """Power apart, which a file has from whole energies."""
    for seed in range(6):
        times, values = readings(seed, step=0.3 / hz)
        values[: 20 + seed, 0] = np.nan
        values[20 + seed, 0] = 30.0
        values[12 : 20 + seed, 5] = np.linspace(100.0, 200.0, 8 + seed)  # several in the first row's bin
        grid = to_grid({c: (times[v == v], v[v == v]) for c, v in zip(CHANNELS, values.T, strict=True)}, hz, bridge_s=bridge_s)  # fmt: skip
        columns = BinColumns(hz, 1, CHANNELS, bridge_s=bridge_s)
        pieces, _ = columns.take(np.zeros(len(times), np.int64), times, values.copy())
        as_columns, as_bins = list(row_dicts(columns, pieces, 0, bridge_s)), one_by_one(times, values, hz, bridge_s)
        names = sorted(set(grid.columns) - {"time_s", "segment", *ELECTRICAL})
        assert {*grid[SENSED]} == {0.0, 1.0}
        of_the_file = grid.select("time_s", *names).to_dicts()[: len(as_bins)]
        for (time, known, _), row, expected in zip(as_columns, as_bins, of_the_file, strict=True):
            assert time == pytest.approx(row.time_s, abs=1e-9) == pytest.approx(expected["time_s"], abs=1e-9)
            for name in names:
                assert known.get(name) == pytest.approx(expected[name], abs=1e-9), (seed, name)
                assert row.values.get(name) == pytest.approx(expected[name], abs=1e-9), (seed, name)


def test_a_car_that_stood_counts_what_came_in_the_second_before_it_moves():
    columns = BinColumns(1.0, 1, CHANNELS)
    columns.bins.idle[0] = True
    value = np.full((4, len(CHANNELS)), np.nan)
    value[:, 5] = [1.0, 100.0, 200.0, 300.0]  # elevation, of which the first is too old
    value[:, 0] = [0.0, 0.0, 0.0, 12.0]
    rows, _ = columns.take(np.zeros(4, np.int64), np.array([10.0, 11.2, 11.6, 12.0]), value)
    (row,) = row_dicts(columns, rows, 0)
    assert row[1]["elevation_m"] == 200.0
    assert row[1]["speed_kmh"] == 12.0
    assert row[1][READINGS] == 1.0


def test_clock_closes_bins_as_the_next_reading_would():
    times, values = readings(3, step=3.0)
    by_clock, by_reading = BinColumns(1.0, 1, CHANNELS), BinColumns(1.0, 1, CHANNELS)
    early, late = [], []
    for i, time in enumerate(times.tolist()):
        one = np.zeros(1, np.int64), times[i : i + 1], values[i : i + 1]
        early += by_clock.close(np.array([time - 1e-3])) + by_clock.take(*one[:2], one[2].copy())[0]
        late += by_reading.take(*one[:2], one[2].copy())[0]
    first, second = (list(row_dicts(by_clock, rows, 0)) for rows in (early, late))
    assert first == second
    assert len(first) > 300


def test_duplicates_and_late_readings_are_reported_and_change_nothing():
    columns = BinColumns(1.0, 1, CHANNELS)
    value = np.full((4, len(CHANNELS)), np.nan)
    value[:, 0] = [10.0, 20.0, 20.0, 99.0]
    rows, fate = columns.take(np.zeros(4, np.int64), np.array([1.0, 2.0, 2.0, 1.5]), value)
    assert fate.tolist() == [0, 0, DUPLICATE, LATE]
    assert np.concatenate([r.values[:, 0] for r in rows]).tolist() == [10.0, 20.0]


def test_silence_begins_another_drive_and_an_idle_vehicle_waits_for_motion():
    columns = BinColumns(1.0, 1, CHANNELS)

    def at(time, speed):
        value = np.full((1, len(CHANNELS)), np.nan)
        value[0, 0] = speed
        return [
            r for rows in columns.take(np.zeros(1, np.int64), np.array([time]), value)[0] for r in rows.first.tolist()
        ]

    assert at(0.0, 50.0) == [True]
    assert at(1.0, 50.0) == [False]
    assert at(2.0 + NEW_TRIP_S, 50.0) == [True]
    columns.bins.idle[0] = True
    assert at(3.0 + NEW_TRIP_S, 0.0) == []
    assert at(4.0 + NEW_TRIP_S, 12.0) == [True]


def test_power_is_made_of_current_and_a_young_voltage():
    columns = BinColumns(1.0, 1, CHANNELS)
    value = np.full((2, len(CHANNELS)), np.nan)
    value[0, 4], value[1, 0], value[1, 3] = 400.0, 30.0, 50.0
    rows, _ = columns.take(np.zeros(2, np.int64), np.array([0.0, 5.0]), value)
    assert rows[-1].values[-1, 2] == pytest.approx(20.0)


def test_state_goes_on_elsewhere():
    times, values = readings(1)
    whole, first, second = (BinColumns(1.0, 2, CHANNELS) for _ in range(3))
    cars = np.ones(len(times), np.int64)
    expected = list(row_dicts(whole, whole.take(cars, times, values.copy())[0], 1))
    found = list(row_dicts(first, first.take(cars[:150], times[:150], values[:150].copy())[0], 1))
    second.restore(1, first.to_dict(1))
    found += list(row_dicts(second, second.take(cars[150:], times[150:], values[150:].copy())[0], 1))
    assert found == expected
    assert EDGES[0] in found[-1][1]


def test_between_slow_readings_acceleration_goes_on_and_fades_and_dense_ones_are_left_alone():
    slow, dense = (BinColumns(1.0, 1, CHANNELS, 20.0, 4.0) for _ in range(2))

    def rows(columns, step):
        found = []
        for i in range(12):
            value = np.full((1, len(CHANNELS)), np.nan)
            value[0, 0] = 40.0 + 2.0 * step * i  # 2 km/h per second
            found += columns.close(np.array([1000.0 + step * i - 1e-3]))
            found += columns.take(np.zeros(1, np.int64), np.array([1000.0 + step * i]), value)[0]
        return found

    acceleration = np.concatenate([r.values[:, 1] for r in rows(slow, 5.0)])
    assert acceleration[6:].max() < 2.0 / 3.6 + 1e-9  # and not five times as much in the row of the reading
    assert acceleration[6:].min() > 0.0
    sure = np.concatenate([r.sure for r in rows(dense, 1.0)])
    assert (sure == 1.0).all()
