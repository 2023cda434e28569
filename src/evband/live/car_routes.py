"""Routes of live cars: from the configuration, the API or the store, planned away from the engine's thread, and again when a model
has learned."""

from __future__ import annotations

import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from evband.errors import EvbandError, SettingsError
from evband.live.ranges import AMBIENT, Ranges
from evband.live.routes_in import route_of
from evband.live.ways import Way

if TYPE_CHECKING:
    from evband.live.service import Service

TYPICAL_KWH = 75.0  # of a car whose battery is not known


class CarRoutes:
    """Which way each car of a service goes."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def start(self, under_way: Collection[int]) -> None:
        """Take up the routes of drives that go on after a restart, and those of the configuration; a wrong one of these stops
        the start."""
        service = self._service
        kept = {} if service.store is None else service.store.saved_routes()
        for number, car in enumerate(service.roster.cars):
            if number in kept and number in under_way:  # a route belongs to its drive
                driven, text = kept[number]
                service.pool.submit(self._plan_and_set, car.id, text, driven)
            elif car.route is not None:
                text = Path(car.route).read_text("utf-8", "replace") if Path(car.route).is_file() else ""
                try:
                    route_of(text)
                except (EvbandError, ValueError) as problem:
                    raise SettingsError(f"{car.route}: the route of {car.id} cannot be used: {problem}") from None
                service.pool.submit(self._plan_and_set, car.id, text, None)

    def _plan_and_set(self, car: str, text: str, driven_km: float | None) -> None:
        with suppress(EvbandError, ValueError):
            self.set(car, self.plan(car, text), text, driven_km)

    def plan(self, car: str, text: str) -> Way:
        """A route as it was sent, planned for this car at the temperature it feels; slow."""
        found = self._service.where(car)
        assert found is not None
        number, _, ranges, _ = found
        ambient = float(self._service.assembler.last_v[number, AMBIENT])
        capacity = self._service.roster.cars[number].capacity_kwh or TYPICAL_KWH
        return ranges.ways.plan(route_of(text), None if ambient != ambient else ambient, capacity)

    def set(self, car: str, way: Way | None, text: str = "", driven_km: float | None = None) -> None:
        """Give a car a planned way, from where it is now or was after `driven_km` of this drive."""
        service = self._service
        found = service.where(car)
        assert found is not None
        number, group, ranges, local = found
        with service.lock:
            driven = float(group.tally["km"][local]) if driven_km is None else driven_km
            if way is None:
                ranges.routes.pop(local, None)
            else:
                ranges.routes[local] = (way, driven, text)
            if ranges.changes is not None:
                ranges.changes.forget(local)
            ranges.soon(local)
            service.tell_soon(number)
            if service.store is not None and driven_km is None:
                service.store.route(number, time.time(), driven, None if way is None else text)

    def again(self, ranges: Ranges) -> None:
        """The model of these cars has learned: plan with it from now on; until that is done the old plans stand."""
        for local, (_, driven, text) in ranges.look_anew().items():
            self._service.pool.submit(self._replace, ranges, local, driven, text)

    def _replace(self, ranges: Ranges, local: int, driven_km: float, text: str) -> None:
        with suppress(EvbandError, ValueError):
            way = self.plan(self._service.ids[ranges.group.cars[local]], text)
            with self._service.lock:
                before = ranges.routes.get(local)
                if before is not None and before[1:] == (driven_km, text):  # and not another by now
                    ranges.routes[local] = (way, driven_km, text)
                    ranges.soon(local)
