"""GeoJSON: LineStrings with elevation as the third coordinate; speed from the properties `speed_kmh`, `maxspeed`, `highway`.

OpenRouteService answers in this form, too: its `segments[].steps[]` give the speeds.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import LogError
from evband.routes.geo import metres_between
from evband.routes.speeds import FASTEST_KMH, road_speed
from evband.routes.way import MOST_POINTS, Way, from_points

Array = NDArray[np.float64]

TOUCHING_M = 200.0  # lines that end and begin within this are one way


def read(data: dict[str, Any], where: str) -> Way:
    """The lines of a geometry, a feature or a collection, one after the other."""
    lines: list[tuple[Array, Array]] = []  # (lon lat ele, speed from each point)
    for geometry, properties in _geometries(data):
        for coordinates in _lines(geometry):
            points = _points(coordinates, where)
            lines.append((points, _speeds(properties, len(points))))
    if not lines:
        raise LogError(f"{where}: it holds no LineString; export the route as a line.")
    for (a, _), (b, _) in pairwise(lines):
        gap = metres_between((a[-1, 1], a[-1, 0]), (b[0, 1], b[0, 0]))
        if gap > TOUCHING_M:
            raise LogError(
                f"{where}: one line ends {gap / 1000:.1f} km from where the next begins; join them in order."
            )
    points = np.concatenate([points for points, _ in lines])
    if len(points) > MOST_POINTS:
        raise LogError(f"{where}: it has more than {MOST_POINTS // 1_000_000} million points; thin it out.")
    speed = np.concatenate([speed for _, speed in lines])
    known = None if np.isnan(speed).all() else speed
    return from_points(where, points[:, 1], points[:, 0], points[:, 2], speed_kmh=known)


def _geometries(data: dict[str, Any]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    kind = data.get("type")
    if kind == "FeatureCollection":
        features = _list(data.get("features"))
        return [pair for f in features if isinstance(f, dict) and f.get("type") == "Feature" for pair in _geometries(f)]  # fmt: skip
    if kind == "Feature":
        geometry, properties = data.get("geometry"), data.get("properties")
        return [(geometry, properties if isinstance(properties, dict) else {})] if isinstance(geometry, dict) else []
    return [(data, {})]


def _lines(geometry: dict[str, Any]) -> list[Any]:
    coordinates = geometry.get("coordinates")
    if geometry.get("type") == "LineString":
        return [coordinates]
    if geometry.get("type") == "MultiLineString" and isinstance(coordinates, list):
        return coordinates
    return []


def _points(coordinates: Any, where: str) -> Array:
    """[points, 3] lon, lat, elevation (NaN where there is none)."""
    coordinates = _list(coordinates)
    points = np.full((len(coordinates), 3), np.nan)
    for i, point in enumerate(coordinates):
        if not isinstance(point, list) or len(point) < 2 or not all(isinstance(x, int | float) for x in point[:3]):
            raise LogError(f"{where}: point {i + 1} is {str(point)[:40]}; write [longitude, latitude, elevation].")
        points[i, : min(len(point), 3)] = point[:3]
    if len(points) < 2:
        raise LogError(f"{where}: a line has fewer than two points; add where it ends.")
    return points


def _speeds(properties: dict[str, Any], points: int) -> Array:
    """[points] the speed from each point to the next, NaN where the properties do not say."""
    segments = properties.get("segments")
    if isinstance(segments, list):
        return _from_steps(segments, points)
    try:
        own = float(str(properties["speed_kmh"]))  # also written as text
    except (LookupError, ValueError):
        own = float("nan")
    if 0 < own <= FASTEST_KMH:
        return np.full(points, own)
    return np.full(points, road_speed(properties.get("highway"), properties.get("maxspeed")))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _from_steps(segments: list[Any], points: int) -> Array:
    """OpenRouteService: a step's distance in m and duration in s hold between its two way points."""
    speed = np.full(points, np.nan)
    steps = [s for segment in segments if isinstance(segment, dict) for s in _list(segment.get("steps"))]
    for step in steps:
        try:
            first, last = (int(i) for i in step["way_points"])
            metres, seconds = float(step["distance"]), float(step["duration"])
        except (LookupError, TypeError, ValueError, OverflowError):
            continue
        if 0 < metres < 1e9 and 1e-3 < seconds < 1e9 and 0 <= first < last < points:
            speed[first:last] = 3.6 * metres / seconds
    return speed
