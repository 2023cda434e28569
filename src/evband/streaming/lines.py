"""JSON lines in, JSON lines out: one line for each line, whatever comes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from evband.channels import CHANNELS, NEW_TRIP_S
from evband.energy import Ahead, Doubts, RowMean, SoFar, check_battery, known_battery
from evband.energy.battery import held_kwh
from evband.energy.range import LEVELS, plan
from evband.energy.student import stdtrit
from evband.errors import SettingsError
from evband.logs import telemetry
from evband.logs.border import LATEST_S, LONGEST_ID
from evband.streaming.reasons import EVERY_S, Parts, Reasons, planned_parts
from evband.streaming.saved import check
from evband.streaming.ticks import NUMBERS, Stream
from evband.trips.bins import Bins, Row

if TYPE_CHECKING:
    from evband.model import PowerModel

RANGE_EVERY_S = 10.0  # range moves slowly; between two looks the last one stands
LIMITS = {name: (channel.low, channel.high) for name, channel in CHANNELS.items()}
NOTHING = dict.fromkeys(NUMBERS) | {"warmup": True, "outside": False}


class Battery:
    """Charge and way ahead of a stream: range from where the car is now."""

    def __init__(
        self, model: PowerModel, soc: float, capacity_kwh: float | None, route: Any, reserve_soc: float = 10.0
    ) -> None:
        capacity_kwh, _ = known_battery(model, capacity_kwh, Doubts())
        check_battery(soc, capacity_kwh, reserve_soc)
        self.soc, self.capacity_kwh, self.reserve_soc, self._route = soc, capacity_kwh, reserve_soc, route
        self.look_ahead(model)

    def look_ahead(self, model: PowerModel) -> None:
        """Plan the way with this model, long enough for whatever charge a line may report."""
        full = plan(model, 100.0, self.capacity_kwh, self._route, 0.0)
        self.model, self.notes = model, full.notes
        self.way: Ahead = full.way
        self.parts = planned_parts(model, self._route, full.way)

    def range_km(self, soc: float, driven_km: float, past: SoFar) -> dict[str, float]:
        """Quantiles of the distance still to go until the reserve."""
        kwh = held_kwh(soc, self.capacity_kwh, self.reserve_soc)
        reach = self.way.after(driven_km).reach(kwh, past, tuple(LEVELS.values()))
        return dict(zip(LEVELS, reach, strict=True))


class LineStream:
    """A drive as telemetry lines. Measured power is used only with `adapt`: an offset, adaptive width, energy as measured, and
    a started model learns the car."""

    def __init__(
        self, model: PowerModel, level: float = 0.9, adapt: bool = False, battery: Battery | None = None
    ) -> None:
        self._stream = Stream(model, level, adapt)
        self._adapt = adapt
        self._bins = Bins(self._stream.hz, bridge_s=model.settings_.bridge_s, lag=model.feature_map_.lag)
        self._errors = None if model.energy_ is None else model.errors_
        self._past = None if self._errors is None else SoFar(self._errors)
        self._path = None if self._errors is None else RowMean(model.feature_map_, self._errors.mean)
        self._battery = battery
        self._parts = None if battery is None else Parts(model.feature_map_)
        self._quantiles = {} if self._errors is None else {k: stdtrit(self._errors.dof, p) for k, p in LEVELS.items()}  # fmt: skip
        self._model = hashlib.sha256(model.theta_.tobytes()).hexdigest()[:16]
        self.lines = 0
        self.time: float | None = None
        self.trip: str | None = None
        self._begin()

    def _begin(self) -> None:
        """Counters of a new trip."""
        self.km = self.seconds = self.mean_kwh = self.measured_kwh = self.size = 0.0
        self.members_kwh = np.zeros(self._stream.engine.members)
        self.soc: float | None = None
        self.range: dict[str, float] | None = None
        self._looked = -math.inf
        self._reasons = Reasons()
        self._before: dict[str, Any] | None = None  # the drive so far, as the reasons knew it last
        self.shown: dict[str, Any] = dict(NOTHING)
        self.band_s: float | None = None  # end of the bin that the shown band is of
        self._bins.reset()
        self._stream.reset()
        if self._past is not None:
            self._past.reset()

    @property
    def model(self) -> PowerModel:
        """With what was learned of the car."""
        return self._stream.model

    def notes(self) -> list[str]:
        """What the driver should know about what is learned; each note once."""
        if self._stream.learner is None:
            return []
        found, self._stream.learner.notes = self._stream.learner.notes, []
        return found

    def line(self, text: str) -> str:
        """The answer to one line: a band, or an error object."""
        self.lines += 1
        try:
            sample = telemetry.unwrapped(json.loads(text))
        except (ValueError, RecursionError):
            return self._error("it is not JSON")
        if sample is None:
            return self._error("it is not a JSON object")
        time = telemetry.time_of(sample)
        if time is None:
            return self._error("it has no time; every object needs utc (seconds)")
        given = next(sample[key] for key in telemetry.TIMES if key in sample)
        return json.dumps({"utc": given} | self.sample(time, sample))

    def _error(self, what: str) -> str:
        return json.dumps({"error": f"Line {self.lines} was passed over: {what}.", "line": self.lines})

    def sample(self, time: float, sample: Mapping[str, Any]) -> dict[str, Any]:
        """Take one sample; what is known of power, energy and range after it."""
        trip = sample.get("trip_id")
        trip = None if trip is None else str(trip)[:LONGEST_ID]
        if abs(time) > LATEST_S:
            return self.shown | {"held": True, "ignored": "time"}
        if self.time is not None:
            if (trip is not None and trip != self.trip) or abs(time - self.time) > NEW_TRIP_S:
                self._begin()
            elif time <= self.time:
                return self.shown | {"held": True, "ignored": "late" if time < self.time else "duplicate"}
        self.time, self.trip = time, trip
        values = readings(sample)
        rows = self._bins.add(time, values)
        self.soc = values.get("soc_pct", self.soc)
        for row in rows:
            self._row(row)
        return self.shown | {"held": not rows}

    def _row(self, row: Row) -> None:
        if row.start:
            self._stream.gap()
        values, power = row.values, row.values.get("power_kw")
        band = self._stream.step(values)
        self._count(values["speed_kmh"], band.mean_kw, band.aleatoric_kw, band.outside, power)
        shown = self._stream.learned(band, values).to_dict()
        self.band_s = row.time_s
        self.shown = shown | {"energy_kwh": self._energy(), "range_km": self._range(row.time_s)}
        if self._battery is not None:
            self.shown["because"] = self._reasons.because

    def _count(self, speed: float, mean: float, aleatoric: float, outside: bool, power: float | None) -> None:
        """Move the trip's sums on by one row: measured energy where power is known and trusted, else predicted."""
        step = 1.0 / self._stream.hz
        hours = step / 3600.0
        self.km += max(speed, 0.0) * hours
        if self._errors is None or self._past is None:
            return
        size = self._errors.size((aleatoric / self._stream.stretch) ** 2, outside)
        assert self._path is not None
        location = self._stream.engine.location[:1].T
        means, members = self._path.of(np.array([mean]), location, np.array([speed]), self._stream.road[None])
        mean = float(means[0])
        if self._parts is not None:
            used = power if self._adapt and power is not None else mean + self._errors.bias
            parts = {group: float(kw[0]) * hours for group, kw in self._parts.kw(self._stream.road[None]).items()}
            self._reasons.add((mean + self._errors.bias) * hours, used * hours, parts)
        if self._adapt and power is not None:
            self.measured_kwh += power * hours
            self._past.add(power - mean, size, step)
            return
        if self._adapt:
            self._past.add(math.nan, size, step)
        self.seconds += step
        self.mean_kwh += (mean + self._errors.bias) * hours
        self.members_kwh += members[:, 0] * hours  # what all share changes no spread
        self.size += size * step

    def _energy(self) -> dict[str, float] | None:
        """Energy since the trip's start; exact as far as it was measured."""
        if self._errors is None:
            return None
        centre, scale = self.measured_kwh + self.mean_kwh, 0.0
        if self.seconds:
            scale = float(self._errors.scale_kwh(self.seconds, self.size, self.members_kwh))
        return {name: centre + q * scale for name, q in self._quantiles.items()}

    def _range(self, time: float) -> dict[str, float] | None:
        if self._battery is None or self._past is None:
            return None
        if self.range is None or time - self._looked >= RANGE_EVERY_S:
            used = 100.0 * (self.measured_kwh + self.mean_kwh) / self._battery.capacity_kwh
            soc = self._battery.soc - used if self.soc is None else self.soc
            if self._battery.model is not self._stream.model:  # it has learned
                self._battery.look_ahead(self._stream.model)
            self.range, self._looked = self._battery.range_km(soc, self.km, self._past), time
            self._explain(time, soc)
        return self.range

    def _explain(self, time: float, soc: float) -> None:
        """Every minute, why range changed."""
        battery, mark = self._battery, self._reasons.mark
        assert battery is not None
        assert self._past is not None
        assert self.range is not None
        if mark is not None and time - mark["time"] < EVERY_S:
            return
        ahead_km = 0.0
        if self._before is not None:
            before = SoFar(self._past.errors)
            before.restore(self._before)
            ahead_km = self.range["p50"] - battery.range_km(soc, self.km, before)["p50"]
        self._reasons.look(time, self.km, self.range["p50"], battery.way, battery.parts, ahead_km)
        self._before = self._past.to_dict()

    def to_dict(self) -> dict[str, Any]:
        """Everything, so that the next line is answered as if the stream had never stopped."""
        state = {name: getattr(self, name) for name in _STATE} | {"_looked": max(self._looked, -1e18)}
        return state | {
            "model": self._model,
            "members_kwh": self.members_kwh.tolist(),
            "bins": self._bins.to_dict(),
            "stream": self._stream.to_dict(),
            "past": None if self._past is None else self._past.to_dict(),
            "reasons": self._reasons.to_dict() | {"before": self._before},
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave, with the same model."""
        if saved.get("model", self._model) != self._model:
            raise SettingsError("The saved state belongs to another model; start without it.")
        check(saved, self.to_dict(), 1.0 / self._stream.hz)
        try:
            self._stream.restore(saved["stream"])
            self._bins.restore(saved["bins"])
            self.members_kwh = np.asarray(saved["members_kwh"], float).reshape(self.members_kwh.shape)
            if self._past is not None:
                self._past.restore(saved["past"])
            self._reasons.restore(saved["reasons"])
            self._before = saved["reasons"]["before"]
            for name in (*_STATE, "_looked"):
                setattr(self, name, saved[name])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
            raise SettingsError(f"The saved state of the stream is damaged ({problem}); start without it.") from None


_STATE = (
    "lines", "time", "trip", "km", "seconds", "mean_kwh", "measured_kwh", "size", "soc", "range", "shown", "band_s",
)  # fmt: skip


def readings(sample: Mapping[str, Any]) -> dict[str, float]:
    """Our channels in a telemetry object; what cannot be is left out, power is made of current and voltage if need be."""
    values = {}
    for key, raw in sample.items():
        channel = telemetry.KEYS.get(key)
        if channel is None:
            continue
        value = telemetry.number(raw)
        if value is not None:
            low, high = LIMITS[channel]
            if low <= value <= high:
                values[channel] = value
    if "power_kw" not in values and "battery_current_a" in values and "battery_voltage_v" in values:
        values["power_kw"] = values["battery_current_a"] * values["battery_voltage_v"] / 1000.0
    return values
