"""OSRM's answer to /route: speeds from `annotations=true`, else from its steps; it has no elevation.

Durations come in tenths of a second and turns are counted apart from the road, so pieces are joined to at least 50 m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import LogError
from evband.routes.geo import along, decode_polyline, scaled
from evband.routes.speeds import OF_LIMIT
from evband.routes.way import Way, from_speeds

Array = NDArray[np.float64]

ROUNDING_S = 0.05  # of each piece's duration
SPEED_REDUCTION = 0.8  # of its standard car profile: every road at this share of its limit, for turns and traffic


def read(data: dict[str, Any], where: str) -> Way:
    """The first route of an answer."""
    if data.get("code") != "Ok":
        why = data.get("message") or data.get("code") or "no code"
        raise LogError(f"{where}: OSRM found no route ({str(why)[:120]}); check the two points.")
    try:
        route = data["routes"][0]
        pieces = [_leg(leg) for leg in route["legs"]]
        metres, seconds = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
        length = float(route["distance"])
        points = _points(route, where)
    except (LookupError, TypeError, ValueError, AttributeError):
        raise LogError(
            f"{where}: this answer of OSRM has neither annotations nor steps; ask with annotations=true."
        ) from None
    metres = scaled(metres, length, seconds, where)
    speed = 3.6 * metres / np.where(seconds > 0, seconds, np.nan)
    speed = np.where(np.isfinite(speed), speed, np.nanmedian(speed) if np.isfinite(speed).any() else np.nan)
    speed = speed * (OF_LIMIT / SPEED_REDUCTION)
    note = f"OSRM's speeds ({SPEED_REDUCTION:.0%} of a limit) are raised to {OF_LIMIT:.0%} of it"
    way = Way(where, metres, speed, places=along(*points, metres.sum()) if points else None, notes=(note,))
    return from_speeds(way, metres, speed, ROUNDING_S)


def _leg(leg: dict[str, Any]) -> tuple[Array, Array]:
    """(metres, seconds) of a leg's pieces."""
    notes = leg.get("annotation") or {}
    if notes.get("distance") and notes.get("duration"):
        metres, seconds = np.array([notes["distance"], notes["duration"]], dtype=float)
        return metres, seconds
    steps = [(float(s["distance"]), float(s["duration"])) for s in leg["steps"] if s["distance"] > 0]
    metres, seconds = np.array(steps).T
    return metres, seconds


def _points(route: dict[str, Any], where: str) -> tuple[Array, Array] | None:
    """(lat, lon) of the geometry."""
    geometry = route.get("geometry")
    if isinstance(geometry, str) and geometry:
        lat, lon = decode_polyline(geometry, 5, where)
        return (lat, lon) if np.abs(lat).max() <= 90 else (lat / 10.0, lon / 10.0)  # geometries=polyline6
    points = np.array(geometry.get("coordinates", []) if isinstance(geometry, dict) else [], dtype=float)
    return (points[:, 1], points[:, 0]) if points.ndim == 2 and points.shape[1] >= 2 else None
