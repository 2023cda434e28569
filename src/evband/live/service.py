"""The service: sources in, one step every tenth of a second, states out to all listeners."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from evband.adaptation.checks import learns
from evband.channels import NEW_TRIP_S
from evband.live import states
from evband.live.assemble import COLUMN, SPEED, Assembler, Batch
from evband.live.car_routes import CarRoutes
from evband.live.changes import Changes
from evband.live.config import Config
from evband.live.engine import Advance, Group
from evband.live.fleet import Roster, roster
from evband.live.objects import objects
from evband.live.power_check import PowerCheck
from evband.live.ranges import Ranges
from evband.live.reading import CHARGING, Reading, Sample
from evband.live.record import Record
from evband.live.sources import TRUSTED
from evband.live.store import Store
from evband.live.trip_log import TripLog
from evband.live.ways import Ways
from evband.trips.bin_columns import DUPLICATE, LATE

Listener = Callable[[list[tuple[str, bytes]]], None]
Receiver = Callable[[], Callable[[], None] | None]
HEARTBEAT_S = 20.0  # a car whose state does not change is published this often
SNAPSHOT_S, FLEET_SNAPSHOT_S = 1.0, 60.0
SUSPECT = 10.0  # recent powers beyond any limit after which the unit is doubted


class Service:
    """All cars of a configuration. `step(now)` does the work; `start` calls it from a thread."""

    def __init__(self, config: Config, found: Roster | None = None) -> None:
        self.config, self.roster = config, found or roster(config)
        cars = self.roster.cars
        self.ids, self.names = [car.id for car in cars], [car.name or car.id for car in cars]
        self.assembler = Assembler(self.ids, [car.id for car in cars if car.source in TRUSTED])
        self._rates()
        fixed = np.array([car.power_unit is not None and car.invert_power is not None for car in cars], bool)
        self.assembler.trusted |= fixed
        self.check = PowerCheck(self.assembler.power_scale, self.assembler.trusted, fixed)
        for i, car in enumerate(cars):
            self.assembler.power_scale[i] *= (1e-3 if car.power_unit == "W" else 1.0) * (
                -1.0 if car.invert_power else 1.0
            )
        self.pool = ThreadPoolExecutor(1, thread_name_prefix="plan")
        self._groups(cars)
        self.store = (
            None if config.store.path is None else Store(config.path(config.store.path), config.store, self.ids)
        )
        if len(cars) <= config.store.snapshot_cars:
            for ranges in self.ranges:
                ranges.changes = Changes()
        self.trip_log, self.routes = TripLog(self), CarRoutes(self)
        self.record = None if config.server.record is None else Record(config.path(config.server.record))
        self.state = np.zeros(len(cars), np.int8)
        self.latest: dict[str, bytes] = {}
        self._said = np.full(len(cars), -np.inf)
        self._listeners: list[Listener] = []
        self._receivers: list[Receiver] = []
        self.lock = threading.RLock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self._stepped, self._snapped, self._turn = 0.0, 0.0, 0
        self.steps = self.bands = 0
        self.step_s = self.latency_s = 0.0
        self.problem: str | None = None
        self.started = time.time()

    def _rates(self) -> None:
        for i, car in enumerate(self.roster.cars):
            if car.source == "replay":
                self.assembler.rate[i] = car.speed

    def _groups(self, cars: list[Any]) -> None:
        """Cars that share a model and how it is used are columns of one engine; one that learns is by itself."""
        keys: dict[tuple[int, bool, bool, int | None], list[int]] = {}
        for i, car in enumerate(cars):
            key = (id(self.roster.models[i]), car.calibrate, i in self.roster.rows, i if self._learns(i) else None)
            keys.setdefault(key, []).append(i)
        self.groups: list[Group] = []
        self.ranges: list[Ranges] = []
        self.place = np.zeros((len(cars), 2), np.int64)  # group, and number in it
        for (_, calibrate, _, learner), members in keys.items():
            numbers = np.array(members)
            model = self.roster.models[members[0]]
            parts = self.roster.parts(members)
            group = Group(model, numbers, calibrate, self.check, parts, learn=learner is not None)
            capacity = np.array([np.nan if cars[i].capacity_kwh is None else cars[i].capacity_kwh for i in members])
            sheet = np.array([self.roster.battery_kwh(i) for i in members])
            reserve = np.array([cars[i].reserve_soc for i in members])
            self.place[numbers, 0], self.place[numbers, 1] = len(self.groups), np.arange(len(members))
            self.groups.append(group)
            self.ranges.append(Ranges(group, self.assembler, Ways(model, self.pool), capacity, sheet, reserve))

    def _learns(self, number: int) -> bool:
        """A started model learns its car, unless switched off; a fleet's parts learn by `evband fleet`."""
        car, known = self.roster.cars[number], learns(self.roster.models[number])
        few = len(self.ids) <= self.config.store.snapshot_cars
        return known and few and car.learn and car.calibrate and number not in self.roster.rows

    # Running --------------------------------------------------------------------------------------------------------

    def put(self, item: Reading | Sample) -> None:
        """Where sources put readings."""
        self.assembler.put(item)

    def listen(self, listener: Listener) -> None:
        """Call `listener` with the states (id, JSON) that changed, from the engine's thread."""
        self._listeners.append(listener)

    @property
    def at_home(self) -> bool:
        """Whether the state of every car is kept with every step, and nothing is acknowledged before."""
        return self.store is not None and len(self.ids) <= self.config.store.snapshot_cars

    def receive(self, so_far: Receiver) -> None:
        """A source whose messages are sent again until acknowledged: `so_far()` gives the call that acknowledges all that
        it has put in by now, or None."""
        self._receivers.append(so_far)

    def _once_kept(self, acknowledge: Callable[[], None]) -> None:
        if self.store is None:
            acknowledge()
        else:
            self.store.after(acknowledge)

    def start(self) -> None:
        under_way: set[int] = set()
        if self.store is not None:
            under_way = self.trip_log.resume(time.time())
            self.store.start()
        self.routes.start(under_way)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(10.0)
        if self.store is not None:
            with self.lock:
                self._snapshot(time.time(), everyone=True)
            self.store.stop()
        if self.record is not None:
            self.record.close()
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        while not self._stop.is_set():
            began = time.time()
            try:
                self.step(began)
                self.problem = None
            except Exception as problem:  # whatever a feed did, the next step goes on
                self.problem = f"{type(problem).__name__}: {problem}"
            self.step_s += 0.1 * (time.time() - began - self.step_s)
            self._stop.wait(max(self.config.server.step_s - (time.time() - began), 0.002))

    def step(self, now: float) -> list[Advance]:
        """Everything that came in until `now`: rows through the networks, drives found, states to the listeners."""
        with self.lock:
            safe = [
                received() for received in self._receivers
            ]  # before the readings, so that these are at least theirs
            batch = self.assembler.drain(now)
            if self.record is not None:
                self.record.write(self.ids, batch)
            self.trip_log.touch(batch.cars)
            self._doubt(now)
            clock, complete = self.assembler.now(now), self.assembler.complete_until(now)
            advances = []
            for number, group in enumerate(self.groups):
                advances += self._group_step(number, group, batch, clock, complete, now)
            self.steps += 1
            self.bands += sum(len(advance.cars) for advance in advances)
            self._snapshot(now)
        for acknowledge in filter(None, safe):
            self._once_kept(acknowledge)
        return advances

    def _doubt(self, now: float) -> None:
        """Powers far beyond their limits mean that a feed changed its unit."""
        self.assembler.age(now - self._stepped if self._stepped else 0.0)
        self._stepped = now
        odd = np.flatnonzero(self.assembler.suspect > SUSPECT)
        if len(odd):
            self.check.distrust(odd)
            self.assembler.suspect[odd] = 0.0

    def _group_step(
        self, number: int, group: Group, batch: Batch, clock: NDArray[np.float64], complete: NDArray[np.float64], now: float
    ) -> list[Advance]:  # fmt: skip
        mine = self.place[batch.cars, 0] == number if len(self.groups) > 1 else slice(None)
        cars = batch.cars[mine]
        own, before = clock[group.cars], self.state[group.cars]
        ranges, advances = self.ranges[number], list[Advance]()
        for advance in group.step(Batch(cars, batch.times[mine], batch.values[mine]), complete[group.cars]):
            if advances:  # more than one row of a car: none is left out
                self._tell(group, ranges, self.place[advances[-1].cars, 1], before, own, now)
            advances.append(advance)
        for reason, fate in (("late", LATE), ("duplicate", DUPLICATE)):
            self.assembler.drops.add_many(reason, cars[group.fate == fate])
        state = self._states(group, own, now)
        if ranges.ways.model is not group.model:  # it has learned
            self.routes.again(ranges)
        self.trip_log.follow(group, advances, now)
        due = ranges.due(now)
        if len(due):
            ranges.look(due, now, own)
        news = (state != before) | (now - self._said[group.cars] > HEARTBEAT_S)
        if advances:
            news[self.place[advances[-1].cars, 1]] = True
        for advance in advances[:-1]:  # cars whose last row was of an earlier round
            news[self.place[advance.cars, 1]] |= ~np.isin(advance.cars, advances[-1].cars)
        self._tell(group, ranges, np.flatnonzero(news), state, own, now)
        return advances

    def _states(self, group: Group, own: NDArray[np.float64], now: float) -> NDArray[np.int8]:
        column, known = COLUMN[CHARGING], group.cars
        with np.errstate(invalid="ignore"):
            reported = (self.assembler.last_v[known, column] > 0.5) & (
                own - self.assembler.last_t[known, column] < NEW_TRIP_S
            )
            still = ~(own - group.moved < 2.0)
            drawn = (
                (group.power < states.SURELY_CHARGING_KW)
                & (own - group.moved > states.PAUSE_S)
                & (own - group.at < states.SILENT_S)
            )
            limit = np.fmax(states.SILENT_S, states.SILENT_STEPS * self.assembler.speed_step[known])
            old = own - self.assembler.last_t[known, SPEED] > limit
        silent = self.assembler.silent_s(now)[known]
        idle = group.bins.bins.idle
        state = states.find(idle, group.began, group.at, group.moved, old, silent, (reported & still) | drawn)
        over = states.ended(state, idle, group.at, group.moved, silent, NEW_TRIP_S)
        if over.any():
            self.trip_log.finish(group, np.flatnonzero(over))
            group.finish(np.flatnonzero(over))
            state[over & (state != states.CHARGING) & (state != states.OFFLINE)] = states.PARKED
        self.state[known] = state
        return state

    def _tell(
        self, group: Group, ranges: Ranges, cars: NDArray[np.int64], state: NDArray[np.int8], own: NDArray[np.float64], now: float
    ) -> None:  # fmt: skip
        if not len(cars):
            return
        found = objects(group, ranges, self.assembler, self.check, cars, state, self.names, own)
        self._said[group.cars[cars]] = now
        reported = [(one["id"], orjson.dumps(one)) for one in found]
        self.latest.update(reported)
        for listener in self._listeners:
            listener(reported)
        waited = time.time() - self.assembler.arrived[group.cars[cars]]
        fresh = waited[waited < 5.0]
        if len(fresh):
            self.latency_s += 0.05 * (float(np.quantile(fresh, 0.99)) - self.latency_s)

    @property
    def alive(self) -> bool:
        """Whether steps are being made."""
        return self._thread.is_alive() and time.time() - self._stepped < 30.0

    # Asked from outside ---------------------------------------------------------------------------------------------

    def where(self, car: str) -> tuple[int, Group, Ranges, int] | None:
        """(number, group, ranges, number in the group) of a car by its id."""
        number = self.assembler.index.get(car)
        if number is None:
            return None
        group, local = self.place[number].tolist()
        return number, self.groups[group], self.ranges[group], local

    def tell_soon(self, number: int) -> None:
        """Publish this car's state with the next step, whether it changes or not."""
        self._said[number] = -np.inf

    def forget(self, car: str) -> None:
        """Delete everything known of a car."""
        found = self.where(car)
        assert found is not None
        number, group, ranges, local = found
        with self.lock:
            self.assembler.forget(number)
            group.forget(local)
            ranges.routes.pop(local, None)
            if ranges.changes is not None:
                ranges.changes.forget(local)
            ranges.km[local] = ranges.arrival[local] = ranges.arrival_empty[local] = np.nan
            self.check.notes.pop(number, None)
            self.state[number] = states.WAITING
            self.trip_log.forget(number)
            self.tell_soon(number)
            if self.store is not None:
                self.store.delete(number)

    def _snapshot(self, now: float, everyone: bool = False) -> None:
        """Keep the state of cars: at home all of them with every step, of a fleet a few per second, without the network."""
        if self.store is None:
            return
        if self.at_home or everyone:
            self.trip_log.keep(range(len(self.ids)), now, self.at_home)
        elif now - self._snapped >= SNAPSHOT_S:
            self._snapped, count = now, int(np.ceil(len(self.ids) / FLEET_SNAPSHOT_S))
            self.trip_log.keep([(self._turn + i) % len(self.ids) for i in range(count)], now, False)
            self._turn = (self._turn + count) % len(self.ids)
