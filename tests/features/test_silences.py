"""Logs full of silences are bridged, others are not."""

import numpy as np
import polars as pl

from evband.features.silences import BRIDGE_S
from evband.preparing import on_grid
from evband.settings import PRESETS
from evband.trips import Trip, Trips

USUAL = PRESETS["default"]


def log(silences, seconds=1200):
    time = np.arange(float(seconds))
    kept = np.ones(len(time), bool)
    for k in range(silences):
        begin = 60 + k * (seconds - 100) // max(silences, 1)
        kept[begin : begin + 15] = False
    return Trips([Trip("x", pl.DataFrame({"time_s": time[kept], "speed_kmh": 50 + 0 * time[kept]}))])


def bridged(trips, settings=USUAL, left_open=True):
    gridded, settings = on_grid(trips, settings, left_open)
    assert gridded.hz == 1.0
    return settings.bridge_s


def test_only_a_log_full_of_silences_is_bridged():
    assert bridged(log(0)) == bridged(log(1)) == 0.0
    assert bridged(log(10)) == BRIDGE_S


def test_a_log_is_not_bridged_where_that_is_settled():
    assert bridged(log(10), left_open=False) == 0.0
    assert bridged(log(10), PRESETS["paper"]) == 0.0


def test_trips_on_a_grid_stay_as_they_are():
    assert bridged(log(10).on_grid(1.0)) == 0.0
