"""The draw of heater and air conditioning where it is not known: expected from weather and time under way, with an error.

    E[hvac_power_kw] = max(0, w . [1, cold, hot, cold^2, hot^2, f, f cold, f hot]),   f = exp(-t / 300 s)

with cold and hot the degrees below 18 and above 22 C (in tens). A trip's own draw (people differ in what they find warm) departs from
it by a slow error, u in `evband.energy.errors`: its present level predicts the rest better than the trip's mean so far. So the draw
so far changes the draw expected ahead and its uncertainty, which is the part of an energy band that knowing the cabin would take away.
The error's variance maximises the likelihood of whole trips, its memory that of the rest of each trip given its beginning.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.energy.drives import Drive
from evband.energy.errors import ErrorModel
from evband.energy.so_far import CUTS, SoFar, surprises
from evband.energy.student import TAILS
from evband.errors import ArtifactError
from evband.features.names import CABIN
from evband.features.road_load import ambient_hinges, fades
from evband.trips import Trip, Trips

Array = NDArray[np.float64]

COLUMNS = 8
RIDGE = 1e-3
LEAST_TRIPS = 5
MEMORY_S = (300.0, 600.0, 1200.0, 2400.0, 4800.0, 1e6)
SHARES = (0.1, 0.2, 0.4, 0.7, 1.0)  # of the mean square: one odd trip can make most of that


@dataclass(frozen=True)
class Cabin:
    """The expected draw and how a trip's own differs from it."""

    weights: tuple[float, ...]  # [COLUMNS]
    errors: ErrorModel  # of the draw, kW

    def mean(self, ambient_c: Array | None, seconds: Array) -> Array:
        """[n] kW, at a temperature (None: unknown, mild) and so long after the trip's start."""
        return _mean(_columns(ambient_c, seconds), np.array(self.weights))

    def filled(self, draw_kw: Array, ambient_c: Array | None, hz: float) -> tuple[Array, Array]:
        """[n] kW of the rows of a drive, expected where `draw_kw` is NaN, and what one standard deviation adds to each row.

        Rows behind the last known one are expected given all known ones."""
        usual = np.nan_to_num(self.mean(ambient_c, np.arange(len(draw_kw)) / hz))
        known = np.isfinite(draw_kw)
        begin = int(np.flatnonzero(known)[-1]) + 1 if known.any() else 0
        past = SoFar(self.errors)
        for error in (draw_kw - usual)[:begin].tolist():
            past.add(error, 1.0, 1.0 / hz)
        ahead = (np.arange(len(draw_kw) - begin) + 1.0) / hz
        shift, variance = past.ahead(ahead)
        expected, unsure = usual.copy(), np.zeros(len(usual))
        expected[begin:] += np.diff(shift * ahead, prepend=0.0) * hz
        unsure[begin:] = np.diff(np.sqrt(variance) * ahead, prepend=0.0) * hz
        return np.where(known, draw_kw, np.maximum(expected, 0.0)), unsure

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Any) -> Self:
        """Inverse of `to_dict`; a model file is not to be trusted."""
        try:
            weights = tuple(float(w) for w in saved["weights"])
            errors = saved["errors"] if "errors" in saved else _lasting(float(saved["trip_kw"]))
        except (KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(f"The cabin in the model file is damaged ({problem}); fit it again.") from None
        if len(weights) != COLUMNS or not np.isfinite(weights).all():
            raise ArtifactError("The cabin in the model file is damaged; fit it again.")
        return cls(weights, ErrorModel.from_dict(errors))


def _lasting(trip_kw: float) -> dict[str, float]:
    """What earlier versions kept: a deviation that lasts the whole trip."""
    return ErrorModel(0.0, trip_kw**2, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1000, lasting=0.0).to_dict()


def with_cabin(trip: Trip, cabin: Cabin | None) -> tuple[Trip, Array]:
    """A gridded trip with its cabin's draw filled in, and the kW of every row that one standard deviation of it adds."""
    assert trip.hz is not None
    if cabin is None:
        return trip, np.zeros(len(trip))
    ambient = trip.table["ambient_temp_c"].forward_fill().to_numpy() if trip.has("ambient_temp_c") else None
    draw, unsure = cabin.filled(trip.column(CABIN) if trip.has(CABIN) else np.full(len(trip), np.nan), ambient, trip.hz)
    return Trip(trip.trip_id, trip.table.with_columns(pl.Series(CABIN, draw)), trip.hz), unsure


def fit_cabin(trips: Trips) -> Cabin | None:
    """From gridded trips that know their cabin's draw; None where fewer than `LEAST_TRIPS` do.

    Each trip differs from what the others expect of it."""
    known = [trip for trip in trips if trip.has(CABIN)]
    if len(known) < LEAST_TRIPS:
        return None
    rows = [_rows(trip) for trip in known]
    gram = [x.T @ x for x, _ in rows]
    moment = [x.T @ y for x, y in rows]
    count = [len(y) for _, y in rows]

    def weights(without: int | None = None) -> Array:
        own = [k for k in range(len(rows)) if k != without]
        n = max(1, sum(count[k] for k in own))
        ridge = RIDGE * np.eye(COLUMNS)
        return np.asarray(
            np.linalg.solve(sum(gram[k] for k in own) / n + ridge, sum(moment[k] for k in own) / n), float
        )

    drives = [_drive(trip, weights(k)) for k, trip in enumerate(known)]
    return Cabin(tuple(weights().tolist()), _likeliest([d for d in drives if np.isfinite(d.power_kw).any()]))


def _likeliest(drives: list[Drive]) -> ErrorModel:
    """Among slow errors of each size and memory, all tried at once as columns."""
    square = float(np.mean([np.nanmean((d.power_kw - d.mean) ** 2) for d in drives])) + 1e-6
    grid: Any = np.array([(share * square, memory) for share in SHARES for memory in MEMORY_S]).T
    every = ErrorModel(0.0, 0.0, grid[0], grid[1], 0.0, 0.0, 1.0, 1.0, max(2, len(drives)), tails=TAILS)
    tried = np.sum([surprises(every, drive, TAILS, (0.0, *CUTS)) for drive in drives], axis=0)
    whole, *rests = tried.reshape(-1, len(SHARES), len(MEMORY_S))
    size = whole.argmin(axis=0)  # of each memory
    best = int(np.argmin(np.sum(rests, axis=0)[size, np.arange(len(MEMORY_S))]))
    return replace(every, slow=SHARES[size[best]] * square, slow_s=MEMORY_S[best])


def _drive(trip: Trip, weights: Array) -> Drive:
    """The draw as if it were power, predicted with these weights."""
    assert trip.hz is not None
    mean, none, draw = np.nan_to_num(_mean(_seen(trip), weights)), np.zeros(len(trip)), trip.column(CABIN)
    return Drive(trip.trip_id, trip.hz, mean, mean[None], none + 1.0, none.astype(bool), none, draw)


def _mean(columns: Array, weights: Array) -> Array:
    return np.asarray(np.maximum(columns @ weights, 0.0))


def _rows(trip: Trip) -> tuple[Array, Array]:
    x, draw = _seen(trip), trip.column(CABIN)
    known = np.isfinite(draw) & np.isfinite(x).all(axis=1)
    return x[known], draw[known]


def _seen(trip: Trip) -> Array:
    ambient = trip.column("ambient_temp_c") if trip.has("ambient_temp_c") else None
    assert trip.hz is not None
    return _columns(ambient, np.arange(len(trip)) / trip.hz)


def _columns(ambient_c: Array | None, seconds: Array) -> Array:
    f = fades(seconds, 1.0)
    cold, hot = (np.zeros(len(f)),) * 2 if ambient_c is None else ambient_hinges(ambient_c)
    cold, hot = cold / 10.0, hot / 10.0
    return np.stack([np.ones(len(f)), cold, hot, cold**2, hot**2, f, f * cold, f * hot], axis=1)
