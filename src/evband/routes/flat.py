"""A way without a profile: a distance on the flat at one speed."""

from __future__ import annotations

import polars as pl

from evband.errors import SettingsError


def flat_profile(distance_km: float, speed_kmh: float) -> pl.DataFrame:
    """A profile that `read_route` takes: flat, the speed reached from a standstill and held to the end.

    >>> flat_profile(120.0, 90.0).rows()
    [(0.0, 90.0, 0.0), (120.0, 90.0, 0.0)]
    """
    for name, value in (("distance_km", distance_km), ("speed_kmh", speed_kmh)):
        if not 0 < value < float("inf"):
            raise SettingsError(f"{name} is {value:g}; give a positive number.")
    return pl.DataFrame({"distance_km": [0.0, distance_km], "speed_kmh": [speed_kmh] * 2, "elevation_m": [0.0] * 2})
