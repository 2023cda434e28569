"""Copies of drives as a slower feed would have reported them: a reading every few seconds, power as it was measured.

A model trained on such copies beside the drives themselves learns what a silence hides, and widens its band by that. Slow
feeds hardly ever tell acceleration, and that of a grid rests on readings which they would not have: copies are without.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from evband.channels import AGE, EDGES, ELECTRICAL
from evband.trips.grid import MAX_GAP_S, to_grid
from evband.trips.trips import Trip

PERIODS_S = (2.0, 3.0, 5.0, 8.0, 12.0, 15.0)  # seconds from one reading to the next
BLOCK_S = 300.0  # that one period lasts: a single long drive must show them all, too


def thinned(trip: Trip, bridge_s: float, rng: np.random.Generator) -> Trip:
    """A gridded trip of which only a row every 2 to 15 s was read, on the same grid; its power is that of every row."""
    assert trip.hz is not None
    table, width = trip.table, 1.0 / trip.hz
    time = table["time_s"].to_numpy()
    since = time - time[0]
    block = np.floor(since / BLOCK_S).astype(np.int64)
    period = rng.choice(PERIODS_S, size=block[-1] + 1)[block]
    slot = block * int(BLOCK_S) + np.floor((since - block * BLOCK_S) / period + 1e-6).astype(np.int64)
    fresh = np.ones(len(time), bool) if AGE not in table.columns else table[AGE].to_numpy() == 0.0
    fresh[0] = True
    rows = np.flatnonzero(fresh)
    read = rows[np.append(True, np.diff(slot[rows]) > 0)]  # the first row of each slot that was read
    speed = EDGES[1] if EDGES[1] in table.columns else "speed_kmh"
    names = {n: n for n in trip.channels if n not in ELECTRICAL and n != "acceleration_ms2"} | {"speed_kmh": speed}
    picked = table[read]
    series = {
        name: (part["time_s"].to_numpy(), part[column].to_numpy())
        for name, column in names.items()
        for part in [picked.select("time_s", column).drop_nulls()]
    }
    copy = to_grid(series, trip.hz, MAX_GAP_S, f"Trip {trip.trip_id}", bridge_s)
    if trip.has("power_kw"):
        number, known = (np.rint((t - time[0]) / width).astype(np.int64) for t in (copy["time_s"].to_numpy(), time))
        at = np.minimum(np.searchsorted(known, number), len(known) - 1)
        power = np.where(known[at] == number, table["power_kw"].fill_null(np.nan).to_numpy()[at], np.nan)
        copy = copy.with_columns(power_kw=pl.Series(power).fill_nan(None))
    return replace(trip, table=copy)
