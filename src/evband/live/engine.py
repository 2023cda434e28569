"""Columns of cars that share a model: readings in, a band for each grid row of each car out, by one call of the tick engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.calibration.online_columns import OnlineColumns
from evband.channels import AGE, EDGES, READINGS, SENSED, STANDING_KMH, VALUES
from evband.energy import RowMean
from evband.features.columns import FeatureColumns
from evband.features.rows import warming
from evband.live.assemble import Batch, nth_of
from evband.live.learning import Learning
from evband.live.parts import Parts
from evband.live.power_check import PowerCheck
from evband.live.reading import LIMITS
from evband.live.schema import BAND
from evband.live.slow import INSTANT, PATIENCE_S, Slow
from evband.live.tally import Tally
from evband.network.tick import engine_of
from evband.trips.bin_columns import BinColumns
from evband.trips.bin_layout import Rows
from evband.trips.kept import kept, restore

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]
Cars = NDArray[np.int64]
Flags = NDArray[np.bool_]
CHANNELS = tuple(VALUES)
_SPEED, _POWER, _ACCELERATION = (CHANNELS.index(name) for name in ("speed_kmh", "power_kw", "acceleration_ms2"))


class Advance(NamedTuple):
    """Rows that went through the network: what is stored and published of them. Cars are numbered as in the service."""

    cars: Cars
    time: Array
    values: Array  # [rows, channels + 2]
    start: Flags
    first: Flags
    band: Array  # [rows, 5]
    warmup: Flags
    outside: Flags


class Group:
    """`cars` (numbers in the service) with one model; `calibrate`: learn from measured power and widen bands of slow feeds.

    Without `calibrate` bands equal those of `evband predict` on the same readings. With `parts` the model is that of one of the
    cars, and each has heads and a data sheet of its own. A car whose started model learns (`learn`) is a group by itself.
    """

    def __init__(
        self, model: PowerModel, cars: Cars, calibrate: bool, check: PowerCheck, parts: Parts | None = None, level: float = 0.9,
        learn: bool = False,
    ) -> None:  # fmt: skip
        count = len(cars)
        self.cars, self.calibrate, self.level, self._check = cars, calibrate, level, check
        self.hz, self.parts = float(model.settings_.hz), parts
        self._heavy = np.ones(count) if parts is None else parts.heavy
        self.learning = Learning(model, level) if learn else None
        self._use(model)
        self.features = FeatureColumns(model.feature_map_, count, None if parts is None else parts.sheets)
        slow: dict[str, Any] = {}
        if calibrate:  # what a model not trained for it needs
            slow = {"max_gap_s": PATIENCE_S, "inputs": model.feature_map_.channels}
        bridged = bool(model.settings_.bridge_s and model.settings_.thinning)
        self._trained_slow = bridged or model.feature_map_.dense
        if bridged:
            slow = {"bridge_s": model.settings_.bridge_s}
        self.bins = BinColumns(self.hz, count, CHANNELS, lag=model.feature_map_.lag, **slow)
        self.online = OnlineColumns(count, level, self.hz)
        errors = None if model.energy_ is None else model.errors_
        self._over_trips = None if errors is None else RowMean(model.feature_map_, errors.mean)
        self.tally = Tally(errors, self._heavy, self.engine.members, self.hz, level)
        self._out = np.zeros((count, len(BAND)))
        self.at, self.began, self.moved = (np.full(count, np.nan) for _ in range(3))  # s: last row, drive, motion
        self.speed, self.power = np.full(count, np.nan), np.full(count, np.nan)
        self.band = np.full((count, len(BAND)), np.nan)
        self.since = np.zeros(count)  # rows since the network's state began
        self.rows = np.zeros(count)  # of this drive
        self.outside = np.zeros(count, bool)
        self.unknown = np.zeros((count, len(model.feature_map_.channels)), bool)  # inputs without a value
        self.age = np.zeros(count)  # s from the last speed reading to the last row
        self._compile()

    def _use(self, model: PowerModel) -> None:
        """Make bands with this model from now on."""
        count, parts = len(self.cars), self.parts
        self.model, self.engine = model, engine_of(model, self.level, vehicles=count)
        self.slow = Slow(model, self.level, self._heavy)
        self._steps = model.calibration_.steps(model.feature_map_.scaled_input)
        self._factors = np.tile(self._steps.factors, (count, 1)) if parts is None else parts.fleet.stretch[parts.rows]
        if parts is not None:
            self.engine.own_heads(*parts.heads)

    def _follow(self) -> None:
        """Go on with what was learned, as `evband.streaming.Stream` does."""
        assert self.learning is not None
        before, state = self.engine, self.engine.state(0)
        self._use(self.learning.model)
        if (differ := self.learning.compared(before, self.engine)) is not None:
            self.online.follow(np.zeros(1, np.int64), *differ)
        self.engine.set_state(0, *state)

    def _compile(self) -> None:
        """Let everything that is compiled be compiled now, and not while readings wait."""
        none, one = np.zeros(0, np.int64), np.zeros(1, np.int64)
        self.bins.take(none, np.zeros(0), np.zeros((0, len(CHANNELS))))
        self.bins.close(np.full(len(self.cars), np.nan))
        x, r = (np.zeros((1, size), np.float32) for size in (self.engine.arch.inputs, self.engine.arch.road))
        self.engine.tick_many(x, r, out=np.zeros((1, len(BAND))), vehicles=one)
        self.engine.reset(0)

    def step(self, batch: Batch, now: Array) -> Iterator[Advance]:
        """Readings (cars numbered as in the service, all of this group) and the clock of each car; the rows they complete,
        in rounds of one row per car. What became of each reading is in `fate`."""
        values = np.ascontiguousarray(batch.values[:, : len(CHANNELS)])
        pieces, self.fate = self.bins.take(np.searchsorted(self.cars, batch.cars), batch.times, values)
        return self._advance(pieces + self.bins.close(now))

    def _advance(self, pieces: list[Rows]) -> Iterator[Advance]:
        if not pieces:
            return
        rows = pieces[0] if len(pieces) == 1 else Rows(*map(np.concatenate, zip(*pieces, strict=True)))
        nth = nth_of(rows.car)
        for k in range(int(nth.max()) + 1):
            yield self._round(Rows(*(column[nth == k] for column in rows)))

    def _round(self, rows: Rows) -> Advance:
        """One row each of some cars."""
        cars = rows.car
        self._begin(rows)
        values = dict(zip((*CHANNELS, *EDGES), rows.values.T, strict=True))
        values |= {READINGS: rows.readings.astype(float), SENSED: rows.sensed.astype(float)}
        values[AGE] = np.where(rows.readings > 0, 0.0, rows.age)
        x, r, outside = self.features.tick(cars, values)
        raw = self.engine.tick_many(x, r, out=self._out[: len(cars)], vehicles=cars).copy()
        location = self.engine.location[cars]
        power, speed = rows.values[:, _POWER], rows.values[:, _SPEED]
        known = self.cars[cars]
        moving = speed >= STANDING_KMH
        self._check.see(known, power, raw[:, 0], moving)
        power = np.where(self._check.trusted[known] & (np.abs(power) < LIMITS["power_kw"][1]), power, np.nan)
        measuring = np.full(len(cars), self.calibrate) & self._check.trusted[known]
        noise = (raw[:, 3] / self._factors[cars, self._steps.which(x)]) ** 2
        mean = raw[:, 0]
        if self._over_trips is not None:
            mean, members = self._over_trips.of(mean, location.T, speed, r)
            location = members.T
        self.tally.add(cars, speed, mean, noise, outside, power, location, measuring)
        band = self._calibrated(rows, raw, power) if self.calibrate else raw
        warmup = warming(self.since[cars], self.hz)
        if self.learning is not None and self.learning.take(
            x[0], r[0], bool(self.since[0] == 0), float(speed[0]), float(power[0]), float(rows.sure[0])
        ):
            self._follow()
        self.since[cars] += 1
        self.rows[cars] += 1
        self.at[cars], self.speed[cars], self.power[cars] = rows.time, speed, power
        self.moved[cars] = np.where(moving, rows.time, self.moved[cars])
        self.band[cars], self.outside[cars], self.age[cars] = band, outside, rows.age
        self.unknown[cars] = np.isnan(np.stack([values[c] for c in self.model.feature_map_.channels], -1))
        return Advance(known, rows.time, rows.values, rows.start, rows.first, band, warmup, outside)

    def _begin(self, rows: Rows) -> None:
        """Drives and segments that start with these rows."""
        new = rows.car[rows.first]
        if len(new):
            self._end()
            self.features.reset(new)
            self.online.reset(new)
            self.tally.reset(new)
            self.rows[new] = 0.0
            self.began[new] = self.moved[new] = rows.time[rows.first]
        gap = rows.car[rows.start & ~rows.first]
        self.features.gap(gap)
        for car in rows.car[rows.start].tolist():
            self.engine.reset(car)
        self.since[rows.car[rows.start]] = 0.0

    def _calibrated(self, rows: Rows, raw: Array, power: Array) -> Array:
        """Corrected by what was learned of this drive's power, widened where speed is old; then learn from this row's power,
        as far as a single reading tells of the row's mean."""
        cars, speed, mean = rows.car, rows.values[:, _SPEED], raw[:, 0]
        learned = self.online.learned(cars)
        centre, low, high = learned.band(mean, raw[:, 1], raw[:, 2])
        measured = self.bins.bins.last_t[cars, _ACCELERATION] > rows.time - 1.0 / self.hz
        sure = rows.sure * np.where(measured, 1.0, self.model.feature_map_.follows)
        hidden = 0.0 if self._trained_slow else self.slow.hidden(cars, speed, sure, rows.age)
        instant = rows.sampled & ((rows.sure < 1.0) | (self.model.feature_map_.lag > 0.0))  # where training knew means
        blur = self.slow.hidden(cars, speed, np.where(instant, INSTANT, 1.0), rows.age)
        beside = np.hypot(hidden, blur)
        judged = centre - np.hypot(centre - low, beside), centre + np.hypot(high - centre, beside)
        trust = (high - low) ** 2 / ((high - low) ** 2 + 4.0 * beside**2)
        self.online.observe(cars, mean, *judged, power, trust)
        low, high = centre - np.hypot(centre - low, hidden), centre + np.hypot(high - centre, hidden)
        return np.stack([centre, low, high, learned.stretch * raw[:, 3], learned.stretch * raw[:, 4]], -1)

    def finish(self, cars: Cars) -> None:
        """End the drives of these cars: no rows until they move."""
        self.bins.bins.idle[cars] = True
        if len(cars):
            self._end()

    def _end(self) -> None:
        """What the drive taught stays."""
        if self.learning is not None and self.learning.end():
            self._follow()

    def forget(self, car: int) -> None:
        """As if nothing of this car had ever been read."""
        one = np.array([car])
        self.bins.forget(car)
        self.features.reset(one)
        self.online.reset(one)
        self.tally.reset(one)
        if self.learning is not None:
            self.learning.forget()
            self._use(self.learning.model)
        self.engine.reset(car)
        for column in (self.at, self.began, self.moved, self.speed, self.power, self.band):
            column[car] = np.nan
        self.since[car] = self.rows[car] = 0.0
        self.outside[car] = self.unknown[car] = False

    def to_dict(self, car: int, network: bool = True) -> dict[str, Any]:
        """All that is needed to go on with this car later, JSON-able."""
        saved = kept({name: getattr(self, name) for name in _NUMBERS}, car)
        saved |= {name: getattr(self, name).to_dict(car) for name in ("bins", "features", "online", "tally")}
        if network:
            saved["h"], saved["c"] = (part.ravel().tolist() for part in self.engine.state(car))
        if self.learning is not None:
            saved["learning"] = self.learning.to_dict()
        return saved

    def restore(self, car: int, saved: dict[str, Any], rows: list[bytes], model: tuple[str, bytes] | None) -> None:
        """Go on from what `to_dict` gave and `Learning.lesson` wrote; raises where it does not fit. Without the network's state it
        warms up anew."""
        if self.learning is not None:
            self.learning.restore(saved.get("learning"), rows, model)
            self._use(self.learning.model)
        for name in ("bins", "features", "online", "tally"):
            getattr(self, name).restore(car, saved[name])
        restore({name: getattr(self, name) for name in _NUMBERS}, car, saved)
        if "h" in saved:
            shape = self.engine.state(car)[0].shape
            h, c = (np.asarray(saved[name], np.float32).reshape(shape) for name in ("h", "c"))
            if not (np.isfinite(h).all() and np.isfinite(c).all()):
                raise ValueError("the network's state is not finite")
            self.engine.set_state(car, h, c)
        else:
            self.bins.bins.broken[car] = True


_NUMBERS = ("at", "began", "moved", "speed", "power", "since", "rows")
