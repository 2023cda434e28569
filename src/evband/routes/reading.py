"""`read_route`: a route from whatever people have. The format is found by content, never by the file's name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evband.errors import EvbandError, FormatError, LogError, SettingsError
from evband.files import json_value, read_bounded
from evband.logs.border import foreseen
from evband.routes import geojson, gpx, osrm, valhalla
from evband.routes.profile import Route, from_log, from_users, only_trip, profile_table
from evband.routes.way import Way
from evband.trips import Trip

MOST_BYTES = 256 << 20  # of a file
_BOM = b"\xef\xbb\xbf"


def read_route(source: Any, start_kmh: float = 0.0) -> Route:
    """A route from a file (profile CSV, GPX, GeoJSON, answer of OSRM, Valhalla or OpenRouteService, any readable log), a
    frame with a profile, a Way, a Trip or a Route; it starts at `start_kmh`.

    >>> import polars as pl
    >>> route = read_route(pl.DataFrame({"distance_km": [0.0, 10.0], "speed_kmh": [80.0, 80.0]}))
    >>> round(float(route.speed_kmh.max()), 3)
    80.0
    """
    if isinstance(source, Route):
        return source
    if isinstance(source, Trip):
        return from_log(source)
    if isinstance(source, str | Path):
        path, data = Path(source), _content(Path(source))
        source = _way(path, data)
        if source is None:
            return _from_table(path, data, start_kmh)
    if isinstance(source, Way):
        return source.route(start_kmh)
    if not isinstance(source, pl.DataFrame):
        from evband.logs.reading import to_polars

        source = to_polars(source, "a path, a trip")
    return from_users(source, "route", start_kmh)


def read_way(path: Path) -> Way | None:
    """The way in a GPX or JSON file; None where the file is a profile or a log."""
    return _way(path, _content(path))


def read_log(path: Path, dem: str | Path) -> Trip:
    """The only trip of a log, with elevation from the tiles in `dem` where it has none; a profile has no coordinates."""
    from evband.logs.reading import read_trips

    if profile_table(path, _content(path)) is not None:
        raise SettingsError(f"{path}: it has no coordinates, so tiles cannot give its elevation; leave --dem out.")
    return only_trip(read_trips(str(path), dem=dem), str(path))


def _content(path: Path) -> bytes:
    return read_bounded(path, MOST_BYTES, LogError, "route")


def _way(path: Path, data: bytes) -> Way | None:
    head = data[:4096].removeprefix(_BOM).lstrip()
    if head.startswith(b"<"):
        return gpx.read(data, str(path))
    return from_json(data, str(path)) if head.startswith(b"{") else None


def _from_table(path: Path, data: bytes, start_kmh: float) -> Route:
    table = profile_table(path, data)
    if table is not None:
        return from_users(table, str(path), start_kmh)
    from evband.logs.reading import read_trips

    try:
        trips = read_trips(str(path))
    except FormatError:
        begins = data[:4096].removeprefix(_BOM).decode("utf-8", "replace").strip().split("\n")[0][:80].strip()
        raise LogError(
            f"{path}: this is neither a route nor a log; a route profile is a CSV file with the columns speed_kmh and distance_km "
            f'or time_s, and this file begins "{begins}".'
        ) from None
    except EvbandError as problem:
        raise LogError(
            f"{path}: this is neither a route profile, a CSV file with the columns speed_kmh and distance_km or time_s, nor a "
            f"log that can be read ({str(problem).removeprefix(f'{path}: ').rstrip('.')})."
        ) from None
    return from_log(only_trip(trips, str(path)))


def from_json(data: bytes, where: str) -> Way | None:
    """A way from one JSON object; None where the file is lines of JSON, which is a log."""
    try:
        answer = json_value(data.removeprefix(_BOM))
    except ValueError as problem:
        if "Extra data" in str(problem):
            return None
        raise LogError(f"{where}: this is not JSON ({problem}); check that the file is whole.") from None
    if not isinstance(answer, dict):
        raise LogError(f"{where}: this JSON is not an object; GeoJSON and routers' answers are.")
    with foreseen(where, "a route"), np.errstate(over="ignore", invalid="ignore"):
        if "trip" in answer or "edges" in answer:
            return valhalla.read(answer, where)
        if "routes" in answer or "code" in answer:
            return osrm.read(answer, where)
        if "type" in answer:
            return geojson.read(answer, where)
    raise LogError(
        f"{where}: this JSON is not a route (it has {', '.join(list(answer)[:5]) or 'nothing'}); GeoJSON and the answers of "
        f"OSRM, Valhalla and OpenRouteService are known."
    )
