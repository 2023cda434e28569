"""From gridded trips to arrays: the network's inputs x, the road-load features r and the power y.

Everything learned here (ranges, scales, hinge knots) comes from training rows only, is small, and goes into the model
file as JSON. `FeatureMap.transform` serves whole trips, `FeatureMap.stream` single ticks; both see the past only.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from evband.channels import AGE, READINGS, SENSED
from evband.errors import SettingsError, TripsError
from evband.features import density, road_load
from evband.features.checking import OF_ROAD, check_power, checked
from evband.features.names import require_channels, resolve_features
from evband.features.physics import least_squares, limits_of
from evband.features.rows import Rows, power_of, starts_of

if TYPE_CHECKING:
    from evband.features.columns import FeatureStream
    from evband.trips import Trip

Scaling = Literal["standard", "minmax"]

ROAD = "road: "  # before the name of an input that is a road-load feature
CHUNK_ROWS = 1 << 15  # turned into features at a time: in float64 a day at 10 Hz would take a gigabyte
ROUNDING = 1e-9  # of its largest value (or of 1): a column that varies less does so by rounding only
REACH = 3.5  # how far a road term counts beyond its training range, in such ranges
FEW_REACH = 1.0  # the same, where trips are few
FADE_TRIPS = 5  # the fewest beginnings that separate what fades after each from what happened to be driven then
# Slow channels, whose last reading stands: how far beyond training they count
HELD = {"ambient_temp_c": 5.0, "wind_ms": 2.0, "hvac_power_kw": 1.0}
LIMITLESS = 1e300


@dataclass
class FeatureMap:
    """Channels in, arrays out; every number in it was learned from training rows."""

    optional: ClassVar[tuple[str, ...]] = ()  # channels that a trip may lack: unknown is a value of theirs
    farthest: ClassVar[float] = np.inf  # deviations that an input may stray

    channels: tuple[str, ...] = ()
    hz: float = 1.0
    scaling: Scaling = "standard"
    edges: bool = False  # road-load terms of the speeds at the bin's edges, too
    fade: bool = False  # and of what is drawn when a trip begins and fades over minutes
    products: bool = False  # the network sees the road-load features beside the channels
    ages: bool = False  # and the time since the last speed reading
    lag: float = 0.0  # these three for feeds with fewer readings than in training: see `evband.features.density`
    hidden_kw: float = 0.0
    follows: float = 1.0
    tilt: float = 0.0  # what acceleration holds of a slope, where the training logs measured it
    knots: list[tuple[str, float]] = field(default_factory=list)  # (road term, knot in its unit)
    low: np.ndarray = field(default_factory=lambda: np.empty(0))  # [channels] training range
    high: np.ndarray = field(default_factory=lambda: np.empty(0))
    typical: np.ndarray = field(default_factory=lambda: np.empty(0))  # [channels] stands in for an unknown value
    input_names: tuple[str, ...] = ()
    x_shift: np.ndarray = field(default_factory=lambda: np.empty(0))  # [F]
    x_scale: np.ndarray = field(default_factory=lambda: np.empty(0))
    road_names: tuple[str, ...] = ()
    r_shift: np.ndarray = field(default_factory=lambda: np.empty(0))  # [K]
    r_scale: np.ndarray = field(default_factory=lambda: np.empty(0))
    r_low: np.ndarray = field(default_factory=lambda: np.empty(0))  # [K] as far as a road term counts
    r_high: np.ndarray = field(default_factory=lambda: np.empty(0))
    y_mean: float = 0.0
    y_std: float = 1.0
    gram: np.ndarray = field(default_factory=lambda: np.empty((0, 0)))  # [K, K] r'r / N of training rows
    moment: np.ndarray = field(default_factory=lambda: np.empty(0))  # [K] r'z / N, z the standardised power
    rows: int = 0  # training rows with known power
    # mass kg, CdA m2, c_rr, where a data sheet narrows what physics allows the road-load path
    sheet: tuple[float, ...] = ()

    @property
    def dense(self) -> bool:
        """Whether the network sees the speed readings per second."""
        return READINGS in self.input_names

    @property
    def sensed(self) -> bool:
        """Whether the network sees where acceleration was measured."""
        return SENSED in self.input_names

    @property
    def needed(self) -> tuple[str, ...]:
        """Channels that every trip must have; an acceleration that was not measured is taken from speed."""
        return tuple(c for c in self.channels if c not in (*self.optional, "acceleration_ms2"))

    @classmethod
    def fit(
        cls,
        trips: abc.Sequence[Trip],
        spec: str | Iterable[str] = "auto",
        hinges: bool = True,
        scaling: Scaling = "standard",
        edges: bool = False,
        products: bool = False,
        fade: bool = False,
        ages: bool = False,
    ) -> Self:
        """Learn ranges, scales, knots and the least-squares moments from gridded training trips."""
        channels = resolve_features(spec, trips)
        rates = {trip.hz for trip in trips}
        hz = rates.pop() if len(rates) == 1 else None
        if hz is None:
            raise TripsError("features need trips on one grid; call trips.on_grid(hz) first.")
        if scaling not in ("standard", "minmax"):
            raise SettingsError(f"scaling must be standard or minmax, not {scaling!r}")
        edges = edges and {"speed_kmh", "acceleration_ms2"} <= set(channels) and density.has_edges(trips)
        fade = fade and len(trips) >= FADE_TRIPS
        self = cls(
            channels=channels, hz=float(hz), scaling=scaling, edges=edges, products=products, fade=fade, ages=ages
        )
        raw = [self.signals_of(trip) for trip in trips]
        y = np.concatenate([power_of(trip) for trip in trips])
        signals = {c: np.concatenate([trip_signals[c] for trip_signals in raw]) for c in raw[0]}
        known = np.isfinite(y) & np.all([np.isfinite(s) for s in signals.values()], axis=0)
        check_power(signals, y, known)
        reach = FEW_REACH if len(trips) < road_load.FEW_TRIPS else REACH
        self.learn({c: s[known] for c, s in signals.items()}, y[known], hinges, reach)
        self.lag, self.hidden_kw, self.follows = density.readings_of(trips)
        if {"acceleration_ms2", "elevation_m"} <= set(channels):
            self.tilt = density.tilt_of(trips)
        if not self.road_names:
            raise TripsError(
                "nothing in these trips moves: every input is constant (a parked car, or one speed throughout); give logs of driving."
            )
        return self

    def learn(self, signals: dict[str, np.ndarray], y: np.ndarray, hinges: bool, reach: float = REACH) -> None:
        """Set every learned number from rows without gaps."""
        values = np.stack([signals[c] for c in self.channels])
        self.low, self.high, self.typical = values.min(1), values.max(1), np.median(values, 1)
        flat = road_load.flat_weather(signals)
        r = self._learn_road(signals, flat, hinges, reach)
        self._learn_inputs(signals, flat, r)
        self.y_mean, self.y_std, self.rows = float(y.mean()), float(y.std()), len(y)
        r = (r - self.r_shift) / self.r_scale
        self.gram, self.moment = r.T @ r / len(y), r.T @ ((y - self.y_mean) / self.y_std) / len(y)

    def _learn_road(self, signals: dict[str, np.ndarray], flat: set[str], hinges: bool, reach: float) -> np.ndarray:
        """Knots, names, scales and limits of the road-load features; returns them as they are, [T, K]."""
        terms = road_load.road_terms(signals, curved=hinges)
        self.knots = road_load.hinge_knots(terms) if hinges else []
        if not self.knots:  # as `_rows` will have it
            terms = road_load.road_terms(signals)
        r = self._with_hinges(np.stack(list(terms.values()), -1), tuple(terms))
        names = (*terms, *(f"max(0,{name}-{knot:.6g})" for name, knot in self.knots))
        kept = _varied(r) & np.array([name not in flat for name in names])
        self.road_names = tuple(name for name, keep in zip(names, kept, strict=True) if keep)
        self.knots = [k for k, keep in zip(self.knots, kept[len(terms) :], strict=True) if keep]
        r = r[:, kept]
        self.r_shift, self.r_scale = r.mean(0), r.std(0)
        self.r_low, self.r_high = _within(r, reach)
        return r

    def _learn_inputs(self, signals: dict[str, np.ndarray], flat: set[str], r: np.ndarray) -> None:
        """Names and scales of what the network sees."""
        inputs = road_load.input_terms(signals)
        if self.products:
            inputs |= {f"{ROAD}{name}": column for name, column in zip(self.road_names, r.T, strict=True)}
        x = np.stack(list(inputs.values()), -1)
        shift, scale = (x.min(0), np.ptp(x, 0)) if self.scaling == "minmax" else (x.mean(0), x.std(0))
        kept = _varied(x) & np.array([name not in flat for name in inputs])
        if self.ages:  # fixed: a log without silences is trained on thinned copies, too
            stale = list(inputs).index(AGE)
            shift[stale], scale[stale], kept[stale] = 0.0, 1.0, True
        self.input_names = tuple(name for name, keep in zip(inputs, kept, strict=True) if keep)
        self.x_shift, self.x_scale = shift[kept], scale[kept]

    def also_on(self, trips: abc.Sequence[Trip], other: FeatureMap) -> Self:
        """The same features for a model that goes on from this one's on trips with `other` ranges: only those grow."""
        raw = [self.signals_of(trip) for trip in trips]
        free = replace(self, r_low=np.full_like(self.r_low, -LIMITLESS), r_high=np.full_like(self.r_high, LIMITLESS))
        r = np.concatenate([free.arrays(signals)[1] for signals in raw]) * self.r_scale + self.r_shift
        r_low, r_high = _within(r, FEW_REACH)
        return replace(
            self,
            low=np.minimum(self.low, other.low),
            high=np.maximum(self.high, other.high),
            r_low=np.minimum(self.r_low, r_low),
            r_high=np.maximum(self.r_high, r_high),
        )

    def transform(self, trip: Trip) -> Rows:
        """Arrays of one gridded trip; an unknown value is replaced by the training median and flagged outside."""
        if trip.hz != self.hz:
            raise TripsError(
                f"trip {trip.trip_id} is on a {trip.hz} Hz grid, the features on {self.hz} Hz; use on_grid."
            )
        require_channels(self.needed, [trip])
        x, r, which = self.arrays(self.signals_of(trip))
        return Rows(
            trip_id=np.full(len(x), trip.trip_id),
            time_s=trip.table["time_s"].to_numpy(),
            x=x,
            r=r,
            y=power_of(trip),
            start=starts_of(trip),
            which_outside=which,
            lengths=np.array([len(x)]),
        )

    def transform_all(self, trips: abc.Sequence[Trip]) -> Rows:
        """Arrays of several gridded trips."""
        return Rows.join(self.transform(trip) for trip in trips)

    def arrays(self, raw: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """x [T, F], r [T, K] float32 and which channel is outside its training range [T, channels], of signals.

        Weather far from any seen counts as nearer: a slope learned between 14 and 18 C does not hold for frost.
        """
        from evband.features.memory import place, rule_of

        values = np.stack([raw[c] for c in self.channels], -1)  # [T, channels]
        which = np.empty(values.shape, bool)
        place(*rule_of(self)[3:], values, which)
        # made of the speeds at the edges, and of the time driven
        return *self.filled(values, {name: raw[name] for name in raw.keys() - {*self.channels}}), which

    def filled(self, values: np.ndarray, made: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """x and r of channels [T, channels] without unknown values, and of signals made of others."""
        signals = dict(zip(self.channels, values.T, strict=True))
        signals |= {name: np.nan_to_num(signal) for name, signal in made.items()}
        x, r = (np.empty((len(values), len(names)), np.float32) for names in (self.input_names, self.road_names))
        for begin in range(0, len(values), CHUNK_ROWS):
            here = slice(begin, begin + CHUNK_ROWS)
            x[here], r[here] = self._rows({name: signal[here] for name, signal in signals.items()})
        return x, r

    def scaled_input(self, name: str, value: float) -> tuple[int, float] | None:
        """Number of an input and a value of it as the network sees it; None where it is not an input."""
        if name not in self.input_names:
            return None
        column = self.input_names.index(name)
        return column, float(np.float32((value - self.x_shift[column]) / self.x_scale[column]))

    def weather_limits(self, channel: int) -> tuple[float, float]:
        """How far a slow channel counts: its training range and a little more."""
        more = HELD[self.channels[channel]]
        return float(self.low[channel]) - more, float(self.high[channel]) + more

    def stream(self) -> FeatureStream:
        """Tick-by-tick twin of `transform`, with its own small memory."""
        from evband.features.columns import FeatureStream

        return FeatureStream(self)

    def least_squares(self, ridge: float = road_load.RIDGE) -> np.ndarray:
        """Weights [K] that minimise mean (z - r w)^2 + ridge |w|^2 over training rows, z = (y - y_mean) / y_std.

        r and z are centred on training rows, so there is no intercept: y = y_mean + y_std * (r w). Held to physics.
        """
        return least_squares(self.gram, self.moment, ridge, limits_of(self))

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` gives back an equal map."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in ((f.name, getattr(self, f.name)) for f in fields(self))
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        if "wheel" in saved and cls is FeatureMap:
            from evband.features.wheel import SheetMap

            return SheetMap.from_dict(saved)  # type: ignore[return-value]
        values = dict(saved)
        for name, side in (("r_low", -LIMITLESS), ("r_high", LIMITLESS)):  # models older than these had no limit
            values.setdefault(name, [side] * len(values["r_shift"]))
        for name in (*("low", "high", "typical", "x_shift", "x_scale"), *OF_ROAD, "gram", "moment"):
            values[name] = np.asarray(values[name], dtype=float)
        for name in ("channels", "input_names", "road_names"):
            values[name] = tuple(values[name])
        values["sheet"] = tuple(float(number) for number in values.get("sheet", ()))
        values["knots"] = [(str(term), float(knot)) for term, knot in values["knots"]]
        return cls(**values)._checked()

    def _checked(self) -> Self:
        return checked(self)

    def signals_of(self, trip: Trip) -> dict[str, np.ndarray]:
        """What the features are made of, nan where unknown (`evband.features.signals`)."""
        from evband.features.signals import signals_of

        return signals_of(self, trip)

    def made(self, row: Any, edges_kmh: abc.Sequence[Any], age_s: Any, readings: Any, sensed: Any) -> dict[str, Any]:
        """Signals that are not channels, of floats, arrays or values of a graph: of the row's number in its trip, the speeds at
        the edges of its bin, the time since the last speed reading, how many are in it, and if acceleration was measured."""
        made: dict[str, Any] = road_load.edge_signals(edges_kmh[0], edges_kmh[1], self.hz) if self.edges else {}
        if self.fade:
            made[road_load.FADE] = road_load.fades(row, self.hz)
        if self.ages:
            made[AGE] = road_load.staleness(age_s)
        made |= {READINGS: self.hz * readings} if self.dense else {}
        made |= {SENSED: sensed} if self.sensed else {}
        return made

    def _rows(self, signals: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Scaled inputs and road features of one tick (floats) or many rows (arrays); by default a steady pull, long under way."""
        for name, asked in ((road_load.FADE, self.fade), (AGE, self.ages)):
            if asked and name not in signals:
                signals = {**signals, name: 0.0 * signals[self.channels[0]]}
        if self.edges and road_load.KINETIC not in signals:
            v, a = signals["speed_kmh"] / 3.6, signals["acceleration_ms2"]
            signals = {**signals, road_load.KINETIC: a * v, road_load.CHANGE: a}
        inputs, terms = self.terms(signals)
        kept = tuple(name for name in self.road_names if name in terms)
        r = self._with_hinges(_columns([terms[name] for name in kept]), kept)
        r = np.minimum(np.maximum(r, self.r_low), self.r_high)
        x = _columns([inputs[name] for name in self.input_names if not name.startswith(ROAD)])
        if self.products:
            x = np.concatenate([x, r], -1)
        return (x - self.x_shift) / self.x_scale, (r - self.r_shift) / self.r_scale

    def terms(self, signals: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Inputs and road-load terms by name, as they are: of floats, arrays or values of a graph."""
        return road_load.input_terms(signals), road_load.road_terms(signals, curved=bool(self.knots))

    def _with_hinges(self, terms: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
        """[..., terms] -> [..., terms + knots]."""
        if not self.knots:
            return terms
        which = [names.index(name) for name, _ in self.knots]
        at = np.array([knot for _, knot in self.knots])
        return np.concatenate([terms, road_load.positive(terms[..., which] - at)], -1)


def _within(r: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Limits of each column: squares and hinges seen over a little only would make hundreds of kW far outside it."""
    more = reach * np.ptp(r, 0)
    return r.min(0) - more, r.max(0) + more


def _varied(columns: np.ndarray) -> np.ndarray:
    """[columns] bool: varies by more than rounding does."""
    return np.asarray(np.ptp(columns, 0) > ROUNDING * np.maximum(1.0, np.abs(columns).max(0)))


def _columns(values: list[Any]) -> np.ndarray:
    """[columns] of floats, [rows, columns] of arrays."""
    return np.stack(values, -1) if isinstance(values[0], np.ndarray) else np.array(values)
