"""Range and arrival of live cars: the way ahead of each, planned once in the background and looked at every ten seconds.

A car without a route is taken to drive a mix of town, country and motorway at the temperature it reports; all cars of a
model that feel the same weather share that way, so that ten thousand ranges are one array operation.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.energy import Ahead, SoFar, plan
from evband.energy.ahead import FARTHEST_KM
from evband.energy.range import LEVELS
from evband.errors import EvbandError, SettingsError
from evband.routes import Route, read_route

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]
POINTS, ROUTE_POINTS = 150, 400  # of the shared way, and of a route: a range needs no finer ones
FAN_POINTS = 120
WEATHER_STEP_C = 5.0  # temperatures nearer than this share a way
LARGEST_KWH = 150.0  # the shared way reaches as far as this battery
MIX = (
    (0.0, 0.0), (0.3, 30.0), (4.0, 50.0), (10.0, 80.0), (24.0, 110.0), (36.0, 80.0), (44.0, 50.0), (49.0, 30.0), (50.0, 0.0),
)  # fmt: skip
"""Distance in km and the speed driven from there on: a fifth in town, half on country roads, the rest on a motorway."""


@dataclass(frozen=True, eq=False)
class Way:
    """A planned way; `end_km` is where its route ends."""

    ahead: Ahead
    end_km: float
    notes: tuple[str, ...] = ()


def weather(ambient_c: Any) -> Any:
    """The temperature for which a shared way is planned, of each of these."""
    return np.round(ambient_c / WEATHER_STEP_C) * WEATHER_STEP_C


def typical_route() -> pl.DataFrame:
    km, speed = zip(*MIX, strict=True)
    return pl.DataFrame({"distance_km": list(km), "speed_kmh": list(speed)})


def plan_way(model: PowerModel, route: Any, ambient_c: float | None, capacity_kwh: float, points: int) -> Way:
    """Plan with what the route lacks filled in: flat road, the temperature that the car feels."""
    way: Route = read_route(route)
    notes: tuple[str, ...] = ()
    for i, channel in enumerate(model.feature_map_.channels):
        if channel in way.channels:
            continue
        if channel == "elevation_m":
            way, notes = way.with_everywhere(channel, 0.0), (*notes, "the road is taken as flat")
        elif channel == "ambient_temp_c":
            felt = float(model.feature_map_.typical[i]) if ambient_c is None else ambient_c
            way = way.with_everywhere(channel, felt)
        elif channel == "wind_ms":
            way = way.with_everywhere(channel, 0.0)
    found = plan(model, 100.0, capacity_kwh, way, 0.0)
    return Way(thinned(found.way, points), found.route_km, (*notes, *found.notes))


def thinned(way: Ahead, most: int) -> Ahead:
    """About `most` points of a way."""
    step = max(1, len(way.km) // most)
    at = np.unique(np.append(np.arange(step - 1, len(way.km), step), len(way.km) - 1))
    return way.at(at)


def reaches(way: Ahead, battery_kwh: Array, past: SoFar) -> Array:
    """[cars, levels] km until each battery is empty; `past` holds columns [cars, 1]."""
    chance = way.chances(battery_kwh[:, None], past)
    km, levels = np.append(0.0, np.minimum(way.km, FARTHEST_KM)), -np.array([1.0 - p for p in LEVELS.values()])
    out = np.empty((len(battery_kwh), len(levels)))
    for i, row in enumerate(chance):
        out[i] = np.interp(levels, -np.append(1.0, row), km)
    return np.where(battery_kwh[:, None] > 0.0, out, 0.0)


def chance_at(way: Ahead, km: float, battery_kwh: float, past: SoFar) -> float:
    """P(the battery lasts for the next `km`)."""
    if km <= 0.0:
        return 1.0
    if battery_kwh <= 0.0:
        return 0.0
    chance = np.append(1.0, way.chances(battery_kwh, past))
    return float(np.interp(km, np.append(0.0, way.km), chance))


def charges(way: Ahead, soc: float, capacity_kwh: float, past: SoFar) -> dict[str, Array]:
    """Charge in percent at every point of a way, at three levels."""
    return {name: soc - 100.0 * way.quantiles(past, 1.0 - p) / capacity_kwh for name, p in LEVELS.items()}


def fan(way: Ahead, soc: float, capacity_kwh: float, past: SoFar, to_km: float) -> dict[str, list[float]]:
    """Charge along the way at three levels, for a picture."""
    km = way.km[way.km <= to_km]
    at = np.unique(np.linspace(0, max(len(km) - 1, 0), min(FAN_POINTS, max(len(km), 1))).astype(int))
    lines = {"km": way.km} | charges(way, soc, capacity_kwh, past)
    start = {"km": 0.0}
    return {name: np.round(np.append(start.get(name, soc), line[at]), 2).tolist() for name, line in lines.items()}


class Ways:
    """The ways of one model's cars: a shared one per weather, and those of cars that have a route."""

    def __init__(self, model: PowerModel, pool: Executor) -> None:
        self.model, self.pool = model, pool
        self._shared: dict[float | None, Way | Future[Way]] = {}
        self.problem: str | None = (
            None if model.energy_ is not None else "the model has no energy calibration, so it knows no range"
        )

    def shared(self, ambient_c: float) -> Way | None:
        """The way of a car without a route at this temperature (NaN: unknown); None until it is planned."""
        if self.problem is not None:
            return None
        key = None if ambient_c != ambient_c else float(weather(ambient_c))
        if key not in self._shared:
            self._shared[key] = self.pool.submit(plan_way, self.model, typical_route(), key, LARGEST_KWH, POINTS)
        return self._finished(key)

    def _finished(self, key: float | None) -> Way | None:
        found = self._shared[key]
        if isinstance(found, Future):
            if not found.done():
                return None
            try:
                found = self._shared[key] = found.result()
            except EvbandError as problem:
                self.problem = str(problem)
                return None
        return found

    def plan(self, route: Any, ambient_c: float | None, capacity_kwh: float) -> Way:
        """A route, planned; slow, so not for the engine's thread."""
        if self.model.energy_ is None:
            raise SettingsError(str(self.problem))
        return plan_way(self.model, route, ambient_c, capacity_kwh, ROUTE_POINTS)
