"""Why range changed: each minute, what was driven against what was planned for the same kilometres, in km of range.

speed, slope, temperature   predicted for what was driven, beyond what the plan had there; slope and temperature by the road-load path
auxiliaries                 measured beyond predicted: heater, load, wind, whatever no input tells
ahead                       what the power measured so far says about the rest of the way
other                       a state of charge that a line reports and energy does not explain, a model that has learned
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.energy.ahead import Ahead
from evband.energy.cabin import with_cabin
from evband.energy.calibrating import cabin_of
from evband.energy.joining import joined
from evband.features.road_load import OF_SLOPE, OF_TEMPERATURE
from evband.routes import read_route

if TYPE_CHECKING:
    from evband.features import FeatureMap
    from evband.model import PowerModel

Array = NDArray[np.float64]

EVERY_S = 60.0
GROUPS = {"slope": OF_SLOPE, "temperature": OF_TEMPERATURE}
DRIVEN = ("predicted", "used", *GROUPS)
_MARK = ("time", "km", "range_km", *DRIVEN)


class Parts:
    """What slope and temperature add to power, by the least-squares road-load path."""

    def __init__(self, features: FeatureMap) -> None:
        names = list(features.road_names)
        own = {group: [names.index(n) for n in terms if n in names] for group, terms in GROUPS.items()}
        weights = features.least_squares() if any(own.values()) and len(features.gram) == len(names) else None
        self._columns = own
        self._kw = np.zeros(len(names)) if weights is None else features.y_std * weights / features.r_scale
        self._scale, self._shift = features.r_scale, features.r_shift

    def kw(self, road: NDArray[Any]) -> dict[str, Array]:
        """[n] kW of each group, of rows of road-load features [n, K]."""
        terms = (np.asarray(road, float) * self._scale + self._shift) * self._kw
        return {group: terms[:, columns].sum(axis=1) for group, columns in self._columns.items()}


def planned_parts(model: PowerModel, route: Any, way: Ahead) -> dict[str, Array]:
    """kWh of each group to each point of a way along this route, which it may repeat."""
    features, settings = model.feature_map_, model.settings_
    trip = read_route(route).on_grid(settings.hz, settings.bridge_s)
    rows = features.transform(with_cabin(joined(None, trip, features.channels), cabin_of(model))[0])
    kw = Parts(features).kw(rows.r[: len(trip)])
    km = np.cumsum(np.maximum(trip.table["speed_kmh"].to_numpy(), 0.0)) / settings.hz / 3600.0
    laps, rest = np.divmod(way.km, km[-1])
    found = {}
    for group, power in kw.items():
        kwh = np.cumsum(power) / settings.hz / 3600.0
        found[group] = laps * kwh[-1] + np.interp(rest, np.append(0.0, km), np.append(0.0, kwh))
    return found


class Reasons:
    """Sums since the trip began, and the mark of a minute ago."""

    def __init__(self) -> None:
        self.sums = dict.fromkeys(DRIVEN, 0.0)
        self.mark: dict[str, float] | None = None
        self.because: dict[str, float] | None = None

    def add(self, predicted_kwh: float, used_kwh: float, parts_kwh: Mapping[str, float]) -> None:
        """One grid row."""
        for name, kwh in {"predicted": predicted_kwh, "used": used_kwh, **parts_kwh}.items():
            self.sums[name] += kwh

    def look(
        self, time: float, km: float, range_km: float, way: Ahead, planned: Mapping[str, Array], ahead_km: float
    ) -> None:  # fmt: skip
        """A new range: `planned` are kWh of each group to each point of `way`, `ahead_km` what the changed way ahead adds."""
        now = {"time": time, "km": km, "range_km": range_km, **self.sums}
        if self.mark is not None:
            self.because = _because(self.mark, now, way, planned, ahead_km)
        self.mark = now

    def to_dict(self) -> dict[str, Any]:
        return {"sums": dict(self.sums), "mark": self.mark, "because": self.because}

    def restore(self, saved: Mapping[str, Any]) -> None:
        self.sums = {name: float(saved["sums"][name]) for name in DRIVEN}
        self.mark = None if saved["mark"] is None else {name: float(saved["mark"][name]) for name in _MARK}
        self.because = None if saved["because"] is None else {str(k): float(v) for k, v in saved["because"].items()}


def _because(
    before: Mapping[str, float], now: Mapping[str, float], way: Ahead, planned: Mapping[str, Array], ahead_km: float
) -> dict[str, float]:  # fmt: skip
    def of_plan(kwh: Array) -> float:
        at = np.interp([before["km"], now["km"]], np.append(0.0, way.km), np.append(0.0, kwh))
        return float(at[1] - at[0])

    per_km = max(float(way.mean_kwh[-1] / way.km[-1]), 1e-3)
    kwh = {name: now[name] - before[name] for name in DRIVEN}
    more = {group: kwh[group] - of_plan(planned[group]) for group in GROUPS}
    more["speed"] = kwh["predicted"] - of_plan(way.mean_kwh) - sum(more.values())
    more["auxiliaries"] = kwh["used"] - kwh["predicted"]
    reasons = {f"{name}_km": -value / per_km for name, value in more.items()} | {"ahead_km": ahead_km}
    change = now["range_km"] + now["km"] - before["km"] - before["range_km"]
    return {"change_km": change, **reasons, "other_km": change - sum(reasons.values())}
