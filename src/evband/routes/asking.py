"""What commands are given in place of a route: a file, two points and a router, or a distance and a speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl

from evband.errors import SettingsError
from evband.routes.flat import flat_profile
from evband.routes.reading import read_log, read_way
from evband.routes.router import ask, parse_point
from evband.routes.way import Way
from evband.terrain import Tiles
from evband.trips import Trip


def route_source(
    places: Sequence[str | Path],
    router: str | None = None,
    distance_km: float | None = None,
    speed_kmh: float | None = None,
    dem: str | Path | None = None,
) -> Path | Way | Trip | pl.DataFrame:
    """What `read_route` takes, of exactly one of these: a file in `places`, two points in it and a `router`, or a distance.

    `speed_kmh` goes with the distance, and fills in where a file has no speeds; `dem` is a folder with elevation tiles.
    """
    if distance_km is not None:
        if places or router is not None or dem is not None:
            raise SettingsError("--distance-km stands alone with --speed-kmh; leave the route, --router and --dem out.")
        if speed_kmh is None:
            raise SettingsError("--distance-km needs --speed-kmh beside it: --distance-km 120 --speed-kmh 110.")
        return flat_profile(distance_km, speed_kmh)
    if router is not None:
        if len(places) != 2:
            raise SettingsError(
                f"--router needs two points and has {len(places)}; write latitude,longitude of each, as 47.14,9.52."
            )
        start, end = (parse_point(str(place)) for place in places)
        way: Way | None = ask(router, start, end)
    elif len(places) == 1:
        way = read_way(Path(places[0]))
    else:
        raise SettingsError("Give one route file, or --router URL and two points, or --distance-km and --speed-kmh.")
    if way is None:
        if speed_kmh is not None:
            raise SettingsError(f"{places[0]}: it has speeds of its own; leave --speed-kmh out.")
        return Path(places[0]) if dem is None else read_log(Path(places[0]), dem)
    return replace(way if dem is None else way.with_elevation(Tiles(dem)), fill_kmh=speed_kmh)
