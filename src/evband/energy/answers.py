"""Answers people act on: how fast one may drive to arrive, and why the rest of a drive takes what it takes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.energy.joining import driven_trip, way_ahead
from evband.energy.range import SURE, Range, plan
from evband.features.names import CABIN
from evband.routes import Route

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]
SLOWEST_KMH = 40.0  # slower than this is no advice
MOST_TRIES = 12  # plans
DOUBTFUL = 3.0  # no speed is enough where so many times the gain that the curve promises is not


def speed_to_arrive(given: Range, way: Route, planned: Callable[[Route], Range]) -> float | None:
    """The highest speed limit of one's own, in whole km/h, at which the chance to arrive with the reserve is at least `SURE`.

    The route's fastest speed where it arrives as planned; None where no limit from `SLOWEST_KMH` on is enough. What is spare rises
    as one slows down, and may fall again (a heater draws all the longer). Every try is a plan of the whole route, so few are made:
    each where by a curve through those before it nothing is spare, or most.
    """
    fastest = round(float(np.max(way.speed_kmh)), 3)
    if given.arrival_probability >= SURE:
        return fastest
    speeds = np.arange(SLOWEST_KMH, np.ceil(fastest))
    if given.battery_kwh <= 0.0 or not len(speeds):
        return None
    left = {float(np.ceil(fastest)): given.spare_kwh()}  # of speeds that were tried
    while len(left) < MOST_TRIES:
        kmh = _next_speed(left, speeds)
        if kmh is None:
            break
        left[kmh] = planned(way.at_most(kmh)).spare_kwh()
    return max((kmh for kmh in left if left[kmh] >= 0.0), default=None)


def _next_speed(left: dict[float, float], speeds: Array) -> float | None:
    """The speed to try next, given what is spare at those tried; None where the answer is known."""
    if len(left) == 1:
        return float(speeds[len(speeds) // 2])
    curve = _curve(left, speeds)
    low = max((kmh for kmh in left if left[kmh] >= 0.0), default=-np.inf)
    high = min((kmh for kmh in left if kmh > low and left[kmh] < 0.0), default=np.inf)
    if np.isfinite(low):
        between = (speeds > low) & (speeds < high)
        if not between.any():
            return None
        enough = speeds[between & (curve >= 0.0)]
        return float(enough.max() if len(enough) else low + 1.0)
    slow, fast = sorted(left)[0], sorted(left)[-1]
    if len(left) == 2 and left[slow] < left[fast]:  # the best may lie between
        return float(np.round((slow + fast) / 2.0))
    best = max(left.values())
    if len(left) > 2 and best + DOUBTFUL * (curve.max() - best) < 0.0:
        return None
    fresh = ~np.isin(speeds, list(left))
    enough = speeds[fresh & (curve >= 0.0)]
    return float(enough.max() if len(enough) else speeds[fresh][np.argmax(curve[fresh])]) if fresh.any() else None


def _curve(left: dict[float, float], speeds: Array) -> Array:
    """What is spare at all speeds, by drag (v^2) and what a longer drive takes (1/v), through the three tries nearest to nothing spare, or two."""
    near = np.array(sorted(left, key=lambda kmh: abs(left[kmh]))[:3])
    weights = np.linalg.solve(_terms(near)[:, : len(near)], [left[kmh] for kmh in near])
    return np.asarray(_terms(speeds)[:, : len(near)] @ weights)


def _terms(kmh: Array) -> Array:
    return np.stack([np.ones_like(kmh), kmh**2, 1.0 / kmh], axis=1)


def advice(model: PowerModel, given: Range, route: Any, **options: Any) -> dict[str, float | None]:
    """What to do for a chance of 95 %: stop charging at `soc_for_95`, load `load_kwh_for_95`, or drive at most `kmh_for_95`."""
    driven = driven_trip(model, options.get("so_far"))
    way = way_ahead(route, driven)
    options = options | {"so_far": driven, "reserve_soc": given.reserve_soc, "doubts": given.doubts}

    def planned(slower: Route) -> Range:
        return plan(model, given.soc, given.capacity_kwh, slower, beyond=False, **options)

    return {
        "kmh_for_95": speed_to_arrive(given, way, planned),
        "soc_for_95": given.soc_needed(),
        "load_kwh_for_95": given.to_load_kwh(),
    }


def advice_lines(given: Range, found: dict[str, float | None]) -> list[str]:
    """The same as sentences."""
    kmh, soc, load = (found[name] for name in ("kmh_for_95", "soc_for_95", "load_kwh_for_95"))
    with_reserve = f"with {given.reserve_soc:g} % left"
    if given.arrival_probability >= SURE:
        lines = [f"arrives as planned at 95 % {with_reserve}"]
    elif kmh is not None:
        lines = [f"drive at most {kmh:.0f} km/h to arrive at 95 % {with_reserve}"]
    else:
        lines = [f"no speed from {SLOWEST_KMH:.0f} km/h on makes the arrival {with_reserve} 95 % sure"]
    whole = 100 if soc is None else min(100, math.ceil(soc - 1e-6))  # a little less would not do
    if soc is None:
        lines.append(f"not even a full battery makes the arrival {with_reserve} 95 % sure; plan a charge on the way")
    elif load:
        choice = "" if kmh is None else "or "
        lines.append(f"{choice}charge to {whole:d} % before departure ({load:.1f} kWh more) and drive as planned")
    else:
        lines.append(f"{whole:d} % of charge at departure would do")
    return lines


def in_percent(chance: float, digits: int = 1) -> str:
    """A chance as people read it: never quite 0 or 100 %.

    >>> in_percent(0.99997), in_percent(0.5), in_percent(0.001, 0)
    ('>99.9%', '50.0%', '<1%')
    """
    least = 10.0 ** -(2 + digits)
    if least <= chance <= 1.0 - least:
        return f"{chance:.{digits}%}"
    return f"<{least:.{digits}%}" if chance < least else f">{1.0 - least:.{digits}%}"


def shares_line(given: Range) -> str:
    """The sources of doubt, the largest first."""
    names = {
        "trip": "what no input tells", "model": "the model itself", "plan": "planned is not driven", "cabin": "heater and air conditioning",
        "weather": "temperature", "wind": "wind", "load": "load", "stops": "stops", "charge": "state of charge", "capacity": "capacity",
    }  # fmt: skip
    shares = sorted(given.shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{names.get(name, name)} {share:.0%}" for name, share in shares)


def changes(
    model: PowerModel, given: Range, route: Any, so_far: Any, ambient_c: float | None = None
) -> dict[str, float]:
    """Why the rest differs from going on as so far, in kWh over the route: slope, temperature, cabin, measured errors, speed.

    `slope`: against the same way on the level. `temperature`: against the same way in the weather of the drive so far.
    `cabin`: against the mean draw so far.
    `measured`: what the power measured so far adds to the rest (auxiliaries, load, wind: what no input tells). `speed`: what is
    left, against the consumption per km so far.
    """
    driven = driven_trip(model, so_far)
    assert driven is not None
    way = way_ahead(route, driven, ambient_c)

    def median(other: Route) -> float:
        asked = plan(
            model, given.soc, given.capacity_kwh, other, given.reserve_soc, driven, doubts=given.doubts, beyond=False
        )
        return asked.energy_kwh(0.5)

    rest = given.energy_kwh(0.5)
    found = {}
    if "elevation_m" in model.feature_map_.channels and "elevation_m" in way.channels:
        found["slope"] = rest - median(way.with_everywhere("elevation_m", 0.0))
    if "ambient_temp_c" in model.feature_map_.channels and driven.has("ambient_temp_c"):
        felt = float(np.nanmean(driven.column("ambient_temp_c")))
        found["temperature"] = rest - median(way.with_everywhere("ambient_temp_c", felt))
    if CABIN in model.feature_map_.channels and driven.has(CABIN):
        drawn = float(np.nanmean(driven.column(CABIN)))
        found["cabin"] = rest - median(way.with_everywhere(CABIN, drawn))
    shift, _ = given.past.ahead(given.route.seconds[-1:], given.route.size[-1:] / given.route.seconds[-1:])
    found["measured"] = float((shift[0] - given.past.errors.bias) * given.route.seconds[-1] / 3600.0)
    if driven.has("power_kw") and driven.distance_km > 0 and driven.hz:
        kwh = float(np.nanmean(driven.column("power_kw"))) * len(driven) / driven.hz / 3600.0
        as_so_far = kwh / driven.distance_km * given.route_km
        found["speed"] = rest - as_so_far - sum(found.values())
    return found
