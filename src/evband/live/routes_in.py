"""A route as the API takes it: a profile in columns, points or CSV; GPX, GeoJSON, the answers of OSRM and Valhalla."""

from __future__ import annotations

import io
from typing import Any

import polars as pl

from evband.live.sources.json_messages import decode
from evband.routes import Route, gpx
from evband.routes.reading import from_json

COLUMNS = ("distance_km", "time_s", "speed_kmh", "elevation_m", "ambient_temp_c", "wind_ms", "stop_s")
MOST_POINTS = 20_000
ROUTERS = {"trip", "edges", "routes", "code", "type"}  # keys of GeoJSON and of routers' answers
WHERE = "route"


def route_of(text: str) -> pl.DataFrame | Route:
    """The route in a request's body, found by content; ValueError or an EvbandError in one sentence where it is not one."""
    head = text.lstrip("\ufeff \t\r\n")
    if head.startswith("<"):
        return gpx.read(text.encode(), WHERE).route()
    if not head.startswith(("{", "[")):
        return _csv(text)
    try:
        found = decode(text)
    except ValueError:
        raise ValueError("the body is not JSON") from None
    if isinstance(found, dict) and ROUTERS & set(found):
        way = from_json(text.encode(), WHERE)
        assert way is not None  # it was one object
        return way.route()
    return _profile(found)


def _csv(text: str) -> pl.DataFrame:
    try:
        frame = pl.read_csv(io.StringIO(text), infer_schema_length=None)
    except (pl.exceptions.PolarsError, ValueError):
        raise ValueError("it is not a CSV table, JSON or GPX") from None
    return _checked({name: frame[name].to_list() for name in frame.columns})


def _profile(found: Any) -> pl.DataFrame:
    if isinstance(found, dict) and isinstance(found.get("points"), list):
        found = found["points"]
    if isinstance(found, list):
        if not all(isinstance(point, dict) for point in found):
            raise ValueError("its points are not objects")
        names = list(dict.fromkeys(name for point in found[: MOST_POINTS + 1] for name in point))
        found = {name: [point.get(name) for point in found] for name in names}
    if not isinstance(found, dict):
        raise ValueError("give columns (distance_km, speed_kmh, ...) or a list of points")
    return _checked(found)


def _checked(table: dict[str, Any]) -> pl.DataFrame:
    columns = {name: values for name, values in table.items() if name in COLUMNS}
    if "speed_kmh" not in columns or not {"distance_km", "time_s"} & set(columns):
        raise ValueError("a route needs speed_kmh and distance_km or time_s")
    lengths = {len(values) if isinstance(values, list) else -1 for values in columns.values()}
    if len(lengths) != 1 or not 2 <= next(iter(lengths)) <= MOST_POINTS:
        raise ValueError(f"its columns must be lists of one length, 2 to {MOST_POINTS} points")
    for name, values in columns.items():
        if not all(
            v is None or (isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < 1e12) for v in values
        ):
            raise ValueError(f"{name} holds something that is not a number")
    return pl.DataFrame(
        {name: pl.Series(name, values, dtype=pl.Float64, strict=False) for name, values in columns.items()}
    )
