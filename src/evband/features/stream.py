"""Features tick by tick: what `FeatureMap.transform` makes of a whole trip, with a small memory of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evband.channels import AGE, EDGES
from evband.features import HELD, FeatureMap, road_load


class FeatureStream:
    """Feature rows one tick at a time, equal to `FeatureMap.transform` of the whole trip."""

    def __init__(self, features: FeatureMap) -> None:
        self._map = features
        self._slope = road_load.Slope()
        self.reset()

    def reset(self) -> None:
        """Begin a trip."""
        self._held: dict[str, float] = {}
        self._ticks = 0
        self._seen = False  # an elevation
        self.gap()

    def gap(self) -> None:
        """Go on after a gap: the road in between was not seen, weather and time under way stay."""
        self._slope.reset()
        self._last_speed: float | None = None
        self._last_end: float | None = None

    def tick(self, values: Mapping[str, float | None]) -> tuple[np.ndarray, np.ndarray, bool]:
        """(x [F], r [K], outside) at the next grid step; acceleration, if not given, is the change of speed.

        `speed_start_kmh` and `speed_end_kmh` of the grid may be among the values; else the speed stands for them, as
        it does in a log whose readings fall on the grid.
        """
        signals, outside = {}, False
        speed = values.get("speed_kmh")
        for i, c in enumerate(self._map.channels):
            value = self._value(c, values, speed)
            if value is None and c in self._map.optional:
                value = float("nan")
            elif value is None or not self._map.low[i] <= value <= self._map.high[i]:
                outside = True
            signals[c] = float(self._map.typical[i]) if value is None else value
            if c in HELD:
                low, high = self._map.weather_limits(i)
                signals[c] = min(max(signals[c], low), high)
        if self._map.edges:
            end = _given(values, EDGES[1], speed)
            before = end if self._last_end is None else self._last_end
            start = _given(values, EDGES[0], before)
            self._last_end = end
            if start is not None and end is not None:
                signals |= road_load.edge_signals(start, end, self._map.hz)
        if self._map.fade:
            signals[road_load.FADE] = float(road_load.fades(float(self._ticks), self._map.hz))
        if self._map.ages:
            signals[AGE] = float(road_load.staleness(_given(values, AGE, 0.0) or 0.0))
        self._ticks += 1
        self._last_speed = speed
        x, r = self._map._rows(signals)
        return x.astype(np.float32), r.astype(np.float32), outside

    def to_dict(self) -> dict[str, Any]:
        """Its memory, JSON-able."""
        slope = {name: getattr(self._slope, name) for name in self._slope.__slots__}
        last = {"last_speed": self._last_speed, "last_end": self._last_end}
        return {"held": self._held, "ticks": self._ticks, "seen": self._seen, **last, "slope": slope}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave."""
        self._held = {str(k): float(v) for k, v in saved["held"].items()}
        self._ticks = int(saved["ticks"])
        self._seen = bool(saved.get("seen", False))
        self._last_speed, self._last_end = saved["last_speed"], saved["last_end"]
        for name in self._slope.__slots__:
            setattr(self._slope, name, float(saved["slope"][name]))

    def _value(self, channel: str, values: Mapping[str, float | None], speed: float | None) -> float | None:
        value = values.get(channel)
        if value is not None and value != value:
            value = None
        if channel == "elevation_m":
            moved = (speed or 0.0) / 3.6 / self._map.hz
            grade = self._slope.update(float("nan") if value is None else value, moved)
            self._seen |= value is not None
            return grade if self._seen or channel not in self._map.optional else None
        if channel == "acceleration_ms2" and value is None and speed is not None:
            before = speed if self._last_speed is None else self._last_speed
            return (speed - before) / 3.6 * self._map.hz
        if channel in HELD:
            value = self._held.get(channel) if value is None else value
            if value is not None:
                self._held[channel] = value
        return None if value is None else float(value)


def _given(values: Mapping[str, float | None], name: str, default: float | None) -> float | None:
    value = values.get(name)
    return default if value is None or value != value else value
