"""Features of many vehicles, one grid step at a time: `evband.features.stream` with vehicles as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.channels import AGE, EDGES
from evband.features import HELD, FeatureMap, road_load

Array = NDArray[np.float64]
Cars = NDArray[np.int64]
_MOMENTS = ("w", "s", "e", "sss", "see")  # of `road_load.Slope`


class FeatureColumns:
    """Feature rows of any of `vehicles` vehicles, equal to a `FeatureStream` for each."""

    def __init__(self, features: FeatureMap, vehicles: int, own: Mapping[str, Array] | None = None) -> None:
        self._map, self.vehicles = features, vehicles
        self._own = own or {}  # signals that stay: numbers of each vehicle's data sheet (`wheel.OWN`)
        self._state: dict[str, Array] = {
            name: np.full(vehicles, np.nan)
            for name in ("last_speed", "last_end", *(f"held_{c}" for c in features.channels if c in HELD))
        }
        self._state |= {name: np.zeros(vehicles) for name in ("ticks", *_MOMENTS)}

    def reset(self, cars: Cars) -> None:
        """Begin a drive of these vehicles."""
        for name, column in self._state.items():
            if name.startswith("held_"):
                column[cars] = np.nan
        self._state["ticks"][cars] = 0.0
        self.gap(cars)

    def gap(self, cars: Cars) -> None:
        """Go on after a gap: the road in between was not seen, weather and time under way stay."""
        for name in _MOMENTS:
            self._state[name][cars] = 0.0
        self._state["last_speed"][cars] = np.nan
        self._state["last_end"][cars] = np.nan

    def tick(
        self, cars: Cars, values: Mapping[str, Array]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_]]:
        """(x [n, F], r [n, K], outside [n]) of the next grid step of `cars`, each once; NaN or no column = unknown."""
        nothing = np.full(len(cars), np.nan)
        speed = values.get("speed_kmh", nothing)
        signals = {c: self._signal(c, cars, values.get(c, nothing), speed) for c in self._map.channels}
        if self._map.edges:
            signals |= self._edges(cars, values, speed)
        if self._map.fade:
            signals[road_load.FADE] = road_load.fades(self._state["ticks"][cars], self._map.hz)
        if self._map.ages:
            signals[AGE] = road_load.staleness(np.nan_to_num(values.get(AGE, nothing)))
        signals |= {name: column[cars] for name, column in self._own.items()}
        self._state["ticks"][cars] += 1.0
        self._state["last_speed"][cars] = speed
        x, r, which = self._map.arrays(signals)
        return x, r, np.any(which, axis=1)

    def _signal(self, channel: str, cars: Cars, value: Array, speed: Array) -> Array:
        if channel == "elevation_m":
            return self._slope(cars, value, np.nan_to_num(speed) / 3.6 / self._map.hz)
        if channel == "acceleration_ms2":
            before = self._state["last_speed"][cars]
            change = (speed - np.where(np.isnan(before), speed, before)) / 3.6 * self._map.hz
            return np.where(np.isnan(value), change, value)
        if channel in HELD:
            held = self._state[f"held_{channel}"]
            held[cars] = np.where(np.isnan(value), held[cars], value)
            return held[cars]
        return value

    def _edges(self, cars: Cars, values: Mapping[str, Array], speed: Array) -> dict[str, Array]:
        start, end = (values.get(name, np.full(len(cars), np.nan)) for name in EDGES)
        end = np.where(np.isnan(end), speed, end)
        before = self._state["last_end"][cars]
        start = np.where(np.isnan(start), np.where(np.isnan(before), end, before), start)
        self._state["last_end"][cars] = end
        return road_load.edge_signals(start, end, self._map.hz)

    def _slope(self, cars: Cars, elevation: Array, moved: Array) -> Array:
        """`road_load.Slope.update` of every vehicle."""
        w, s, e, sss, see = (self._state[name][cars] for name in _MOMENTS)
        known, fresh, moving = ~np.isnan(elevation), w == 0.0, moved > 0.0
        s = s - moved
        fade = np.where(moving & ~fresh, np.exp(-moved / road_load.GRADE_LENGTH_M), 1.0)
        w, sss, see = w * fade, sss * fade, see * fade
        adds = known & moving & ~fresh
        height = np.where(known, elevation, 0.0)
        share = np.where(adds, moved / np.where(adds, w + moved, 1.0), 0.0)
        ds, de = -s, height - e
        sss, see = sss + w * share * ds * ds, see + w * share * ds * de
        s, e, w = s + share * ds, e + share * de, np.where(adds, w + moved, w)
        first = fresh & known
        w, s, e = np.where(first, 1.0, w), np.where(first, 0.0, s), np.where(first, height, e)
        for name, column in zip(_MOMENTS, (w, s, e, sss, see), strict=True):
            self._state[name][cars] = column
        some = (w > 0.0) & ~fresh
        grade: Array = np.where(some, see / np.where(some, sss + road_load.GRADE_PRIOR_M2 * w, 1.0), 0.0)
        return grade

    def to_dict(self, car: int) -> dict[str, Any]:
        """One vehicle's memory, JSON-able (NaN as null)."""
        return {
            name: None if column[car] != column[car] else float(column[car]) for name, column in self._state.items()
        }

    def restore(self, car: int, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave."""
        values = {name: np.nan if saved[name] is None else float(saved[name]) for name in self._state}
        for name, value in values.items():
            self._state[name][car] = value
