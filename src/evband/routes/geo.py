"""Points on the earth: distance along them, and the polylines in which routers pack them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evband.errors import LogError

Array = NDArray[np.float64]

EARTH_M = 6_371_008.8  # mean radius
FARTHEST_M = 1e9  # of a sum of pieces; a route's own limit is far below


def on_earth(lat: Array | float, lon: Array | float) -> NDArray[np.bool_]:
    """Whether there is such a point."""
    return np.asarray((np.abs(lat) <= 90.0) & (np.abs(lon) <= 180.0))


def check_coordinates(lat: Array, lon: Array, where: str) -> None:
    """A LogError for the first point that is not on the earth, with a hint where the two are swapped."""
    bad = ~on_earth(lat, lon)
    if bad.any():
        i = int(np.argmax(bad))
        hint = "latitude and longitude are swapped" if on_earth(lon[i], lat[i]) else "correct it"
        raise LogError(
            f"{where}: point {i + 1} is at latitude {lat[i]:g}, longitude {lon[i]:g}, which cannot be; {hint}."
        )


def step_metres(lat: Array, lon: Array) -> Array:
    """Great-circle distance between neighbours, [points - 1], by the haversine formula."""
    a, b = np.radians(lat), np.radians(lon)
    h = np.sin(np.diff(a) / 2) ** 2 + np.cos(a[1:]) * np.cos(a[:-1]) * np.sin(np.diff(b) / 2) ** 2
    return np.asarray(2 * EARTH_M * np.arcsin(np.sqrt(np.clip(h, 0.0, 1.0))))


def metres_between(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Great-circle distance between two (lat, lon)."""
    return float(step_metres(np.array([a[0], b[0]]), np.array([a[1], b[1]]))[0])


def scaled(metres: Array, length: float, seconds: Array, where: str) -> Array:
    """A router's pieces, brought to what it calls the route's length; an error where it is not a way."""
    total = float(metres.sum()) if len(metres) else 0.0
    fine = metres.ndim == 1 and (
        np.isfinite(metres).all() and np.isfinite(seconds).all() and 0 < total < FARTHEST_M and 0 < length < FARTHEST_M
    )
    if not fine or min(metres.min(), seconds.min()) < 0:
        raise LogError(f"{where}: this answer of a router leads nowhere; check the two points.")
    return np.asarray(metres * (length / total))


def along(lat: Array, lon: Array, length_m: float) -> tuple[Array, Array, Array] | None:
    """(km, lat, lon) of a shape whose length is known better than its points tell; None where it is a single place."""
    if len(lat) < 2 or not (np.isfinite(lat).all() and np.isfinite(lon).all()):
        return None
    km = np.concatenate([[0.0], np.cumsum(step_metres(lat, lon))]) / 1000.0
    return (km * (length_m / 1000.0 / km[-1]), lat, lon) if km[-1] > 0 else None


def decode_polyline(text: str, digits: int, where: str) -> tuple[Array, Array]:
    """(lat, lon) of an encoded polyline: differences in base 32, zigzag signs, `digits` decimals (OSRM 5, Valhalla 6)."""
    wrong = LogError(f"{where}: its shape is not an encoded polyline; ask the router again.")
    if not isinstance(text, str):
        raise wrong
    codes = np.frombuffer(text.encode("latin-1", "replace"), dtype=np.uint8).astype(np.int64) - 63
    if len(codes) == 0 or codes.min() < 0 or codes.max() > 63 or codes[-1] >= 32:
        raise wrong
    last = codes < 32  # the last five bits of a number
    start = np.flatnonzero(np.append(True, last[:-1]))
    length = np.diff(np.append(start, len(codes)))
    if len(start) % 2 or length.max() > 7:
        raise wrong
    place = np.arange(len(codes)) - np.repeat(start, length)
    value = np.add.reduceat((codes & 31) << (5 * place), start)
    signed = np.where(value & 1, ~(value >> 1), value >> 1)
    lat, lon = np.cumsum(signed[::2]), np.cumsum(signed[1::2])
    return lat / 10.0**digits, lon / 10.0**digits
