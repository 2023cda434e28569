"""What a log itself says about consumption, without any model: measured energy over distance, by speed and by temperature.

Every minute of driving counts in the class of its mean speed and temperature, so that what is spent on speeding up stays
with what is won back; only rows with measured power count, in energy and in distance alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import polars as pl

from evband.errors import EvbandError
from evband.trips import Trip

SPEED_STEP_KMH, TEMPERATURE_STEP_C = 30.0, 10.0
LEAST_KM = 1.0  # below it a class says nothing


@dataclass(frozen=True)
class Use:
    """Energy and distance of some driving; `begins` is the low end of its class of speed or temperature."""

    energy_kwh: float
    distance_km: float
    begins: float | None = None

    @property
    def kwh_100km(self) -> float | None:
        """None where too little was driven to say."""
        return 100.0 * self.energy_kwh / self.distance_km if self.distance_km >= LEAST_KM else None


def minutes(trip: Trip) -> pl.DataFrame | None:
    """Energy, distance, mean speed and mean temperature of every minute with measured power; None where there is none."""
    if not (trip.has("power_kw") and trip.has("speed_kmh")):
        return None
    try:
        grid = trip.on_grid(min(1.0, trip.rate_hz))
    except EvbandError:
        return None
    if grid.hz is None or not grid.has("power_kw"):  # a lone reading of power is the mean of no bin
        return None
    hours = 1.0 / grid.hz / 3600.0
    temperature = pl.col("ambient_temp_c") if grid.has("ambient_temp_c") else pl.lit(None, pl.Float64)
    known = grid.table.filter(pl.col("power_kw").is_not_null() & pl.col("speed_kmh").is_not_null())
    return known.group_by((pl.col("time_s") // 60).alias("minute"), maintain_order=True).agg(
        energy_kwh=pl.col("power_kw").sum() * hours,
        distance_km=pl.col("speed_kmh").sum() * hours,
        speed_kmh=pl.col("speed_kmh").mean(),
        ambient_temp_c=temperature.mean(),
    )


def total(parts: Iterable[pl.DataFrame | None]) -> Use:
    """All minutes together."""
    found = [part for part in parts if part is not None]
    return Use(*(float(sum(float(part[name].sum()) for part in found)) for name in ("energy_kwh", "distance_km")))


def by_class(parts: Iterable[pl.DataFrame | None], channel: str, step: float) -> list[Use]:
    """Use in classes of `step` of a channel, in rising order, those with enough distance to say something."""
    found = [part for part in parts if part is not None]
    if not found:
        return []
    table = pl.concat(found).drop_nulls(channel)
    classes = table.group_by((pl.col(channel) // step * step).alias("begins")).agg(pl.sum("energy_kwh", "distance_km"))
    uses = [Use(row["energy_kwh"], row["distance_km"], row["begins"]) for row in classes.sort("begins").to_dicts()]
    return [use for use in uses if use.kwh_100km is not None]
