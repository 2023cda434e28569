"""What training trips tell of their readings: how far a mean lags, what silences hide, whether acceleration was measured."""

import numpy as np
import pytest

from evband.features.density import follows_of, hidden_of, lag_of
from evband.trips import Trip
from evband.trips.grid import to_grid

TIME = np.arange(0.0, 900.0, 0.1)
SPEED = 60 + 25 * np.sin(TIME / 9) + 8 * np.sin(TIME / 2.3)


def gridded(step, lag=0.0, **more):
    series = {"speed_kmh": (TIME[::step], SPEED[::step])} | {k: (TIME[::step], v[::step]) for k, v in more.items()}
    return Trip("x", to_grid(series, 1.0, lag=lag), 1.0)


def test_a_mean_of_many_readings_lags_and_one_reading_does_not():
    assert lag_of([gridded(1)]) == pytest.approx(0.45, abs=0.01)
    assert lag_of([gridded(2)]) == pytest.approx(0.40, abs=0.01)
    assert lag_of([gridded(10)]) == 0.0


def test_a_feed_of_one_reading_a_row_gets_the_means_that_a_dense_log_has():
    dense, plain = gridded(1), gridded(10)
    fed = gridded(10, lag_of([dense]))
    error = [np.abs((t.table["speed_kmh"] - dense.table["speed_kmh"]).to_numpy())[2:].max() for t in (plain, fed)]
    assert error[1] < 0.15 * error[0]


def test_what_is_hidden_is_what_power_does_within_half_a_minute():
    swing = 6.0 * np.sqrt(SPEED / 3.6) * np.sin(TIME / 2.0)
    found = hidden_of([gridded(1, power_kw=20 + swing)])
    assert found == pytest.approx(6.0 * np.sin(0.9 * np.pi / 2) / 1.645, rel=0.2)
    assert hidden_of([gridded(1, power_kw=np.full(len(TIME), 20.0))]) == pytest.approx(0.0, abs=1e-9)


def test_measured_acceleration_is_told_from_derived():
    assert follows_of([gridded(1)]) == follows_of([gridded(20)]) == 1.0
    rng = np.random.default_rng(0)
    true = np.gradient(SPEED, TIME) / 3.6
    noisy = true + np.repeat(rng.normal(0, 0.5 * true.std(), len(TIME) // 10), 10)
    assert follows_of([gridded(1, acceleration_ms2=noisy)]) == pytest.approx(1 / np.sqrt(1.25), abs=0.05)
