"""For trip_bands.py and trip_ranges.py: the cabin's draw ahead as it is expected, given what the cabin drew so far or not.

A kilowatt of the cabin is taken as a kilowatt at the battery, so that no network need be asked again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from benchmarks.measured.trip_drives import Drives, arrays_of
from evband.energy.cabin import Cabin, fit_cabin
from evband.energy.drives import Drive
from evband.features.names import CABIN
from evband.trips import Trip, Trips


def cabin_of(drives: Drives) -> Cabin | None:
    """Learned from the training trips of a fold; None where its model knows no cabin."""
    if CABIN not in drives.info["channels"]:
        return None
    a, trips = arrays_of(drives.log), []
    for drive in drives.of("oob"):
        own, n = a["trip"] == int(drive.trip_id), len(drive)
        table = pl.DataFrame({
            "time_s": (np.arange(n) + 1.0) / drive.hz, "speed_kmh": drive.speed_kmh, "segment": np.zeros(n, np.int32),
            CABIN: a[f"signal.{CABIN}"][own].astype(float), "ambient_temp_c": a["signal.ambient_temp_c"][own].astype(float),
        })  # fmt: skip
        trips.append(Trip(drive.trip_id, table, drive.hz))
    return fit_cabin(Trips(trips))


def unknown_ahead(log: str, drive: Drive, cabin: Cabin, at: int, so_far: bool) -> tuple[Drive, np.ndarray]:
    """(the drive as expected from row `at` on, kW of its rows from there on that one standard deviation of the draw adds)."""
    a = arrays_of(log)
    own = a["trip"] == int(drive.trip_id)
    draw, ambient = (a[f"signal.{name}"][own].astype(float) for name in (CABIN, "ambient_temp_c"))
    seen = np.where(so_far & (np.arange(len(draw)) < at), draw, np.nan)
    expected, unsure = cabin.filled(seen, ambient, drive.hz)
    more = np.where(np.arange(len(draw)) < at, 0.0, expected - np.nan_to_num(draw))
    unsure = unsure[at:] if so_far else unsure[: len(draw) - at]
    return replace(drive, mean=drive.mean + more, members=drive.members + more), unsure
