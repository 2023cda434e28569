"""OSRM's answer to /route: speeds from `annotations=true`, else from its steps; it has no elevation.

Durations come in tenths of a second and turns are counted apart from the road, so pieces are joined to at least 50 m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import LogError
from evband.routes.geo import decode_polyline, step_metres
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
        metres = np.concatenate([piece[0] for piece in pieces])
        seconds = np.concatenate([piece[1] for piece in pieces])
        length = float(route["distance"])
    except (KeyError, IndexError, TypeError, ValueError):
        raise LogError(
            f"{where}: this answer of OSRM has neither annotations nor steps; ask with annotations=true."
        ) from None
    if (
        not np.isfinite(metres).all()
        or not np.isfinite(seconds).all()
        or min(metres.min(), seconds.min()) < 0
        or not min(metres.sum(), length) > 0
    ):
        raise LogError(f"{where}: this answer of OSRM leads nowhere; check the two points.")
    metres = metres * (length / metres.sum())  # what the engine itself calls the route's length
    speed = 3.6 * metres / np.where(seconds > 0, seconds, np.nan)
    speed = np.where(np.isfinite(speed), speed, np.nanmedian(speed) if np.isfinite(speed).any() else np.nan)
    speed = speed * (OF_LIMIT / SPEED_REDUCTION)
    note = f"OSRM's speeds ({SPEED_REDUCTION:.0%} of a limit) are raised to {OF_LIMIT:.0%} of it"
    way = Way(where, metres, speed, places=_places(route, metres, where), notes=(note,))
    return from_speeds(way, metres, speed, ROUNDING_S)


def _leg(leg: dict[str, Any]) -> tuple[Array, Array]:
    """(metres, seconds) of a leg's pieces."""
    notes = leg.get("annotation") or {}
    if notes.get("distance") and notes.get("duration"):
        return np.array(notes["distance"], dtype=float), np.array(notes["duration"], dtype=float)
    steps = [(float(s["distance"]), float(s["duration"])) for s in leg["steps"] if s["distance"] > 0]
    metres, seconds = np.array(steps).T
    return metres, seconds


def _places(route: dict[str, Any], metres: Array, where: str) -> tuple[Array, Array, Array] | None:
    """Where the points of the geometry lie along the way."""
    geometry = route.get("geometry")
    if isinstance(geometry, dict):
        points = np.array(geometry.get("coordinates", []), dtype=float)
        lat, lon = (points[:, 1], points[:, 0]) if points.ndim == 2 and len(points) > 1 else (np.empty(0), np.empty(0))
    elif isinstance(geometry, str) and geometry:
        lat, lon = decode_polyline(geometry, 5, where)
        if np.abs(lat).max() > 90:
            lat, lon = lat / 10.0, lon / 10.0  # geometries=polyline6
    else:
        return None
    if len(lat) < 2:
        return None
    km = np.concatenate([[0.0], np.cumsum(step_metres(lat, lon))]) / 1000.0
    return (km * (metres.sum() / 1000.0 / km[-1]), lat, lon) if km[-1] > 0 else None
