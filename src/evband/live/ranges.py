"""Range and chance of arrival of every car of a group, renewed every ten seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.energy import Ahead, SoFar
from evband.energy.battery import held_kwh
from evband.energy.range import LEVELS
from evband.live.assemble import COLUMN, Assembler
from evband.live.changes import Changes, Mark
from evband.live.engine import Group
from evband.live.reading import CAPACITY
from evband.live.ways import Way, Ways, chance_at, charges, fan, reaches, weather

Array = NDArray[np.float64]
Cars = NDArray[np.int64]

EVERY_S = 10.0
SOC_OLD_S = 60.0  # an older charge is carried on by the energy used since
AMBIENT_OLD_S = 3600.0
MILD_C = 20.0  # weather that costs little; others are compared with it
SOC, AMBIENT, CAP = COLUMN["soc_pct"], COLUMN["ambient_temp_c"], COLUMN[CAPACITY]


class Ranges:
    """Ranges of one group's cars; `capacity` (NaN: as the feed says, else the data `sheet`) and `reserve` per car."""

    def __init__(
        self, group: Group, assembler: Assembler, ways: Ways, capacity: Array, sheet: Array, reserve: Array
    ) -> None:
        count = len(group.cars)
        self.group, self.ways, self._in = group, ways, assembler
        self._capacity, self._sheet, self.reserve = capacity, sheet, reserve
        self._farther = np.ones(count) if group.parts is None else group.parts.farther
        self.km = np.full((count, len(LEVELS)), np.nan)
        self.arrival, self.arrival_empty = np.full(count, np.nan), np.full(count, np.nan)
        self._looked = np.full(count, -np.inf)
        self._soc_at, self._kwh_then = np.full(count, np.nan), np.zeros(count)
        self.routes: dict[
            int, tuple[Way, float, str]
        ] = {}  # car -> its way, distance driven when it was set, as it was sent
        self.changes: Changes | None = None  # set at home: what changed and why is for people
        self._spread = np.random.default_rng(0).uniform(0.0, EVERY_S, count)

    def soon(self, car: int) -> None:
        """Look at this car's range with the next step."""
        self._looked[car] = -np.inf

    def look_anew(self) -> dict[int, tuple[Way, float, str]]:
        """The model has learned: plan with it from now on. Routes that are still planned with the one before."""
        self.ways = Ways(self.group.model, self.ways.pool)
        self._looked[:] = -np.inf
        return dict(self.routes)

    def capacity(self, cars: Cars) -> Array:
        reported = self._in.last_v[self.group.cars[cars], CAP]
        reported = np.where(np.isnan(reported), self._sheet[cars], reported)
        return np.where(np.isnan(self._capacity[cars]), reported, self._capacity[cars])

    def planned_capacity(self, cars: Cars) -> Array:
        """kWh with which the car that ways are planned for gets as far as each of these with its own battery."""
        return np.asarray(self.capacity(cars) * self._farther[cars])

    def used_kwh(self, cars: Cars) -> Array:
        t = self.group.tally
        return np.asarray(t["measured_kwh"][cars] + t["mean_kwh"][cars])

    def soc(self, cars: Cars) -> Array:
        """Charge now in percent: the last reading, carried on by the energy used since where it is old."""
        known = self.group.cars[cars]
        at, value = self._in.last_t[known, SOC], self._in.last_v[known, SOC]
        new = ~(at == self._soc_at[cars])
        self._soc_at[cars[new]], self._kwh_then[cars[new]] = at[new], self.used_kwh(cars[new])
        with np.errstate(invalid="ignore"):
            old = self.group.at[cars] - at > SOC_OLD_S
        spent = 100.0 * np.maximum(self.used_kwh(cars) - self._kwh_then[cars], 0.0) / self.capacity(cars)
        return np.asarray(np.clip(np.where(old & np.isfinite(spent), value - spent, value), 0.0, 100.0))

    def ambient(self, cars: Cars, clock: Array) -> Array:
        known = self.group.cars[cars]
        with np.errstate(invalid="ignore"):
            young = clock[cars] - self._in.last_t[known, AMBIENT] < AMBIENT_OLD_S
        return np.where(young, self._in.last_v[known, AMBIENT], np.nan)

    def due(self, wall: float) -> Cars:
        """Cars whose range is to be looked at again; spread over time so that no step has all of them."""
        if self.ways.problem is not None:
            return np.empty(0, np.int64)
        late = wall - self._looked >= np.where(np.isinf(self._looked), 0.0, EVERY_S)
        return np.flatnonzero(late & ~np.isnan(self._in.arrived[self.group.cars]))

    def look(self, cars: Cars, wall: float, clock: Array) -> None:
        """Renew the ranges of these cars; `clock` is each car's own time."""
        first = np.isinf(self._looked[cars])
        self._looked[cars] = np.where(first, wall - self._spread[cars], wall)
        soc, capacity = self.soc(cars), self.planned_capacity(cars)
        known = np.isfinite(soc) & np.isfinite(capacity)
        for column in (self.km, self.arrival, self.arrival_empty):
            column[cars[~known]] = np.nan
        cars, soc, capacity = cars[known], soc[known], capacity[known]
        battery = held_kwh(soc, capacity, self.reserve[cars])
        routed = np.array([car in self.routes for car in cars.tolist()], bool)
        for i in np.flatnonzero(routed).tolist():
            self._routed(int(cars[i]), float(battery[i]), held_kwh(float(soc[i]), float(capacity[i])))
        self._free(cars[~routed], battery[~routed], clock)
        if self.changes is not None:
            for car in cars.tolist():
                self._note(self.changes, car, float(clock[car]))

    def _note(self, changes: Changes, car: int, at: float) -> None:
        """Compare the range with that of some minutes ago."""
        driven, km = float(self.group.tally["km"][car]), float(self.km[car, 1])
        if not (km == km and at == at and changes.due(car, at, driven)):
            return
        found = self._ahead(car)
        if found is not None:
            one = np.array([car])
            felt = float(self.ambient(one, self._in.newest[self.group.cars])[0])
            why = self._why(found[0], self.group.tally.past_of(car), felt, km)
            changes.see(car, Mark(at, km, driven, float(self.soc(one)[0]), felt, why["drive_pct"], why["weather_pct"]))

    def _ahead(self, car: int) -> tuple[Ahead, float, tuple[str, ...]] | None:
        """(the way ahead, km to the route's end or NaN, notes) of a car; None until it is planned."""
        route = self.routes.get(car)
        if route is None:
            way = self.ways.shared(float(self.ambient(np.array([car]), self._in.newest[self.group.cars])[0]))
            return None if way is None else (way.ahead, np.nan, way.notes)
        driven = max(float(self.group.tally["km"][car]) - route[1], 0.0)
        return route[0].ahead.after(driven), max(route[0].end_km - driven, 0.0), route[0].notes

    def _free(self, cars: Cars, battery: Array, clock: Array) -> None:
        """Cars without a route, those of one weather together."""
        self.arrival[cars] = self.arrival_empty[cars] = np.nan
        felt = weather(self.ambient(cars, clock))
        for value in np.unique(felt):  # NaN is one value
            same = np.isnan(felt) if value != value else felt == value
            way = self.ways.shared(float(value))
            if way is None:
                self._looked[cars[same]] = -np.inf  # it is being planned
            else:
                self.km[cars[same]] = reaches(way.ahead, battery[same], self.group.tally.past(cars[same]))

    def _routed(self, car: int, battery: float, whole: float) -> None:
        ahead, past = self._ahead(car), self.group.tally.past_of(car)
        assert ahead is not None  # a route is planned before it is set
        rest, left, _ = ahead
        self.km[car] = rest.reach(battery, past, tuple(LEVELS.values()))
        self.arrival[car] = chance_at(rest, left, battery, past)
        self.arrival_empty[car] = chance_at(rest, left, whole, past)

    def details(self, car: int) -> dict[str, Any]:
        """What a page draws of one car: the fan of charge over distance and the way's notes."""
        one = np.array([car])
        soc, capacity = float(self.soc(one)[0]), float(self.planned_capacity(one)[0])
        if not (soc == soc and capacity == capacity and np.isfinite(self.km[car]).all()):
            return {"fan": None, "notes": [self.ways.problem] if self.ways.problem else []}
        past, ahead = self.group.tally.past_of(car), self._ahead(car)
        if ahead is None:
            return {"fan": None, "notes": []}
        rest, end, notes = ahead
        shown = float(np.nanmax([1.05 * self.km[car, 2], 1.1 * end, 5.0]))
        found: dict[str, Any] = {"fan": fan(rest, soc, capacity, past, shown), "notes": list(notes)}
        if end == end:
            lines = charges(rest, soc, capacity, past)
            arrive = {n: float(np.clip(np.interp(end, rest.km, line), 0.0, 100.0)) for n, line in lines.items()}
            found |= {"route_km_left": end, "soc_at_arrival": arrive}
        felt = float(self.ambient(one, self._in.newest[self.group.cars])[0])
        found |= {"why": self._why(rest, past, felt, float(self.km[car, 1]))}
        found |= {"changes": [] if self.changes is None else self.changes.of(car)}
        return found

    def _why(self, rest: Ahead, past: SoFar, felt_c: float, km: float) -> dict[str, float | None]:
        """What moves consumption over the next `km`, in percent: `drive`, what was measured on this drive against a car that was
        not measured; `weather`, a mixed way at the temperature felt against the same at 20 C."""
        km = max(km, 1.0)

        def to(way: Ahead, known: SoFar) -> float:
            return float(np.interp(km, way.km, way.energy(known)[0]))

        plain = SoFar(past.errors)
        base = to(rest, plain)
        why: dict[str, float | None] = {"drive_pct": None, "weather_pct": None}
        if (past.now.b, past.now.u) != (0.0, 0.0) and base > 0.0:
            why["drive_pct"] = 100.0 * (to(rest, past) / base - 1.0)
        if felt_c == felt_c and "ambient_temp_c" in self.group.model.feature_map_.channels:
            here, mild = self.ways.shared(felt_c), self.ways.shared(MILD_C)
            if here is not None and mild is not None:
                why["weather_pct"] = 100.0 * (to(here.ahead, plain) / to(mild.ahead, plain) - 1.0)
        return why
