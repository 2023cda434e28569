"""Range: battery state and route in; reachable distance, chance of arrival and charge at arrival out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import EDGES
from evband.energy.ahead import FARTHEST_KM, Ahead, long_enough
from evband.energy.calibrating import predicted_drives
from evband.energy.so_far import SoFar
from evband.errors import ChannelError, EvbandError, SettingsError, TripsError
from evband.routes import Route, read_route
from evband.trips import Trip, Trips

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]
LEVELS = {"p05": 0.05, "p50": 0.5, "p95": 0.95}
MOST_KWH = 2000.0  # the largest trucks carry less
AS_GIVEN = "as given"
WHAT_IFS: dict[str, tuple[str, Callable[[Route], Route]]] = {  # name -> (the input it takes, the route it makes)
    "10 % slower": ("speed_kmh", lambda way: way.at_pace(0.9)),
    "10 C colder": ("ambient_temp_c", lambda way: way.shifted("ambient_temp_c", -10.0)),
    "5 m/s head wind": ("wind_ms", lambda way: way.with_everywhere("wind_ms", 5.0)),
}


@dataclass(frozen=True, eq=False)
class Range:
    """What `evband range` tells; `way` reaches beyond the route where the battery does, the route repeated."""

    soc: float
    reserve_soc: float
    capacity_kwh: float
    route: Ahead
    way: Ahead
    past: SoFar
    notes: tuple[str, ...] = ()

    @property
    def battery_kwh(self) -> float:
        """Down to the reserve."""
        return (self.soc - self.reserve_soc) / 100.0 * self.capacity_kwh

    @property
    def route_km(self) -> float:
        return float(self.route.km[-1])

    @property
    def arrival_probability(self) -> float:
        """Of reaching the route's end with the reserve left."""
        return self._chance(self.battery_kwh)

    @property
    def arrival_probability_empty(self) -> float:
        """Of reaching the route's end at all, the reserve used up if need be."""
        return self._chance(self.soc / 100.0 * self.capacity_kwh)

    def _chance(self, kwh: float) -> float:
        return float(self.route.chances(kwh, self.past)[-1]) if kwh > 0 else 0.0

    def distance_km(self, p: float) -> float:
        """Quantile of the distance at which the battery is down to its reserve."""
        return self.way.reach(self.battery_kwh, self.past, (p,))[0]

    def energy_kwh(self, p: float) -> float:
        """Quantile of the energy to the route's end."""
        return float(self.route.quantiles(self.past, p)[-1])

    def soc_at_arrival(self, p: float) -> float:
        """Quantile of the charge left at the route's end, in percent; 0 where it does not get there."""
        return float(np.clip(self.soc - 100.0 * self.energy_kwh(1.0 - p) / self.capacity_kwh, 0.0, 100.0))

    def soc_along(self, p: float) -> Array:
        """Quantile of the charge at every point of the way."""
        return np.asarray(self.soc - 100.0 * self.way.quantiles(self.past, 1.0 - p) / self.capacity_kwh)

    @property
    def beyond_route(self) -> bool:
        return self.distance_km(0.95) > self.route_km + 1e-6

    def to_dict(self) -> dict[str, Any]:
        """As `evband range --json` writes it."""
        return {
            "distance_km": {name: self.distance_km(p) for name, p in LEVELS.items()},
            "arrival_probability": self.arrival_probability,
            "arrival_probability_empty": self.arrival_probability_empty,
            "reserve_soc": self.reserve_soc,
            "soc_at_arrival": {name: self.soc_at_arrival(p) for name, p in LEVELS.items()},
            "energy_kwh": {name: self.energy_kwh(p) for name, p in LEVELS.items()},
            "beyond_route": self.beyond_route,
        }


def plan(
    model: PowerModel,
    soc: float,
    capacity_kwh: float,
    route: Any,
    reserve_soc: float = 10.0,
    so_far: Any = None,
    ambient_c: float | None = None,
) -> Range:
    """How far a battery reaches along a route (`evband.routes`); `so_far` is a log of the drive up to now, with its power."""
    check_battery(soc, capacity_kwh, reserve_soc)
    errors, hz = model.errors_, model.settings_.hz
    driven = None if so_far is None else _driven(model, so_far)
    way = read_route(route, _speed_now(driven))
    if ambient_c is not None:
        way = way.with_everywhere("ambient_temp_c", ambient_c)
    check_supplies(model, way)
    trip = way.on_grid(hz)
    once, rows = len(trip), 0 if driven is None else len(driven)
    drive = predicted_drives(model, Trips([_joined(driven, trip, model.feature_map_.channels)]))[0]
    past = SoFar(errors)
    past.drive(drive.rows(slice(0, rows)))
    first, again = drive.rows(slice(rows, rows + once)), drive.rows(slice(rows + once, None))
    ahead = Ahead.of(first, errors)
    if ahead.km[-1] <= 0:
        raise TripsError(f"The route {way.name} does not move; give one with a length.")
    battery = (soc - reserve_soc) / 100.0 * capacity_kwh
    whole = long_enough(ahead, Ahead.of(again, errors), battery, past)
    notes = list(way.notes)
    notes += [] if soc > reserve_soc else [f"the charge ({soc:g} %) is not over the reserve ({reserve_soc:g} %)"]
    if first.outside.any():
        which = _outside_channels(model, trip)
        notes.append(
            f"{first.outside.mean():.0%} of the route leaves what the model has seen ({', '.join(which)}): bands are widened there, "
            "and nobody has measured whether by enough"
        )
    if whole.reach(battery, past, (0.95,))[0] >= FARTHEST_KM:
        notes.append(f"the search stopped at {FARTHEST_KM:g} km")
    if so_far is not None and not np.isfinite(drive.power_kw[:rows]).any():
        notes.append("the drive so far has no measured power, so it narrows nothing")
    return Range(soc, reserve_soc, capacity_kwh, ahead, whole, past, tuple(notes))


def what_ifs(
    model: PowerModel,
    soc: float,
    capacity_kwh: float,
    route: Any,
    *,
    so_far: Any = None,
    ambient_c: float | None = None,
    reserve_soc: float = 10.0,
    variants: bool = True,
) -> dict[str, Range | str]:
    """The plan "as given" beside its variants; where the model lacks the channel, a sentence that says so.

    All start at the speed at which the drive so far ended.
    """
    driven = None if so_far is None else _driven(model, so_far)
    way = read_route(route, _speed_now(driven))
    if ambient_c is not None:
        way = way.with_everywhere("ambient_temp_c", ambient_c)

    def planned(way: Route) -> Range:
        return plan(model, soc, capacity_kwh, way, reserve_soc, driven)

    found: dict[str, Range | str] = {AS_GIVEN: planned(way)}
    for name, (channel, change) in WHAT_IFS.items() if variants else ():
        if channel not in model.feature_map_.channels:
            found[name] = f"the model has no {channel} among its inputs, so it cannot say"
            continue
        try:
            found[name] = planned(change(way))
        except EvbandError as problem:
            found[name] = f"cannot say: {problem}"
    return found


def given(found: Mapping[str, Range | str]) -> Range:
    """The plan as it was asked for."""
    plan = found[AS_GIVEN]
    assert isinstance(plan, Range)
    return plan


def range_warnings(found: Mapping[str, Range | str]) -> list[str]:
    """What a reader of these plans must know: notes of the plan as given, and further ones of its variants."""
    own = given(found).notes
    more = {name: plan.notes for name, plan in found.items() if not isinstance(plan, str)}
    return [*own, *(f"{name}: {note}" for name, notes in more.items() for note in notes if note not in own)]


def range_json(found: Mapping[str, Range | str]) -> dict[str, Any]:
    """As `evband range --json` writes it; the variants, if any, under `what_if`."""
    variants = {n: p if isinstance(p, str) else p.to_dict() for n, p in found.items() if n != AS_GIVEN}
    return given(found).to_dict() | ({"what_if": variants} if variants else {})


def check_battery(soc: float, capacity_kwh: float, reserve_soc: float = 0.0) -> None:
    """Percent from 0 to 100, and a battery that holds something."""
    for name, value in (("The state of charge", soc), ("The reserve", reserve_soc)):
        if not 0 <= value <= 100:
            raise SettingsError(f"{name} is {value} %; give one from 0 to 100.")
    if not (np.isfinite(capacity_kwh) and capacity_kwh > 0):
        raise SettingsError(f"The usable capacity is {capacity_kwh} kWh; give a positive number.")
    if capacity_kwh > MOST_KWH:
        raise SettingsError(
            f"The usable capacity is {capacity_kwh:g} kWh, more than any car or truck has; give kWh, not Wh: "
            f"{capacity_kwh / 1000:g} kWh?"
        )


def check_supplies(model: PowerModel, route: Route) -> None:
    """A ChannelError that names what the route lacks of the model's inputs."""
    missing = [c for c in model.feature_map_.channels if c not in route.channels]
    if missing:
        known = [c for c in model.feature_map_.channels if c in route.channels]
        could = ",".join(known) if len(known) > 2 else "motion"
        raise ChannelError(
            f"The route {route.name} does not supply {', '.join(missing)}, which this model needs; add it to the route, or plan with "
            f"a model fitted with --features {could}."
        )


def _speed_now(driven: Trip | None) -> float:
    """At which the way ahead begins, in km/h."""
    return 0.0 if driven is None else max(float(driven.table["speed_kmh"][-1]), 0.0)


def _driven(model: PowerModel, so_far: Any) -> Trip:
    """The drive so far on the model's grid."""
    if not isinstance(so_far, Trip):
        from evband.logs.reading import read_trips

        trips = so_far if isinstance(so_far, Trips) else read_trips(so_far)
        if len(trips) > 1:
            raise TripsError(f"The drive so far holds {len(trips)} trips; give the one that goes on.")
        so_far = trips[0]
    trip: Trip = so_far.on_grid(model.settings_.hz)
    return trip


def _joined(driven: Trip | None, route: Trip, channels: tuple[str, ...]) -> Trip:
    """The drive so far, the route, and the route again, as one trip without a break.

    Only slopes matter of elevation, so each part's is shifted to begin where the last one ended.
    """
    assert route.hz is not None
    names = list(dict.fromkeys(("speed_kmh", "acceleration_ms2", *EDGES, *channels)))
    parts = [route.table.select(names), route.table.select(names)]
    if driven is not None:
        power = [c for c in ("power_kw",) if driven.has(c)]
        parts.insert(0, driven.table.select([*names, *power, "segment"]))
    if "elevation_m" in names:
        for i in range(len(parts) - 2, -1, -1):
            ends = parts[i]["elevation_m"].drop_nulls()
            begins = parts[i + 1]["elevation_m"].drop_nulls()
            if len(ends) and len(begins):
                parts[i] = parts[i].with_columns(pl.col("elevation_m") + (begins[0] - ends[-1]))
    table = pl.concat(parts, how="diagonal")
    time = (np.arange(table.height) + 1.0) / route.hz
    segment = table["segment"].forward_fill() if "segment" in table.columns else pl.repeat(0, table.height, eager=True)
    return Trip("route", table.with_columns(time_s=pl.Series(time), segment=segment.cast(pl.Int32)), route.hz)


def _outside_channels(model: PowerModel, route: Trip) -> list[str]:
    rows = model.feature_map_.transform(route)
    return [c for i, c in enumerate(model.feature_map_.channels) if rows.which_outside[:, i].any()]
