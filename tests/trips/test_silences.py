"""Logs full of silences are bridged, others are not."""

import numpy as np
import polars as pl

from evband.trips import Trip, Trips
from evband.trips.silences import BRIDGE_S, bridge_of


def log(silences, seconds=1200):
    time = np.arange(float(seconds))
    kept = np.ones(len(time), bool)
    for k in range(silences):
        begin = 60 + k * (seconds - 100) // max(silences, 1)
        kept[begin : begin + 15] = False
    return Trips([Trip("x", pl.DataFrame({"time_s": time[kept], "speed_kmh": 50 + 0 * time[kept]}))])


def test_only_a_log_full_of_silences_is_bridged():
    assert bridge_of(log(0), 1.0, 30.0) == 0.0
    assert bridge_of(log(1), 1.0, 30.0) == 0.0
    assert bridge_of(log(10), 1.0, 30.0) == BRIDGE_S


def test_trips_on_a_grid_stay_as_they_are():
    assert bridge_of(log(10).on_grid(1.0), 1.0, 30.0) == 0.0
