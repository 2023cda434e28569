"""From readings to columns: the one place for ages, units, signs, retained values, restarts, duplicates and wrong clocks.

Sources put readings in from any thread; the engine drains them every tenth of a second as arrays, one row per reading or
sample. What cannot be used is dropped here and counted (`evband.live.drops`).
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.live.drops import Drops
from evband.live.reading import COLUMNS, LIMITS, SLOW, Reading, Sample
from evband.trips.kept import kept, restore

Array = NDArray[np.float64]

HEAD = 4  # car, at, arrived, retained; then the columns
WIDTH = HEAD + len(COLUMNS)
COLUMN = {name: j for j, name in enumerate(COLUMNS)}
SPEED, POWER, SOC = COLUMN["speed_kmh"], COLUMN["power_kw"], COLUMN["soc_pct"]
CLOCK_S = 120.0  # a clock this far from ours is wrong
STEADY_S = 0.75  # a wrong clock that runs with ours to this much is shifted instead of dropped ...
STEADY_COUNT = 3  # ... once it did so this often
MOST_PER_S = 100  # messages of one car
MOST_WAITING = 2_000_000 // WIDTH  # rows between two drains; more means that nobody drains
HARDEST_MS2 = LIMITS["acceleration_ms2"][1]  # no car changes speed faster: two cars under one id do
WATTS = 1000.0
GRACE_STAMPED_S = 2.5  # a feed with a clock of its own may arrive so late before its bin is closed without it
GRACE_ARRIVAL_S = 0.05
AFTER_RESTART_S, AFTER_STALL_S = 10.0, 2.0  # so long bins wait for readings that were kept while we were away, or slept
_LOW = np.array([LIMITS[name][0] for name in COLUMNS])
_HIGH = np.array([LIMITS[name][1] for name in COLUMNS])
_SLOW = np.array([name in SLOW for name in COLUMNS])


def nth_of(cars: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each row the number of rows of its car before it."""
    order = np.argsort(cars, kind="stable")
    ordered, nth = cars[order], np.empty(len(cars), np.int64)
    nth[order] = np.arange(len(cars)) - np.searchsorted(ordered, ordered)
    return nth


class Batch(NamedTuple):
    """Readings that may be used, in order of arrival."""

    cars: NDArray[np.int64]
    times: Array  # on each car's own clock
    values: Array  # [readings, COLUMNS]


class Assembler:
    """Readings of `cars` (ids); those in `trusted` send power in kW, positive for discharge, as documented."""

    def __init__(self, cars: Sequence[str], trusted: Iterable[str] = ()) -> None:
        count, trust = len(cars), set(trusted)
        self.ids, self.drops = list(cars), Drops(len(cars))
        self.index = {name: i for i, name in enumerate(cars)}
        self._lock, self._buffer = threading.Lock(), array("d")
        self.messages = 0
        self.arrived = np.full(count, np.nan)  # wall time of the last reading
        self.newest = np.full(count, np.nan)  # its own time
        self.rate = np.ones(count)  # seconds of the car's clock per second of ours: replays run fast
        self._stamped = np.zeros(count, bool)
        self._shift, self._deviation, self._steady = np.zeros(count), np.zeros(count), np.zeros(count, np.int64)
        self.power_scale = np.ones(count)
        self.trusted = np.array([name in trust for name in cars], bool)
        self.suspect = np.zeros(count)  # recent powers beyond any limit
        self.jumps = np.zeros(count)  # recent impossible changes of speed
        self.speed_step = np.full(count, np.nan)  # mean seconds between readings of speed
        self.last_t, self.last_v = (np.full((count, len(COLUMNS)), np.nan) for _ in range(2))
        self.live = np.zeros((count, len(COLUMNS)), bool)  # read live, not only primed by a retained value
        self._second, self._heard = 0, np.zeros(count, np.int64)
        self._asked, self._hold_until = np.inf, -np.inf

    def put(self, item: Reading | Sample, arrived: float | None = None) -> None:
        """Take a reading or a sample; from any thread."""
        values = {item.channel: item.value} if isinstance(item, Reading) else item.values
        car = self.index.get(item.car)
        if car is None:
            self.drops.add("unknown_car")
            return
        at, now = np.nan if item.at is None else item.at, time.time() if arrived is None else arrived
        row = [car, at, now, item.retained, *[np.nan] * len(COLUMNS)]
        for name, value in values.items():
            if -1e300 < value < 1e300:
                row[HEAD + COLUMN[name]] = value
            else:
                self.drops.add("not_a_number", car)
        with self._lock:
            if len(self._buffer) < MOST_WAITING * WIDTH:
                self._buffer.extend(row)
            else:
                self.drops.add("too_fast", car)

    def drain(self, now: float) -> Batch:
        """Everything put in since the last time, checked."""
        with self._lock:
            buffer, self._buffer = self._buffer, array("d")
        rows = np.frombuffer(buffer, float).reshape(-1, WIDTH).copy()
        self.messages += len(rows)
        rows = self._not_too_fast(rows, now)
        cars, values = rows[:, 0].astype(np.int64), rows[:, HEAD:]
        self._limits(cars, values)
        self._retained(cars, values, rows[:, 3] != 0.0)
        times, usable = self._times(cars, rows[:, 1], rows[:, 2])
        usable &= ~np.isnan(values).all(axis=1)
        cars, times, values, arrived = cars[usable], times[usable], values[usable], rows[usable, 2]
        self._watch(cars, times, values)
        self.arrived[cars] = arrived
        self.newest[cars] = np.fmax(self.newest[cars], times)
        return Batch(cars, times, values)

    def now(self, wall: float) -> Array:
        """[cars] the time on each car's own clock up to which all readings may be taken to be here; NaN before any."""
        grace = np.where(self._stamped, GRACE_STAMPED_S * self.rate, GRACE_ARRIVAL_S)
        return np.asarray(self.newest + (wall - self.arrived) * self.rate - grace)

    def complete_until(self, wall: float) -> Array:
        """[cars] `now`, but after a restart or a stall no further than the newest reading: what waits is still to come."""
        if wall - self._asked > AFTER_STALL_S:
            self._hold_until = max(self._hold_until, wall + AFTER_STALL_S)
        self._asked, clock = wall, self.now(wall)
        return np.fmin(clock, self.newest) if wall < self._hold_until else clock

    def silent_s(self, wall: float) -> Array:
        """[cars] seconds since the last reading, on the car's own clock."""
        return np.asarray((wall - self.arrived) * self.rate)

    def forget(self, car: int) -> None:
        """As if this car had never sent anything."""
        for column in (self.arrived, self.newest, self.speed_step):
            column[car] = np.nan
        for column in (self._shift, self._deviation, self.suspect, self.jumps):
            column[car] = 0.0
        self.last_t[car] = self.last_v[car] = np.nan
        self.live[car] = False
        self.drops.forget(car)

    def to_dict(self, car: int) -> dict[str, Any]:
        """What is remembered of one car, JSON-able."""
        return kept(self._memory, car)

    def restore(self, car: int, saved: Mapping[str, Any], wall: float) -> None:
        """Go on at `wall` from what `to_dict` gave; raises where it does not fit."""
        restore(self._memory, car, saved)
        self._hold_until = wall + AFTER_RESTART_S

    @property
    def _memory(self) -> dict[str, NDArray]:
        return {name: getattr(self, name) for name in _MEMORY}

    def _not_too_fast(self, rows: Array, now: float) -> Array:
        if int(now) != self._second:
            self._second = int(now)
            self._heard[:] = 0
        cars = rows[:, 0].astype(np.int64)
        here = np.bincount(cars, minlength=len(self._heard)) if len(cars) else np.zeros_like(self._heard)
        room = np.maximum((MOST_PER_S * np.maximum(self.rate, 1.0)).astype(np.int64) - self._heard, 0)
        self._heard += here
        if (here <= room).all():
            return rows
        keep = nth_of(cars) < room[cars]
        self.drops.add_many("too_fast", cars[~keep])
        kept: Array = rows[keep]
        return kept

    def _limits(self, cars: NDArray[np.int64], values: Array) -> None:
        values[:, POWER] *= self.power_scale[cars]
        unsure = ~self.trusted[cars]
        low, high = np.tile(_LOW, (len(cars), 1)), np.tile(_HIGH, (len(cars), 1))
        low[unsure, POWER] *= WATTS  # its unit is still to be found out
        high[unsure, POWER] *= WATTS
        with np.errstate(invalid="ignore"):
            bad = (values < low) | (values > high)
            zero = (values[:, SOC] == 0.0) & (self.last_v[cars, SOC] > 3.0)  # what a gateway sends while it wakes up
        which = np.nonzero(bad)
        self.drops.add_many("out_of_limits", cars[which[0]])
        np.add.at(self.suspect, cars[which[0][which[1] == POWER]], 1.0)
        self.drops.add_many("jump", cars[zero])
        values[bad] = np.nan
        values[zero, SOC] = np.nan

    def _retained(self, cars: NDArray[np.int64], values: Array, retained: NDArray[np.bool_]) -> None:
        """Of stored values only slow ones are taken, and only where nothing was read live; never a speed."""
        ghost = retained[:, None] & ~np.isnan(values) & (~_SLOW | self.live[cars])
        self.drops.add_many("retained", cars[np.nonzero(ghost)[0]])
        values[ghost] = np.nan
        fresh = ~retained[:, None] & ~np.isnan(values)
        np.logical_or.at(self.live, cars, fresh)

    def _times(self, cars: NDArray[np.int64], at: Array, arrived: Array) -> tuple[Array, NDArray[np.bool_]]:
        """(time of each reading, whether it can be used): its own where its clock can be believed, else that of arrival."""
        stamped = ~np.isnan(at)
        self._stamped[cars] = stamped
        expected = np.where(self.rate[cars] == 1.0, arrived, self._expected(cars, arrived))
        times = np.where(stamped, at + self._shift[cars], expected)
        usable = np.ones(len(cars), bool)
        for i in np.flatnonzero(np.abs(times - expected) > CLOCK_S * self.rate[cars]).tolist():
            shift = self._reset_clock(int(cars[i]), float(expected[i] - at[i]))
            if shift is None:
                usable[i] = False
                self.drops.add("clock", int(cars[i]))
            else:
                times[i] = at[i] + shift
        return times, usable

    def _expected(self, cars: NDArray[np.int64], arrived: Array) -> Array:
        known = self.newest[cars] + (arrived - self.arrived[cars]) * self.rate[cars]
        return np.where(np.isnan(known), arrived, known)

    def _reset_clock(self, car: int, deviation: float) -> float | None:
        """The shift that brings a wrong clock to ours: 0 once it is right again, its deviation once that stands still."""
        if abs(deviation) <= CLOCK_S * self.rate[car]:
            self._shift[car], self._steady[car] = 0.0, 0
            return 0.0
        steady = abs(deviation - self._deviation[car]) <= STEADY_S * self.rate[car]
        self._steady[car] = self._steady[car] + 1 if steady else 1
        self._deviation[car] = deviation
        if self._steady[car] < STEADY_COUNT:
            return None
        self._shift[car] = deviation
        return deviation

    def _watch(self, cars: NDArray[np.int64], times: Array, values: Array) -> None:
        """Remember the last value of every column, how often speed comes, and changes of speed that cannot be."""
        known = ~np.isnan(values)
        rows = np.flatnonzero(known[:, SPEED])
        nth = nth_of(cars[rows])
        for k in range(int(nth.max(initial=-1)) + 1):
            self._watch_speed(rows[nth == k], cars, times, values)
        known[rows, SPEED] = ~np.isnan(values[rows, SPEED])
        for j in np.flatnonzero(known.any(axis=0)).tolist():
            rows = np.flatnonzero(known[:, j])
            self.last_t[cars[rows], j], self.last_v[cars[rows], j] = times[rows], values[rows, j]

    def _watch_speed(self, rows: NDArray[np.int64], cars: NDArray[np.int64], times: Array, values: Array) -> None:
        """One reading of speed each; of two cars under one id the first is followed."""
        who, t, v = cars[rows], times[rows], values[rows, SPEED]
        since = t - self.last_t[who, SPEED]
        with np.errstate(invalid="ignore"):
            hard = np.abs(v - self.last_v[who, SPEED]) / 3.6 > HARDEST_MS2 * np.maximum(since, 0.5)
            hard &= (since >= 0.0) & (since < 5.0)
            step = (since > 0.0) & (since < 300.0)
        self.drops.add_many("jump", who[hard])
        np.add.at(self.jumps, who[hard], 1.0)
        values[rows[hard], SPEED] = np.nan
        old = self.speed_step[who[step]]
        self.speed_step[who[step]] = np.where(np.isnan(old), since[step], old + 0.2 * (since[step] - old))
        self.last_t[who[~hard], SPEED], self.last_v[who[~hard], SPEED] = t[~hard], v[~hard]

    def age(self, seconds: float) -> None:
        """Let suspicions fade: called once per step with the seconds since the last."""
        fade = np.exp(-max(seconds, 0.0) * self.rate / 60.0)  # a clock may be set back
        self.jumps *= fade
        self.suspect *= fade


_MEMORY = (
    "arrived", "newest", "_stamped", "_shift", "_deviation", "_steady", "suspect", "jumps", "speed_step", "last_t", "last_v", "live",
)  # fmt: skip
