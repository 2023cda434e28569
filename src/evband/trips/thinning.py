"""Copies of drives as a slower feed would have reported them: a reading every few seconds, power as it was measured.

A model trained on such copies beside the drives themselves learns what a silence hides, and widens its band by that. Slow
feeds hardly ever tell acceleration, and a car's own may come with readings which they would not have: copies are without.

Readings are picked from the log as it was read, since those of a grid lie at whole rows: a feed's ages do not.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import AGE, EDGES, ELECTRICAL
from evband.trips.grid import MAX_GAP_S, to_grid
from evband.trips.readings import Series
from evband.trips.trips import Trip

PERIODS_S = np.array([2.0, 3.0, 5.0, 8.0, 12.0, 15.0])  # seconds from one reading to the next
OFTEN = (
    1.0 / PERIODS_S / np.sum(1.0 / PERIODS_S)
)  # the shorter, the more there is to learn: from 8 s on, all hide nearly all
BLOCK_S = 300.0  # that one period lasts: a single long drive must show them all, too


def thinned(read: Trip, grid: Trip, bridge_s: float, rng: np.random.Generator) -> Trip:
    """Of a trip, as `read` and on its `grid`: on that grid, with readings every 2 to 15 s only; power is that of every row."""
    assert grid.hz is not None
    series = readings_of(read)
    began = series["speed_kmh"][0][0]
    period = rng.choice(PERIODS_S, size=int((series["speed_kmh"][0][-1] - began) / BLOCK_S) + 1, p=OFTEN)
    series = {name: first_of_slots(one, began, period) for name, one in series.items()}
    copy = to_grid(series, grid.hz, MAX_GAP_S, f"Trip {grid.trip_id}", bridge_s)
    if grid.has("power_kw"):
        number, known = (
            np.rint((table["time_s"].to_numpy() - began) * grid.hz).astype(np.int64) for table in (copy, grid.table)
        )
        at = np.minimum(np.searchsorted(known, number), len(known) - 1)
        power = np.where(known[at] == number, grid.table["power_kw"].fill_null(np.nan).to_numpy()[at], np.nan)
        copy = copy.with_columns(power_kw=pl.Series(power).fill_nan(None))
    return replace(grid, table=copy)


def readings_of(trip: Trip) -> dict[str, Series]:
    """Inputs without acceleration; of a trip known only on its grid, the values at the end of rows with a reading."""
    names = [name for name in trip.channels if name not in ELECTRICAL and name != "acceleration_ms2"]
    if trip.hz is None:
        return {name: trip.series(name) for name in names}
    table = trip.table if AGE not in trip.table.columns else trip.table.filter((pl.col(AGE) == 0.0).fill_null(False))
    if EDGES[1] in table.columns:
        table = table.with_columns(speed_kmh=EDGES[1])
    fresh = replace(trip, table=table)
    return {name: fresh.series(name) for name in names}


def first_of_slots(readings: Series, began: float, period: NDArray[np.float64]) -> Series:
    """The first reading in each slot of the `period` [blocks] of its time; of those before the first row, what held then."""
    first = max(int(np.searchsorted(readings[0], began, side="right")) - 1, 0)
    time, value = (of[first:] for of in readings)
    since = np.maximum(time - began, 0.0)
    block = np.minimum((since / BLOCK_S).astype(np.int64), len(period) - 1)
    slot = block * int(BLOCK_S) + np.floor((since - block * BLOCK_S) / period[block] + 1e-6).astype(np.int64)
    read = np.append(True, np.diff(slot) > 0)
    return time[read], value[read]
