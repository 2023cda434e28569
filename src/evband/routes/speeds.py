"""Speeds where a route has none: from the road's class, from its limit, or one typical speed.

| class (OpenStreetMap `highway`) | km/h | | class | km/h |
|---|---|---|---|---|
| motorway | 110 | | tertiary | 50 |
| trunk | 90 | | unclassified | 45 |
| primary | 70 | | residential | 30 |
| secondary | 60 | | service, track, living_street | 15 |

A limit is driven at nine tenths of it; links (`motorway_link`) at 60 % of their class; without either, `TYPICAL_KMH`.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from evband.channels import CHANNELS, KM_PER_MILE

Array = NDArray[np.float64]

BY_CLASS = {
    "motorway": 110.0, "trunk": 90.0, "primary": 70.0, "secondary": 60.0, "tertiary": 50.0, "unclassified": 45.0,
    "residential": 30.0, "service": 15.0, "service_other": 15.0, "track": 15.0, "living_street": 15.0,
}  # fmt: skip
OF_LIMIT = 0.9
OF_CLASS_ON_LINKS = 0.6
TYPICAL_KMH = 60.0
LEAST_M = 50.0  # shorter pieces are joined: a router's times come in tenths of a second
FASTEST_KMH = CHANNELS["speed_kmh"].high
SLOWEST_KMH = 3.0  # what a router's slower answers are driven at (a gate, a yard)


def road_speed(road_class: object, limit: object) -> float:
    """km/h from an OpenStreetMap class and a limit as tagged ("50", "30 mph", "none"); NaN where neither says."""
    of_limit = _limit_kmh(limit)
    if np.isfinite(of_limit):
        return OF_LIMIT * of_limit
    name = road_class.strip().lower() if isinstance(road_class, str) else ""
    if name.endswith("_link"):
        return OF_CLASS_ON_LINKS * BY_CLASS.get(name.removesuffix("_link"), float("nan"))
    return BY_CLASS.get(name, float("nan"))


def _limit_kmh(limit: object) -> float:
    if isinstance(limit, int | float) and not isinstance(limit, bool):
        return float(limit) if 5 <= limit <= 200 else float("nan")
    match = re.fullmatch(r"\s*(\d{1,3})\s*(mph|km/h|kmh)?\s*", limit) if isinstance(limit, str) else None
    if match is None:
        return float("nan")
    kmh = float(match[1]) * (KM_PER_MILE if match[2] == "mph" else 1.0)
    return kmh if 5 <= kmh <= 200 else float("nan")


def joined(metres: Array, seconds: Array, least_m: float = LEAST_M, rounding_s: float = 0.0) -> tuple[Array, Array]:
    """(metres, seconds) of pieces of at least `least_m`, neighbours joined; a short rest joins the last one.

    Where each time is rounded by up to `rounding_s`, pieces grow until that is at most a tenth of their time.
    """
    total = np.concatenate([[0.0], np.cumsum(metres)])
    time = np.concatenate([[0.0], np.cumsum(seconds)])
    edges, at, pieces = [0], 0, len(metres)
    while total[-1] - total[at] >= 2 * least_m:
        start = at
        at = int(np.searchsorted(total, total[start] + least_m - 1e-9))
        while at < pieces and (at - start) * rounding_s > 0.1 * (time[at] - time[start]):
            at += 1
        edges.append(at)
    if edges[-1] < pieces and len(edges) > 1 and total[-1] - total[edges[-1]] < least_m:
        edges[-1] = pieces
    elif edges[-1] < pieces:
        edges.append(pieces)
    cut = np.array(edges)
    return np.diff(total[cut]), np.diff(time[cut])
