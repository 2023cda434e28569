"""OSRM's answer to /route: speeds from `annotations=true`, else from its steps; it has no elevation.

Durations come in tenths of a second and turns are counted apart from the road, so pieces are joined to at least 50 m.

Its standard car profile drives a limit at 80 % of it, and a road without one at the speed of its class, which is not reduced. An answer
does not say which it was, but pieces in a row at one speed tell it to a tenth of a km/h: 55 is a class, 56 is 80 % of 70.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.channels import KM_PER_MILE
from evband.errors import LogError
from evband.routes.geo import along, decode_polyline, scaled
from evband.routes.speeds import OF_LIMIT
from evband.routes.way import Way, from_speeds

Array = NDArray[np.float64]

ROUNDING_S = 0.05  # of each piece's duration
SPEED_REDUCTION = 0.8  # of its standard car profile: a road at this share of its limit, for turns and traffic
OF_CLASSES_KMH = np.array([10, 15, 20, 25, 30, 40, 45, 55, 65, 85, 90], float)  # of roads without a limit
OF_LIMITS_KMH = SPEED_REDUCTION * np.append(np.arange(10, 140, 10), KM_PER_MILE * np.arange(5, 85, 5))
EXACT_KMH = 0.1


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
    speed = speed * np.where(_by_class(metres, seconds), 1.0, OF_LIMIT / SPEED_REDUCTION)
    note = f"OSRM's speeds ({SPEED_REDUCTION:.0%} of a limit) are raised to {OF_LIMIT:.0%} of it"
    way = Way(where, metres, speed, places=along(*points, metres.sum()) if points else None, notes=(note,))
    return from_speeds(way, metres, speed, ROUNDING_S)


def _by_class(metres: Array, seconds: Array) -> NDArray[np.bool_]:
    """Which pieces have the speed of a class and of no limit; pieces that may have one speed, given their rounding, share it."""
    with np.errstate(divide="ignore"):
        least = (3.6 * metres / (seconds + ROUNDING_S)).tolist()
        most = (3.6 * metres / np.maximum(seconds - ROUNDING_S, 0.0)).tolist()
    found, begin, low, high = np.zeros(len(metres), bool), 0, 0.0, np.inf

    def is_class() -> bool:
        of_class, of_limit = (np.any((v >= low - EXACT_KMH) & (v <= high + EXACT_KMH)) for v in (OF_CLASSES_KMH, OF_LIMITS_KMH))  # fmt: skip
        return bool(of_class and not of_limit)

    for i in range(len(metres)):
        if least[i] > high or most[i] < low:
            found[begin:i], begin, low, high = is_class(), i, 0.0, np.inf
        low, high = max(low, least[i]), min(high, most[i])
    found[begin:] = is_class()
    return found


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
