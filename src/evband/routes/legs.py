"""A route as a table of legs: how long, how fast, how much climb, how many halts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from evband.routes.profile import Route, leg_speeds
from evband.routes.speeds import FASTEST_KMH, SLOWEST_KMH

MOST_LEGS = 20
STEP_KM = 0.05  # of the profile of a drive


@dataclass(frozen=True)
class Leg:
    """A stretch of a route; speed is its mean while moving. Climb and descent are None where elevation is not known."""

    from_km: float
    to_km: float
    speed_kmh: float
    fastest_kmh: float
    climb_m: float | None
    descent_m: float | None
    stops: int
    stopped_s: float


def legs(route: Route) -> list[Leg]:
    """The route in at most `MOST_LEGS` stretches: those of its profile where they are few, else of equal length."""
    km = route.distance_km(route.time_s)
    own = _own_km(route)
    if own is not None and len(own) - 1 <= MOST_LEGS:
        edges = own
    else:
        edges = np.linspace(0.0, km[-1], min(MOST_LEGS, max(int(km[-1]), 1)) + 1)
    return [_leg(route, km, float(a), float(b), i == 0) for i, (a, b) in enumerate(pairwise(edges))]


def _own_km(route: Route) -> np.ndarray | None:
    """Distance of the points of the profile that a route was made of; None where it was not made of one by distance."""
    if route.profile is None or "distance_km" not in route.profile.columns:
        return None
    km = route.profile["distance_km"].cast(pl.Float64).to_numpy()
    return np.asarray(km - km[0])


def _moving(route: Route, km: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(seconds from instant to instant, whether the car stands; at these places its speed, seconds of motion up to there).

    Speed is straight over time, so its square is straight over distance."""
    step, still = np.diff(route.time_s), np.diff(km) < 1e-9
    time = np.concatenate([[0.0], np.cumsum(np.where(still, 0.0, step))])
    speed = np.sqrt(np.interp(at, km, route.speed_kmh**2))
    i = np.clip(np.searchsorted(km, at, side="right") - 1, 0, len(still) - 1)
    return step, still, speed, time[i] + 7200.0 * (at - km[i]) / np.maximum(route.speed_kmh[i] + speed, 1e-9)


def _leg(route: Route, km: np.ndarray, start: float, end: float, first: bool) -> Leg:
    """Halts at its end belong to a leg; those at the very start to the first."""
    step, still, ends, time = _moving(route, km, np.array([start, end]))
    after = km[:-1] >= start - 1e-9 if first else km[:-1] > start + 1e-9
    halts = step[still & (step > 0) & after & (km[:-1] <= end + 1e-9)]
    seconds = float(time[1] - time[0])
    inside = (km >= start - 1e-9) & (km <= end + 1e-9)
    climb = descent = None
    if "elevation_m" in route.along:
        at, height = route.along["elevation_m"]
        within = at[(at > start) & (at < end)]
        rise = np.diff(np.interp(np.concatenate([[start], within, [end]]), at, height))
        climb, descent = float(rise[rise > 0].sum()), float(np.abs(rise[rise < 0]).sum())
    mean = 3600.0 * (end - start) / seconds if seconds > 0 else 0.0
    fastest = float(max(mean, *ends, *route.speed_kmh[inside]))
    return Leg(start, end, mean, fastest, climb, descent, len(halts), float(halts.sum()))


def summary(route: Route) -> dict[str, Any]:
    """What `evband route --json` shows."""
    stretches = legs(route)
    known = [leg for leg in stretches if leg.climb_m is not None and leg.descent_m is not None]
    return {
        "name": route.name,
        "distance_km": float(route.distance_km(route.time_s[-1:])[0]),
        "duration_s": float(route.time_s[-1]),
        "climb_m": sum(leg.climb_m or 0.0 for leg in known) if known else None,
        "descent_m": sum(leg.descent_m or 0.0 for leg in known) if known else None,
        "stops": sum(leg.stops for leg in stretches),
        "stopped_s": sum(leg.stopped_s for leg in stretches),
        "legs": [asdict(leg) for leg in stretches],
        "notes": list(route.notes),
    }


def profile_of(route: Route) -> pl.DataFrame:
    """The route as a profile by distance, which `read_route` reads again: its own legs and, in between, its elevation."""
    km = route.distance_km(route.time_s)
    table, own = route.profile, _own_km(route)
    if table is not None and own is not None:
        at = own
        speed = table["speed_kmh"].cast(pl.Float64).to_numpy()
        stops = table["stop_s"].fill_null(0.0).cast(pl.Float64).to_numpy() if "stop_s" in table.columns else np.zeros(len(at))  # fmt: skip
    else:
        at, speed, stops = _driven(route, km)
    fine = at
    if "elevation_m" in route.along and len(route.along["elevation_m"][0]) > 1:
        places = route.along["elevation_m"][0]
        fine = np.unique(np.round(np.concatenate([at, places[(places > 0) & (places < at[-1])]]), 6))
    holds = np.clip(np.searchsorted(at, fine + 1e-7, side="right") - 1, 0, len(at) - 1)
    halt = np.zeros(len(fine))
    halt[np.searchsorted(fine, at - 1e-6)] = stops
    moving = np.append(leg_speeds(speed), speed[-1])
    columns = {"distance_km": fine, "speed_kmh": moving[holds]}
    standing = np.searchsorted(fine, at[speed == 0] - 1e-6)
    columns["speed_kmh"][standing] = 0.0
    columns |= {name: np.interp(fine, where, value) for name, (where, value) in route.along.items()}
    if halt.any():
        columns["stop_s"] = halt
    return pl.DataFrame(columns)


def _driven(route: Route, km: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean moving speed and halts of a drive every `STEP_KM`."""
    points = int(np.clip(km[-1] / STEP_KM, 1, 100_000)) + 1
    at = np.linspace(0.0, km[-1], points)
    step, still, _, time = _moving(route, km, at)
    speed = np.clip(3600.0 * np.diff(at) / np.maximum(np.diff(time), 1e-9), SLOWEST_KMH, FASTEST_KMH)
    halts = np.bincount(np.clip(np.searchsorted(at, km[:-1][still] - 1e-9), 0, points - 1), step[still], points)
    return at, np.append(speed, speed[-1]), halts
