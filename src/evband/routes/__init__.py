"""Where a drive will go."""

from evband.routes.profile import RATE_MS2, Route, read_route

__all__ = ["RATE_MS2", "Route", "read_route"]
