"""Drives as they begin, go on and end, and what is kept of each car, so that a restart goes on where it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from evband.live.assemble import COLUMN
from evband.live.engine import Advance, Group

if TYPE_CHECKING:
    from evband.live.service import Service

LEAST_KM = 0.05  # a car that did not move further made no drive
KEEP_S = 10.0  # an open drive's sums are written this often
SOC = COLUMN["soc_pct"]


class TripLog:
    """Follows the drives of a service's cars and writes them to its store, if it has one."""

    def __init__(self, service: Service) -> None:
        self._service = service
        count = len(service.ids)
        self._soc, self._kept = np.full(count, np.nan), np.full(count, -np.inf)
        self._dirty, self._longer = np.zeros(count, bool), np.zeros(count, bool)  # state to keep; drive to keep

    def touch(self, cars: NDArray[np.int64]) -> None:
        """Cars whose state changes: readings came, or rows were made of older ones."""
        self._dirty[cars] = True

    def follow(self, group: Group, advances: list[Advance], now: float) -> None:
        """Rows that were made: store them, and now and then the drives they belong to."""
        store = self._service.store
        for advance in advances:
            self._soc[advance.cars[advance.first]] = np.nan
            self.touch(advance.cars)
            self._longer[advance.cars] = True
            if store is not None:
                store.rows(advance)
        if store is None:
            return
        due = np.flatnonzero(self._longer[group.cars] & (now - self._kept[group.cars] > KEEP_S) & ~group.bins.bins.idle)
        self._kept[group.cars[due]], self._longer[group.cars[due]] = now, False
        self._write(group, due, open_=True)

    def finish(self, group: Group, cars: NDArray[np.int64]) -> None:
        """Drives that are over."""
        self._write(group, cars, open_=False)

    def _write(self, group: Group, cars: NDArray[np.int64], open_: bool) -> None:
        store, assembler = self._service.store, self._service.assembler
        if store is None or not len(cars):
            return
        energy = group.tally.energy(cars)
        for i, car in enumerate(cars.tolist()):
            number, began, km = int(group.cars[car]), float(group.began[car]), float(group.tally["km"][car])
            soc = float(assembler.last_v[number, SOC])
            if self._soc[number] != self._soc[number]:
                self._soc[number] = soc
            if km < LEAST_KM or began != began:
                if not open_ and began == began:
                    store.no_trip(number, began)
                continue
            values: dict[str, Any] = {
                "began": began, "ended": float(group.at[car]), "open": float(open_), "distance_km": km,
                "measured_kwh": float(group.tally["measured_kwh"][car]), "soc_start": float(self._soc[number]), "soc_end": soc,
            }  # fmt: skip
            if energy is not None:
                values |= {
                    name: float(part[i])
                    for name, part in zip(("mean_kwh", "lower_kwh", "upper_kwh"), energy, strict=True)
                }
            store.trip(number, {name: None if v != v else v for name, v in values.items()})

    def forget(self, number: int) -> None:
        self._soc[number], self._dirty[number], self._longer[number] = np.nan, False, False

    def keep(self, numbers: Sequence[int], now: float, network: bool) -> None:
        """Write the state of those of these cars that went on since the last time."""
        service = self._service
        assert service.store is not None
        found, lessons = [], []
        for number in numbers:
            if self._dirty[number]:
                self._dirty[number] = False
                group, local = service.place[number].tolist()
                state = service.groups[group].to_dict(local, network) | {
                    "power_check": service.check.to_dict(number),
                    "assembler": service.assembler.to_dict(number),
                }
                found.append((number, now, orjson.dumps(state)))
                if (learning := service.groups[group].learning) is not None:
                    lessons.append((number, learning.lesson()))
        if found:
            service.store.snapshots(found, lessons)

    def resume(self, now: float) -> set[int]:
        """Go on with every car from its last snapshot; one that does not fit starts anew. Cars that are under way."""
        service = self._service
        assert service.store is not None
        open_drives = {}
        for number, saved in service.store.saved().items():
            group_number, local = service.place[number].tolist()
            group = service.groups[group_number]
            try:
                service.check.restore(number, saved["power_check"])
                service.assembler.restore(number, saved["assembler"], now)
                group.restore(local, saved, *service.store.taught(number))
            except (KeyError, TypeError, ValueError):
                service.assembler.forget(number)
                group.forget(local)
                continue
            if group.began[local] == group.began[local]:
                open_drives[number] = float(group.began[local])
                service.store.resumed(number, open_drives[number])
        service.store.close_trips(open_drives)
        return set(open_drives)
