"""Where a drive will go."""

from evband.routes.flat import flat_profile, route_or_flat
from evband.routes.profile import RATE_MS2, Route, read_route

__all__ = ["RATE_MS2", "Route", "flat_profile", "read_route", "route_or_flat"]
