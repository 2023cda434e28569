"""Simulated drives by name. Their ids begin with `sim_`, so that no table of them passes for a measurement."""

from __future__ import annotations

import numpy as np
import polars as pl

from evband.channels import SIMULATED, VALUES
from evband.errors import SettingsError
from evband.simulation.bench import bench_run
from evband.simulation.highway import highway_drive
from evband.simulation.vehicles import CARS
from evband.trips import Trips
from evband.trips.readings import trapezoids

NAMES: tuple[str, ...] = tuple(CARS)
TRUTH = ("true_power_kw", "true_scale_kw", "true_nu")
"""Columns beyond the vocabulary: what no log can know. They pass through tables and are never inputs."""

HZ_LIMITS = (0.1, 50.0)


def simulate(name: str, hz: float = 10.0, seed: int = 0, trips: int = 1) -> Trips:
    """Simulated trips, read and cleaned as a log of theirs would be, with the truth about their noise beside them.

    Parameters
    ----------
    name: `sedan_1`, `sedan_2`, `truck`, `hatchback` (a dynamometer run each), `highway` (a phone app's log), or `all`.
    hz: rows per second of a dynamometer log, each with noise of its own; the highway log has the app's pace, about 1 Hz.
    seed: the same seed gives the same numbers; trip k does not depend on how many are made.
    trips: how many of each vehicle. The first run is HWFET (or the long highway drive); later ones differ (docs).

    Columns `true_power_kw`, `true_scale_kw`, `true_nu` say from which Student-t each power reading was drawn.

    >>> simulate("sedan_1", hz=1)
    Trips(1 trips, 766 rows, as logged)
    """
    return Trips.from_frame(simulated_log(name, hz, seed, trips))


def simulated_log(name: str, hz: float = 10.0, seed: int = 0, trips: int = 1) -> pl.DataFrame:
    """The same drives as one tidy table before any cleaning: the highway's glitches and missing readings are in it."""
    if name not in (*NAMES, "all"):
        raise SettingsError(f"There is no simulated vehicle {name!r}; choose one of {', '.join(NAMES)}, or all.")
    if not (np.isfinite(hz) and HZ_LIMITS[0] <= hz <= HZ_LIMITS[1]):
        raise SettingsError(
            f"The rate of the simulated log is {hz} Hz; give one from {HZ_LIMITS[0]} to {HZ_LIMITS[1]:g}."
        )
    if trips < 1:
        raise SettingsError(f"The number of simulated trips is {trips}; give 1 or more.")
    if seed < 0:
        raise SettingsError(f"The seed is {seed}; give a whole number that is not negative.")
    chosen = NAMES if name == "all" else (name,)
    frame = pl.concat([_one(car, trip, hz, seed) for car in chosen for trip in range(trips)], how="diagonal")
    order = ("trip_id", "time_s", *VALUES, *TRUTH)
    return frame.select([column for column in order if column in frame.columns])


def summary(log: pl.DataFrame) -> pl.DataFrame:
    """Of each trip of a simulated log: rows, duration, distance, and the energy without noise."""
    rows = []
    for (trip_id,), trip in log.group_by(["trip_id"], maintain_order=True):
        motion, power = trip.drop_nulls("speed_kmh"), trip.drop_nulls("true_power_kw")
        rows.append(
            {
                "trip_id": trip_id,
                "rows": trip.height,
                "duration_s": float(trip["time_s"][-1] - trip["time_s"][0]),
                "distance_km": _integral(motion, "speed_kmh") / 3600.0,
                "energy_kwh": _integral(power, "true_power_kw") / 3600.0,
            }
        )
    return pl.DataFrame(rows)


def _integral(rows: pl.DataFrame, column: str) -> float:
    """Over time, by trapezoids."""
    return float(trapezoids((rows["time_s"].to_numpy(), rows[column].to_numpy())).sum())


def _one(name: str, trip: int, hz: float, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng([seed, NAMES.index(name), trip])
    frame = highway_drive(trip, rng) if name == "highway" else bench_run(name, trip, hz, rng)
    return frame.with_columns(trip_id=pl.lit(f"{SIMULATED}{name}_{trip:03d}"))
