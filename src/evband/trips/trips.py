"""Trip and Trips: the one thing that passes between rooms. Both are immutable and valid once made."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, overload

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import AGE, CHANNELS, COORDINATES, ON_GRID, SENSED, VALUES, require
from evband.errors import TripsError
from evband.trips.grid import MAX_GAP_S, bin_inputs, to_grid
from evband.trips.identity import ENOUGH, marks
from evband.trips.power import gap_of, rate_of
from evband.trips.quality import Quality
from evband.trips.readings import Series, trapezoids

SLOWEST_S = 15.0
"""The longest step between readings that a model can be trained on from scratch."""


@dataclass(frozen=True, eq=False)
class Trip:
    """One drive.

    `table` has `time_s` (seconds, strictly increasing) and one Float64 column per channel, null where that channel has no
    reading at that instant. `hz` is None for readings as logged; on the grid it is set, and the column `segment` numbers
    the unbroken stretches. Columns that begin with `true_` are a simulation's truth: they pass through, never as inputs.

    >>> Trip("to work", pl.DataFrame({"time_s": [0.0, 1.0], "speed_kmh": [36.0, 36.0]})).channels
    ('speed_kmh',)
    """

    trip_id: str
    table: pl.DataFrame = field(repr=False)
    hz: float | None = None
    report: Quality | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        _check(self)

    def __len__(self) -> int:
        return self.table.height

    def has(self, channel: str) -> bool:
        """Whether the trip has at least one reading of this channel."""
        return channel in self.table.columns and self.table[channel].null_count() < self.table.height

    @property
    def channels(self) -> tuple[str, ...]:
        """The channels with readings, in the vocabulary's order."""
        return tuple(name for name in VALUES if self.has(name))

    def series(self, channel: str) -> Series:
        """(time_s, value) of one channel's readings; an error without such a column."""
        require(channel, self.table.columns, f"Trip {self.trip_id}")
        time, values = self.table["time_s"].to_numpy(), self.table[channel].to_numpy()
        if not self.table[channel].null_count():
            return time, values
        present = ~np.isnan(values)  # null is NaN there, and nothing else is
        return time[present], values[present]

    def column(self, name: str) -> NDArray[np.float64]:
        """One column, NaN where it is unknown."""
        return self.table[name].to_numpy().astype(float)

    @property
    def duration_s(self) -> float:
        """From the first row to the last, and on the grid the first row's bin too."""
        time = self.table["time_s"]
        return float(time[-1] - time[0]) + (1.0 / self.hz if self.hz else 0.0)

    @cached_property
    def distance_km(self) -> float:
        """The integral of speed: bin sums on the grid, else trapezoids between readings that no gap separates."""
        if not self.has("speed_kmh"):
            return float("nan")
        time, speed = self.series("speed_kmh")
        if self.hz:
            return float(speed.sum()) / self.hz / 3600.0
        near = np.diff(time) <= gap_of(time, MAX_GAP_S)
        return float(np.sum(trapezoids((time, speed))[near])) / 3600.0

    @property
    def rate_hz(self) -> float:
        """Rows per second on the grid, else speed readings per second (their median step)."""
        if self.hz:
            return self.hz
        others = () if self.has("speed_kmh") else self.channels
        return rate_of(self.series(others[0] if others else "speed_kmh")[0])

    @cached_property
    def fingerprint(self) -> str:
        """A name for the trip's content (time, speed, power), the same after writing and reading it, whatever its id.

        Compare fingerprints of trips on one grid: a raw log and its converted table differ, their grids do not.
        """
        digest = hashlib.sha256()
        for name in ("time_s", "speed_kmh", "power_kw"):
            if name in self.table.columns:
                values = np.round(self.table[name].to_numpy(), 6) + 0.0  # no negative zeros
                digest.update(name.encode() + np.where(np.isnan(values), np.nan, values).tobytes())
        return digest.hexdigest()[:32]

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """What is left of the trip when it is cut; see `evband.trips.identity`. None of a trip without power."""
        if not (self.has("speed_kmh") and self.has("power_kw")):
            return ()
        return marks(self.table["speed_kmh"].to_numpy(), self.table["power_kw"].to_numpy())

    def on_grid(self, hz: float, max_gap_s: float = MAX_GAP_S, bridge_s: float = 0.0, lag: float = 0.0) -> Trip:
        """This trip on the grid of `evband.trips.grid`; itself if it is on that grid already."""
        if self.hz is not None and abs(self.hz - hz) < 1e-9 * hz:
            return self
        table = self.table
        if {SENSED, "acceleration_ms2"} <= {*table.columns}:  # what another grid made of the speeds is no reading
            table = table.with_columns(acceleration_ms2=pl.when(pl.col(SENSED) > 0.0).then("acceleration_ms2"))
        read = replace(self, table=table)
        readings = {name: read.series(name) for name in self.channels}
        table = to_grid(readings, hz, max_gap_s, f"Trip {self.trip_id}", bridge_s, lag)
        ends = table["time_s"].to_numpy()
        truth = {
            name: bin_inputs(self.series(name), ends, 1.0 / hz, 0.0) for name in truths(self.table) if self.has(name)
        }
        return replace(self, table=table.with_columns(**truth).fill_nan(None) if truth else table, hz=float(hz))

    def between(self, start_s: float, end_s: float, trip_id: str | None = None) -> Trip:
        """The rows from `start_s` to `end_s`, both included."""
        table = self.table.filter(pl.col("time_s").is_between(start_s, end_s))
        return replace(self, table=table, trip_id=trip_id or self.trip_id)


def truths(table: pl.DataFrame) -> list[str]:
    """The columns in which a simulation tells the truth about its noise."""
    return [name for name in table.columns if name.startswith("true_")]


def _check(trip: Trip) -> None:
    """Raise a TripsError unless the trip is what its docstring says."""
    name, table = f"Trip {trip.trip_id!r}", trip.table
    if not isinstance(trip.trip_id, str) or not trip.trip_id:
        raise TripsError(f"A trip has the id {trip.trip_id!r}; give it a text that is not empty.")
    if "time_s" not in table.columns:
        require("time_s", table.columns, name)
    if table.height == 0:
        raise TripsError(f"{name} has no rows; leave it out or check how its log was cut.")
    extra = {"segment", *ON_GRID, AGE, *truths(table)} if trip.hz is not None else set(truths(table))
    unknown = [c for c in table.columns if c not in extra and (c not in CHANNELS or c == "trip_id")]
    if unknown:
        raise TripsError(f"{name} has columns that are not channels: {', '.join(unknown)}; drop or rename them.")
    wrong = [c for c in table.columns if c != "segment" and table.schema[c] != pl.Float64]
    if wrong:
        raise TripsError(f"{name} has columns that are not Float64: {', '.join(wrong)}; cast them first.")
    if trip.hz is not None and table.schema.get("segment") != pl.Int32:
        raise TripsError(f"{name} is on a grid but has no Int32 column segment; put raw readings on it with on_grid.")
    time = table["time_s"].to_numpy()
    if not np.all(np.isfinite(time)):
        raise TripsError(f"{name} has a time_s that is missing or not finite; drop those rows.")
    if not np.all(np.diff(time) > 0):
        row = int(np.argmax(np.diff(time) <= 0)) + 1
        raise TripsError(
            f"{name}: time_s does not increase at row {row} ({time[row - 1]} to {time[row]}); sort its rows."
        )
    for channel in table.columns:
        values = table[channel].to_numpy()  # null is NaN there
        if channel != "segment" and np.isfinite(values).sum() + table[channel].null_count() < len(values):
            raise TripsError(f"{name}: {channel} has values that are not finite; make them null.")


class Trips(Sequence[Trip]):
    """Trips with ids of their own, all as logged or all on one grid. Immutable.

    >>> Trips([Trip("to work", pl.DataFrame({"time_s": [0.0, 1.0], "speed_kmh": [36.0, 36.0]}))]).ids
    ('to work',)
    """

    def __init__(self, trips: Iterable[Trip]) -> None:
        self._trips = tuple(trips)
        if not self._trips:
            raise TripsError("There are no trips; give at least one log with readings in it.")
        ids = [trip.trip_id for trip in self._trips]
        twice = sorted({name for name in ids if ids.count(name) > 1}) if len(set(ids)) < len(ids) else []
        if twice:
            raise TripsError(f"Several trips have the id {twice[0]!r}; give each trip an id of its own.")
        rates = {trip.hz for trip in self._trips}
        if len(rates) > 1:
            raise TripsError(
                "Some trips are on another grid than others; put all of them on one with --hz or on_grid(hz)."
            )

    @overload
    def __getitem__(self, index: int) -> Trip: ...
    @overload
    def __getitem__(self, index: slice) -> Trips: ...
    def __getitem__(self, index: int | slice) -> Trip | Trips:
        return Trips(self._trips[index]) if isinstance(index, slice) else self._trips[index]

    def __len__(self) -> int:
        return len(self._trips)

    def __repr__(self) -> str:
        rate = f"{self.hz:g} Hz" if self.hz else "as logged"
        return f"Trips({len(self)} trips, {sum(map(len, self))} rows, {rate})"

    @property
    def hz(self) -> float | None:
        return self._trips[0].hz

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(trip.trip_id for trip in self._trips)

    @property
    def fingerprints(self) -> tuple[str, ...]:
        return tuple(trip.fingerprint for trip in self._trips)

    @property
    def traces(self) -> set[str]:
        """Fingerprints and marks of all trips: what `among` knows them by."""
        return {*self.fingerprints, *(mark for trip in self._trips for mark in trip.marks)}

    def column(self, name: str) -> NDArray[np.float64]:
        """One channel of all trips end to end, NaN where it is unknown."""
        return np.concatenate([trip.column(name) for trip in self._trips])

    def among(self, traces: Iterable[str]) -> list[str]:
        """Ids of the trips that left these traces, whole or in part, or of which a part did."""
        known = set(traces)
        return [
            trip.trip_id
            for trip in self._trips
            if trip.fingerprint in known or len(known.intersection(trip.marks)) >= ENOUGH
        ]

    def subset(self, ids: Iterable[str]) -> Trips:
        """The trips with these ids, in the order given."""
        by_id = {trip.trip_id: trip for trip in self._trips}
        wanted = list(ids)
        missing = [name for name in wanted if name not in by_id]
        if missing:
            raise TripsError(f"There is no trip {missing[0]!r} among these {len(self)}; their ids are in .ids.")
        return Trips(by_id[name] for name in wanted)

    def check_one_rate(self) -> None:
        """An error if some trips were sampled more than half as fast again as others: only a grid makes them alike."""
        rates = {trip.trip_id: trip.rate_hz for trip in self._trips if np.isfinite(trip.rate_hz)}
        if rates and max(rates.values()) > 1.5 * min(rates.values()):
            slow, fast = min(rates, key=rates.__getitem__), max(rates, key=rates.__getitem__)
            raise TripsError(
                f"The logs differ in rate ({rates[slow]:.3g} Hz in {slow}, {rates[fast]:.3g} Hz in {fast}); "
                f"give --hz (or hz=) to put them on one grid."
            )

    def check_fine_enough(self) -> None:
        """An error if a trip's readings are further apart than `SLOWEST_S`: within them a car speeds up and brakes unseen."""
        slow = next((trip for trip in self._trips if trip.rate_hz * SLOWEST_S < 1.0), None)
        if slow is not None:
            raise TripsError(
                f"Trip {slow.trip_id!r} has one reading every {1.0 / slow.rate_hz:.3g} s, and a model learns from motion at steps of at "
                f"most {SLOWEST_S:g} s; start from a named car or another model and take this log as energy: evband adapt."
            )

    def on_grid(self, hz: float, max_gap_s: float = MAX_GAP_S, bridge_s: float = 0.0, lag: float = 0.0) -> Trips:
        """Every trip on the grid of `hz` rows per second, which bridges silences of up to `bridge_s` where that is set."""
        return Trips(trip.on_grid(hz, max_gap_s, bridge_s, lag) for trip in self._trips)

    def split(self, test: float = 0.3, seed: int = 0, gap_s: float = 60.0) -> tuple[Trips, Trips]:
        """(train, test): whole trips drawn with a seed; a single run is cut once in time, `gap_s` apart.

        Rows of one drive are far from independent, so rows are never drawn at random.
        """
        if not 0 < test < 1:
            raise TripsError(f"The test share is {test}; give one between 0 and 1.")
        if len(self) == 1:
            return self._cut(test, gap_s)
        order = np.random.default_rng(seed).permutation(len(self))
        n_test = min(max(round(test * len(self)), 1), len(self) - 1)
        chosen = set(order[:n_test].tolist())
        return (
            Trips(trip for i, trip in enumerate(self._trips) if i not in chosen),
            Trips(trip for i, trip in enumerate(self._trips) if i in chosen),
        )

    def _cut(self, test: float, gap_s: float) -> tuple[Trips, Trips]:
        trip = self._trips[0]
        time = trip.table["time_s"]
        first, last = float(time[0]), float(time[-1])
        cut = last - test * (last - first - gap_s)
        if last - first <= gap_s or not (time >= cut).any() or not (time <= cut - gap_s).any():
            raise TripsError(
                f"Trip {trip.trip_id!r} lasts {last - first:.0f} s, too short to cut in two {gap_s:g} s apart; "
                f"give more trips or a smaller gap_s."
            )
        early = trip.between(first, cut - gap_s, f"{trip.trip_id}:train")
        late = trip.between(cut, last, f"{trip.trip_id}:test")
        return Trips([early]), Trips([late])

    def to_polars(self) -> pl.DataFrame:
        """One tidy frame: trip_id, time_s, the channels that any trip has, and on the grid the segment."""
        frames = [trip.table.select(pl.lit(trip.trip_id).alias("trip_id"), pl.all()) for trip in self._trips]
        frame = pl.concat(frames, how="diagonal")
        order = ["trip_id", "time_s", *VALUES, *COORDINATES, *ON_GRID, AGE, "segment"]
        return frame.select([name for name in (*order, *truths(frame)) if name in frame.columns])

    @classmethod
    def of(cls, given: Any) -> Trips:
        """Trips as they are, of one trip, of a list (what scikit-learn's folds make of Trips), or of a frame."""
        if isinstance(given, Trips):
            return given
        if isinstance(given, Trip):
            return cls([given])
        return cls(given) if isinstance(given, list) else cls.from_frame(given)

    @classmethod
    def from_frame(cls, frame: Any) -> Trips:
        """Trips from a pandas, polars or pyarrow frame in our channel names; cleaned as a log is."""
        from evband.logs.reading import read_trips

        return read_trips(frame)
