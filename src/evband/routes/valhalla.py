"""Valhalla's answers: /route (shape, elevation, times of manoeuvres) and /trace_attributes (speed of every edge)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.channels import KM_PER_MILE, conversion
from evband.errors import LogError
from evband.routes.geo import along, decode_polyline, scaled
from evband.routes.speeds import FASTEST_KMH, OF_LIMIT, road_speed
from evband.routes.way import Way, from_speeds

Array = NDArray[np.float64]

NOTE = f"Valhalla's speeds (those of the limits) are lowered to {OF_LIMIT:.0%}"


def read(data: dict[str, Any], where: str) -> Way:
    """A way from either answer."""
    return read_trace(data, where) if "edges" in data else read_route(data, where)


def read_route(data: dict[str, Any], where: str) -> Way:
    """/route: the length and the mean speed of each manoeuvre, elevation where `elevation_interval` was asked for."""
    if "error" in data:
        raise LogError(f"{where}: Valhalla found no route ({str(data['error'])[:120]}); check the two points.")
    try:
        trip = data["trip"]
        unit = KM_PER_MILE if str(trip.get("units", "")).startswith("mile") else 1.0
        steps = [(m["length"], m["time"]) for leg in trip["legs"] for m in leg["maneuvers"] if m["length"] > 0]
        metres, seconds = np.array(steps, dtype=float).T
        metres = 1000.0 * unit * metres
        length = 1000.0 * unit * float(trip["summary"]["length"])
        shapes = [decode_polyline(leg["shape"], 6, where) for leg in trip["legs"]]
        lat, lon = (np.concatenate(parts) for parts in zip(*shapes, strict=True))
        height = _heights(trip["legs"], unit)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise LogError(f"{where}: this is not a whole answer of Valhalla's /route; ask again.") from None
    metres = scaled(metres, length, seconds, where)
    speed = OF_LIMIT * 3.6 * metres / np.where(seconds > 0, seconds, np.nan)
    way = Way(where, metres, speed, elevation=height, places=along(lat, lon, length), notes=(NOTE,))
    return from_speeds(way, metres, speed)


def read_trace(data: dict[str, Any], where: str) -> Way:
    """/trace_attributes: the speed of every edge; elevation at the edges' middles where it was asked for."""
    try:
        unit = KM_PER_MILE if str(data.get("units", "")).startswith("mile") else 1.0
        edges = [edge for edge in data["edges"] if edge["length"] > 0]
        metres = 1000.0 * unit * np.array([float(edge["length"]) for edge in edges])
        speed = np.array([_edge_speed(edge, unit) for edge in edges])
        to_m, _ = conversion("elevation_m", "m" if unit == 1.0 else "ft")
        height = np.array([float(edge.get("mean_elevation", np.nan)) for edge in edges])
        lat, lon = decode_polyline(data["shape"], 6, where)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise LogError(f"{where}: this is not a whole answer of Valhalla's /trace_attributes; ask again.") from None
    if not len(metres):
        raise LogError(f"{where}: this answer of Valhalla has no edges; check the shape it was asked about.")
    metres = scaled(metres, float(metres.sum()), np.zeros(1), where)
    middles = (np.cumsum(metres) - metres / 2) / 1000.0
    known = np.isfinite(height) & (height < 30_000)  # 32768: no tile
    elevation = (middles[known], to_m * height[known]) if known.any() else None
    way = Way(where, metres, speed, elevation=elevation, places=along(lat, lon, metres.sum()), notes=(NOTE,))
    return from_speeds(way, metres, speed)


def joined(route: Way, trace: Way) -> Way:
    """The route's length, elevation and shape with the trace's speeds, which are those of edges, not of manoeuvres."""
    scale = route.metres.sum() / trace.metres.sum()
    if abs(scale - 1) > 0.02:
        return route
    return replace(route, metres=trace.metres * scale, speed_kmh=trace.speed_kmh)


def _edge_speed(edge: dict[str, Any], unit: float) -> float:
    speed = edge.get("speed")
    if isinstance(speed, int | float) and 0 < speed * unit <= FASTEST_KMH:
        return OF_LIMIT * float(speed) * unit
    limit = edge.get("speed_limit")
    return road_speed(edge.get("road_class"), limit * unit if isinstance(limit, int | float) else None)


def _heights(legs: list[dict[str, Any]], unit: float) -> tuple[Array, Array] | None:
    """Elevation of all legs, each sampled every `elevation_interval` metres (feet beside miles)."""
    if not all(leg.get("elevation") and leg.get("elevation_interval") for leg in legs):
        return None
    to_m, _ = conversion("elevation_m", "m" if unit == 1.0 else "ft")
    km, height, start = [], [], 0.0
    for leg in legs:
        values = np.array(leg["elevation"], dtype=float) * to_m
        length, step = float(leg["summary"]["length"]) * unit, float(leg["elevation_interval"]) * to_m / 1000.0
        if values.ndim != 1 or not (0 < step < np.inf and 0 < length < np.inf):
            raise ValueError("elevation that is not along the way")
        km.append(start + np.minimum(np.arange(len(values)) * step, length))
        height.append(values)
        start += length
    return np.concatenate(km), np.concatenate(height)
