"""Range: battery state and route in; reachable distance, chance of arrival and charge at arrival out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import READINGS
from evband.energy.ahead import FARTHEST_KM, Ahead, long_enough
from evband.energy.battery import check_battery, held_kwh, known_battery
from evband.energy.cabin import with_cabin
from evband.energy.calibrating import cabin_of, planned_of, predicted_drives
from evband.energy.doubts import Doubts, physical_kw
from evband.energy.drives import Drive
from evband.energy.errors import ErrorModel
from evband.energy.joining import check_supplies, driven_trip, joined, left_out, outside_channels, way_ahead
from evband.energy.sanity import implausible
from evband.energy.so_far import SoFar
from evband.errors import EvbandError, SettingsError, TripsError
from evband.features.names import CABIN
from evband.routes import Route
from evband.trips import Trip, Trips

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]
LEVELS = {"p05": 0.05, "p50": 0.5, "p95": 0.95}
SURE = 0.95  # a chance that is acted on
AS_GIVEN = "as given"
SURE_OF_ALL = Doubts()
WHAT_IFS: dict[str, tuple[str | None, Callable[[Route, Doubts], tuple[Route, Doubts]]]] = {
    # name -> (the input it takes, if any; how route and doubts change)
    "10 % slower": ("speed_kmh", lambda way, doubts: (way.at_pace(0.9), doubts)),
    "10 C colder": ("ambient_temp_c", lambda way, doubts: (way.shifted("ambient_temp_c", -10.0), doubts)),
    "5 m/s head wind": (None, lambda way, doubts: (way, replace(doubts, head_wind_ms=doubts.head_wind_ms + 5.0))),
    "heater off": (CABIN, lambda way, doubts: (way.with_everywhere(CABIN, 0.0), doubts)),
}


@dataclass(frozen=True, eq=False, repr=False)
class Range:
    """What `evband range` tells; `way` reaches beyond the route where the battery does, the route repeated."""

    soc: float
    reserve_soc: float
    capacity_kwh: float
    route: Ahead
    way: Ahead
    past: SoFar
    notes: tuple[str, ...] = ()
    doubts: Doubts = SURE_OF_ALL

    def __repr__(self) -> str:
        reach = "{1:.0f} km, 5 to 95 %: {0:.0f} to {2:.0f}".format(*(self.distance_km(p) for p in LEVELS.values()))
        return f"Range({self.route_km:.0f} km from {self.soc:g} %: reaches {reach}; arrives {self.arrival_probability:.0%})"

    def _repr_html_(self) -> str:
        from evband.energy.picture import range_html

        return range_html(self)

    def plot(self, axes: Any = None) -> Any:
        """Charge over distance with its bands, the reserve and the route's end; gives matplotlib's axes."""
        from evband.energy.picture import draw_range

        return draw_range(self, axes)

    @property
    def battery_sd(self) -> float:
        """Standard deviation in kWh of what the battery holds above the reserve: charge and capacity."""
        return self._holds_sd(self.battery_kwh)

    def _holds_sd(self, kwh: float) -> float:
        return float(np.hypot(self._charge_sd, kwh * self._capacity_sd))

    @property
    def _charge_sd(self) -> float:
        return float(held_kwh(self.doubts.soc_sd, self.capacity_kwh))

    @property
    def _capacity_sd(self) -> float:
        """As a share of it."""
        return self.doubts.capacity_sd_pct / 100.0

    @property
    def shares(self) -> dict[str, float]:
        """The part of the variance of the charge at arrival that each source of doubt has; they add up to 1.

        A capacity that is off by 1 % moves that charge by 1 % of what the route takes."""
        mean, parts = self.route.parts(self.past)
        variance = {name: float(v[-1]) for name, v in parts.items()}
        variance |= {"charge": self._charge_sd**2, "capacity": (self._capacity_sd * float(mean[-1])) ** 2}
        total = sum(variance.values())
        return {name: v / total for name, v in variance.items() if v > 0.0}

    @property
    def battery_kwh(self) -> float:
        """Down to the reserve."""
        return float(held_kwh(self.soc, self.capacity_kwh, self.reserve_soc))

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
        return self._chance(held_kwh(self.soc, self.capacity_kwh))

    def _chance(self, kwh: float) -> float:
        return float(self.route.chances(kwh, self.past, self._holds_sd(kwh))[-1]) if kwh > 0 else 0.0

    def distance_km(self, p: float) -> float:
        """Quantile of the distance at which the battery is down to its reserve."""
        return self.way.reach(self.battery_kwh, self.past, (p,), self.battery_sd)[0]

    def energy_kwh(self, p: float) -> float:
        """Quantile of the energy to the route's end."""
        return float(self.route.quantiles(self.past, p)[-1])

    def soc_at_arrival(self, p: float) -> float:
        """Quantile of the charge left at the route's end, in percent; 0 where it does not get there."""
        return float(np.clip(self._soc_at(self.route, p)[-1], 0.0, 100.0))

    def soc_along(self, p: float) -> Array:
        """Quantile of the charge at every point of the way."""
        return self._soc_at(self.way, p)

    def _soc_at(self, way: Ahead, p: float) -> Array:
        return self.soc - 100.0 * self._needed(way, 1.0 - p) / self.capacity_kwh

    def _needed(self, way: Ahead, p: float) -> Array:
        return way.needed(self.past, p, self._charge_sd, self._capacity_sd)

    def soc_needed(self, p: float = SURE) -> float | None:
        """The charge in percent with which the chance to arrive with the reserve left is `p`; None where none is enough.

        Where to stop charging before departure."""
        soc = self.reserve_soc + 100.0 * max(float(self._needed(self.route, p).max()), 0.0) / self.capacity_kwh
        return soc if soc <= 100.0 else None

    def spare_kwh(self, p: float = SURE) -> float:
        """What the battery holds beyond the p-quantile of the energy to every point: 0 or more where it arrives so surely."""
        return self.battery_kwh - float(self.route.quantiles(self.past, p, self.battery_sd).max())

    def to_load_kwh(self, p: float = SURE) -> float | None:
        """Energy to load before departure for that chance; 0 where the charge is enough, None where no charge is."""
        soc = self.soc_needed(p)
        return None if soc is None else float(held_kwh(max(0.0, soc - self.soc), self.capacity_kwh))

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
            "shares": self.shares,
            "soc_for_95": self.soc_needed(),
            "load_kwh_for_95": self.to_load_kwh(),
        }


def plan(
    model: PowerModel,
    soc: float,
    capacity_kwh: float | None,
    route: Any,
    reserve_soc: float = 10.0,
    so_far: Any = None,
    ambient_c: float | None = None,
    doubts: Doubts = SURE_OF_ALL,
    beyond: bool = True,
) -> Range:
    """How far a battery reaches along a route (`evband.routes`); `so_far` is a log of the drive up to now, with its power.

    `capacity_kwh` None takes the battery, and how sure it is, from the data sheet of a started model. Without `beyond`
    the way ends with the route: that halves the work where only the arrival matters."""
    capacity_kwh, doubts = known_battery(model, capacity_kwh, doubts)
    check_battery(soc, capacity_kwh, reserve_soc)
    driven = driven_trip(model, so_far)
    way = way_ahead(route, driven, ambient_c)
    if doubts.head_wind_ms and "wind_ms" in model.feature_map_.channels:
        way = way.with_everywhere("wind_ms", doubts.head_wind_ms)
    check_supplies(model, way)
    trip = way.on_grid(model.settings_.hz, model.settings_.bridge_s)
    if way.log is None and model.adaptation_ is not None:  # known as closely as the logs that the car learned from
        known = pl.lit(model.adaptation_.asked_at / model.settings_.hz)
        trip = replace(trip, table=trip.table.with_columns(known.alias(READINGS)))
    once, rows = len(trip), 0 if driven is None else len(driven)
    errors = model.errors_
    whole = joined(driven, trip, model.feature_map_.channels, again=beyond)
    drive, spreads = _predicted(model, whole, rows, trip.distance_km, doubts)
    if way.log is not None:  # a plan's speeds are too smooth to tell a way by
        drive, errors = on_the_way(errors, drive, rows, rows + once)
    past = SoFar(errors)
    past.drive(drive.rows(slice(0, rows)))
    planned = planned_of(model) if way.log is None else None
    ahead, *again = (
        Ahead.of(drive.rows(part), errors, doubts={n: kw[part] for n, kw in spreads.items()}, planned=planned,
                 road_kmh=way.road_kmh(drive.rows(part).distance_km))
        for part in (slice(rows, rows + once), slice(rows + once, None))[: 1 + beyond]
    )  # fmt: skip
    if ahead.km[-1] <= 0:
        raise TripsError(f"The route {way.name} does not move; give one with a length.")
    found = Range(soc, reserve_soc, capacity_kwh, ahead, ahead, past, (), doubts)
    if beyond:
        found = replace(found, way=long_enough(ahead, again[0], found.battery_kwh, past, found.battery_sd))
    notes = [*way.notes, *left_out(model, way, doubts), *_notes(model, trip, drive, found, rows, driven is not None)]
    return replace(found, notes=tuple(notes))


def _predicted(
    model: PowerModel, trip: Trip, rows: int, route_km: float, doubts: Doubts
) -> tuple[Drive, dict[str, Array]]:
    """The joined trip as predicted, and the kW of every row that one standard deviation of each doubt adds."""
    trip, unsure = with_cabin(trip, cabin_of(model))
    shifts = {}
    channels = model.feature_map_.channels
    for channel, name, spread in (
        ("ambient_temp_c", "weather", doubts.ambient_sd_c),
        ("wind_ms", "wind", doubts.head_wind_sd_ms),
        (CABIN, "cabin", unsure),
    ):
        if np.any(spread) and channel in channels and channel in trip.table.columns:
            shifts[name] = Trip(name, trip.table.with_columns(pl.col(channel) + spread), trip.hz)
    drive, *others = predicted_drives(model, Trips([trip, *shifts.values()]))
    spreads = {name: other.mean - drive.mean for name, other in zip(shifts, others, strict=True)}
    added, physical = physical_kw(model, doubts, drive, route_km)
    added[:rows] = 0.0  # the drive so far is as measured
    return replace(drive, mean=drive.mean + added, members=drive.members + added), spreads | physical


def on_the_way(errors: ErrorModel, drive: Drive, start: int, end: int) -> tuple[Drive, ErrorModel]:
    """A joined drive and its errors with what is known of the way up to row `end`; from `start` on, it is driven again after that."""
    own = drive.rows(slice(0, end))
    known, errors = errors.on_its_way(own)
    added = known.mean - own.mean
    added = np.append(added, added[start:][: len(drive) - end])
    return replace(drive, mean=drive.mean + added, members=drive.members + added), errors


def _notes(model: PowerModel, trip: Trip, drive: Drive, found: Range, rows: int, driven: bool) -> list[str]:
    """What a reader of the plan must know."""
    soc, reserve = found.soc, found.reserve_soc
    notes = implausible(model, found.energy_kwh(0.5), found.route_km, trip)
    notes += [] if soc > reserve else [f"the charge ({soc:g} %) is not over the reserve ({reserve:g} %)"]
    first = drive.rows(slice(rows, rows + len(trip)))
    if first.outside.any():
        filled = [c for c in model.feature_map_.needed if not trip.has(c)]
        which = filled or outside_channels(model, trip)
        notes.append(
            f"{first.outside.mean():.0%} of the route leaves what the model has seen ({', '.join(which)}): bands are widened there, "
            "and nobody has measured whether by enough"
        )
    middle, most = found.way.reach(found.battery_kwh, found.past, (0.5, 0.95), found.battery_sd)
    if middle >= FARTHEST_KM:
        raise SettingsError(
            f"{found.battery_kwh:.0f} kWh would last for over {FARTHEST_KM:g} km of this route, farther than any car goes, so there is "
            "no answer; check the capacity (kWh, usable), the route's speeds and descent, and the model (evband info)."
        )
    if most >= FARTHEST_KM:
        notes.append(f"the search stopped at {FARTHEST_KM:g} km")
    if driven and not np.isfinite(drive.power_kw[:rows]).any():
        notes.append("the drive so far has no measured power, so it narrows nothing")
    return notes


def what_ifs(
    model: PowerModel,
    soc: float,
    capacity_kwh: float | None,
    route: Any,
    *,
    so_far: Any = None,
    ambient_c: float | None = None,
    reserve_soc: float = 10.0,
    variants: bool = True,
    doubts: Doubts = SURE_OF_ALL,
) -> dict[str, Range | str]:
    """The plan "as given" beside its variants; where the model lacks the channel, a sentence that says so.

    All start at the speed at which the drive so far ended.

    >>> import evband
    >>> way = pl.DataFrame({"distance_km": [0.0, 20.0], "speed_kmh": [80.0, 80.0], "elevation_m": [0.0, 0.0]})
    >>> plans = what_ifs(evband.start("Renault Zoe 52 kWh"), 80, 52, way, ambient_c=10.0)
    >>> list(plans)[:2]
    ['as given', '10 % slower']
    """
    driven = driven_trip(model, so_far)
    way = way_ahead(route, driven, ambient_c)

    def planned(way: Route, doubts: Doubts) -> Range:
        return plan(model, soc, capacity_kwh, way, reserve_soc, driven, doubts=doubts)

    found: dict[str, Range | str] = {AS_GIVEN: planned(way, doubts)}
    for name, (channel, change) in WHAT_IFS.items() if variants else ():
        if channel is not None and channel not in model.feature_map_.channels:
            found[name] = f"the model has no {channel} among its inputs, so it cannot say"
            continue
        if channel == "ambient_temp_c" and channel not in way.channels:
            found[name] = "the route does not say how warm it is, so the plan cannot say; give --ambient"
            continue
        try:
            found[name] = planned(*change(way, doubts))
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


def range_json(found: Mapping[str, Range | str], more: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """As `evband range --json` writes it, with `more` beside it; the variants, if any, under `what_if`."""
    variants = {n: p if isinstance(p, str) else p.to_dict() for n, p in found.items() if n != AS_GIVEN}
    return given(found).to_dict() | dict(more or {}) | ({"what_if": variants} if variants else {})
