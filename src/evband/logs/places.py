"""Where a log was driven: its coordinates, and elevation along them from local tiles where the log has none of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from evband.channels import CHANNELS, COORDINATES
from evband.errors import LogError
from evband.terrain import Tiles, tidy_elevation
from evband.trips import Trip
from evband.trips.readings import Series, integral

NOWHERE_DEG = 0.01  # a receiver without a fix writes 0, 0


def with_fixes(table: pl.DataFrame, fixes: Sequence[Series]) -> pl.DataFrame:
    """The table with latitude and longitude at those of its instants that have both; no instant is added."""
    if len(fixes) != len(COORDINATES):
        return table
    time = table["time_s"].to_numpy()
    found = np.full((2, len(time)), np.nan)
    for row, name, (at, value) in zip(found, COORDINATES, fixes, strict=True):
        here = np.searchsorted(time, at)
        on = (here < len(time)) & (time[np.minimum(here, len(time) - 1)] == at)
        on &= (value >= CHANNELS[name].low) & (value <= CHANNELS[name].high)
        row[here[on]] = value[on]
    known = np.isfinite(found).all(axis=0) & (np.abs(found) > NOWHERE_DEG).any(axis=0)
    if not known.any():
        return table
    lost = pl.Series(~known)
    return table.with_columns(
        pl.Series(row, dtype=pl.Float64).set(lost, None).alias(name)
        for name, row in zip(COORDINATES, found, strict=True)
    )


def with_elevation(trip: Trip, tiles: Tiles, where: str) -> Trip:
    """A trip as logged, with elevation from tiles, spikes out and smoothed with distance; itself where it has its own."""
    if trip.has("elevation_m"):
        return trip
    if not trip.has(COORDINATES[0]):
        raise LogError(
            f"{where} (trip {trip.trip_id}): it has neither elevation nor coordinates, so tiles cannot give its elevation; "
            "leave --dem out."
        )
    time, lat = trip.series(COORDINATES[0])
    height = tiles.elevation_for(lat, trip.series(COORDINATES[1])[1])
    speed = trip.series("speed_kmh")
    km = np.maximum.accumulate(np.interp(time, speed[0], integral(speed) / 3600.0))
    along, smooth, spikes = tidy_elevation(km, height)
    if not len(along):
        raise LogError(
            f"{where} (trip {trip.trip_id}): the tiles have no elevation anywhere along it (voids, or the sea)."
        )
    known = trip.table[COORDINATES[0]].is_not_null()
    values = np.full(len(trip), np.nan)
    values[known.to_numpy()] = np.interp(km, along, smooth)
    note = "elevation is that of the tiles" + (f", {spikes} spikes taken out" if spikes else "")
    table = trip.table.with_columns(elevation_m=pl.Series(values).fill_nan(None))
    report = trip.report and replace(trip.report, notes=(*trip.report.notes, note))
    return replace(trip, table=table, report=report)
