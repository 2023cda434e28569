"""Trip, Trips, the causal grid, online bins, quality and identity."""

from evband.trips.trips import Trip, Trips

__all__ = ["Trip", "Trips"]
