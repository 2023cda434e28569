"""Rows of one or more trips as arrays, one after the other: what networks, rivals and scores are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.channels import EDGES

if TYPE_CHECKING:
    from evband.trips import Trip

WARMUP_S = 30.0  # after a reset the state is still filling: predicted, flagged and scored apart


@dataclass(frozen=True)
class Rows:
    """Made by `FeatureMap.transform` (one trip) and `FeatureMap.transform_all`."""

    trip_id: NDArray[np.str_]  # [n]
    time_s: np.ndarray  # [n]
    x: np.ndarray  # [n, F] float32, scaled inputs
    r: np.ndarray  # [n, K] float32, standardised road-load features
    y: np.ndarray  # [n] float64 kW, nan where not measured
    start: np.ndarray  # [n] bool: state starts anew here
    which_outside: np.ndarray  # [n, channels] bool: unknown, or beyond its training range
    lengths: NDArray[np.int64]  # [trips] rows of each

    def __len__(self) -> int:
        return len(self.y)

    @property
    def trip(self) -> NDArray[np.int64]:
        """[n] number of the trip: 0, 1, 2 ..."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    @property
    def parts(self) -> list[slice]:
        """[trips] where the rows of each lie."""
        ends = np.cumsum(self.lengths)
        return [slice(end - n, end) for end, n in zip(ends.tolist(), self.lengths.tolist(), strict=True)]

    @property
    def outside(self) -> NDArray[np.bool_]:
        """[n] some channel is unknown or beyond its training range."""
        return np.asarray(self.which_outside.any(1))

    def outside_channel(self, channels: tuple[str, ...]) -> NDArray[np.str_]:
        """[n] the first channel that left its training range, "" for none."""
        return np.where(self.outside, np.asarray(channels)[self.which_outside.argmax(1)], "")

    def warmup(self, hz: float) -> NDArray[np.bool_]:
        """[n] so soon after a start that the state is still filling."""
        return np.asarray(warming(age(self.start), hz))

    def of(self, trips: Sequence[int] | NDArray[np.int64]) -> Rows:
        """Some of the trips, in this order."""
        parts, which = self.parts, np.asarray(trips)
        columns = {f.name: np.concatenate([getattr(self, f.name)[parts[t]] for t in which]) for f in fields(self)[:-1]}
        return Rows(**columns, lengths=self.lengths[which])

    @classmethod
    def join(cls, parts: Iterable[Rows]) -> Rows:
        """Trips one after the other; a single long drive is not copied."""
        found = list(parts)
        if len(found) == 1:
            return found[0]
        return cls(*(np.concatenate([getattr(part, f.name) for part in found]) for f in fields(cls)))


def warming(rows: Any, hz: float) -> Any:
    """Whether so many rows after a start are too few."""
    return rows < WARMUP_S * hz


def age(start: NDArray[np.bool_]) -> NDArray[np.int64]:
    """[n] rows since the last start."""
    rows = np.arange(len(start))
    return np.asarray(rows - np.maximum.accumulate(np.where(start, rows, 0)))


def power_of(trip: Trip) -> np.ndarray:
    """Measured power [T] in kW, nan where there is none."""
    return trip.column("power_kw") if trip.has("power_kw") else np.full(len(trip), np.nan)


def starts_of(trip: Trip) -> np.ndarray:
    """[T] bool: rows where a new segment begins."""
    segment = trip.table["segment"].to_numpy()
    start = np.ones(len(segment), dtype=bool)
    start[1:] = segment[1:] != segment[:-1]
    return start


def edges_of(trip: Trip) -> list[np.ndarray]:
    """Speeds at the start and at the end of each bin; in a table that lost them the speed stands for them, as in a stream."""
    if {*EDGES} <= {*trip.table.columns}:
        return [trip.column(name) for name in EDGES]
    end = trip.column("speed_kmh")
    return [np.where(starts_of(trip), end, np.roll(end, 1)), end]
