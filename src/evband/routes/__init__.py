"""Where a drive will go: profiles, route files, routers and logs, all as one `Route`."""

from evband.routes.asking import route_source
from evband.routes.flat import flat_profile
from evband.routes.profile import RATE_MS2, Route
from evband.routes.reading import read_route

__all__ = ["RATE_MS2", "Route", "flat_profile", "read_route", "route_source"]
