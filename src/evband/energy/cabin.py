"""What heater and air conditioning will draw where nobody knows: learned from the trips, given weather and time under way.

    E[hvac_power_kw] = max(0, w . [1, cold, hot, cold^2, hot^2, f, f cold, f hot]),   f = exp(-t / 300 s)

with cold and hot the degrees below 18 and above 22 C (in tens). A trip's own draw (who feels warm when) differs from it by a
constant with standard deviation `trip_kw`: that is the part of an energy band which knowing the cabin would take away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evband.errors import ArtifactError
from evband.features.road_load import FADE_S, ambient_hinges
from evband.trips import Trip, Trips

Array = NDArray[np.float64]

CHANNEL = "hvac_power_kw"
COLUMNS = 8
RIDGE = 1e-3
LEAST_TRIPS = 5


@dataclass(frozen=True)
class Cabin:
    """The expected draw and how far a trip's own is from it."""

    weights: tuple[float, ...]  # [COLUMNS]
    trip_kw: float

    def mean(self, ambient_c: Array | None, seconds: Array) -> Array:
        """[n] kW, at a temperature (None: unknown, mild) and so long after the trip's start."""
        return np.asarray(np.maximum(_columns(ambient_c, seconds) @ np.array(self.weights), 0.0))

    def to_dict(self) -> dict[str, Any]:
        return {"weights": list(self.weights), "trip_kw": self.trip_kw}

    @classmethod
    def from_dict(cls, saved: Any) -> Self:
        """Inverse of `to_dict`; a model file is not to be trusted."""
        try:
            weights, trip_kw = tuple(float(w) for w in saved["weights"]), float(saved["trip_kw"])
        except (KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(f"The cabin in the model file is damaged ({problem}); fit it again.") from None
        if len(weights) != COLUMNS or not np.isfinite([*weights, trip_kw]).all() or trip_kw < 0:
            raise ArtifactError("The cabin in the model file is damaged; fit it again.")
        return cls(weights, trip_kw)


def fit_cabin(trips: Trips) -> Cabin | None:
    """From gridded trips that know their cabin's draw; None where fewer than `LEAST_TRIPS` do."""
    rows = [_rows(trip) for trip in trips if trip.has(CHANNEL)]
    if len(rows) < LEAST_TRIPS:
        return None
    x, y = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    weights = np.linalg.solve(x.T @ x / len(y) + RIDGE * np.eye(COLUMNS), x.T @ y / len(y))
    found = Cabin(tuple(weights.tolist()), 0.0)
    left = np.array([float((y - np.maximum(x @ weights, 0.0)).mean()) for x, y in rows])
    return Cabin(found.weights, float(np.sqrt(np.mean(left**2) * len(rows) / (len(rows) - 1))))


def _rows(trip: Trip) -> tuple[Array, Array]:
    draw = trip.table[CHANNEL].to_numpy().astype(float)
    ambient = trip.table["ambient_temp_c"].to_numpy().astype(float) if trip.has("ambient_temp_c") else None
    assert trip.hz is not None
    x = _columns(ambient, np.arange(len(draw)) / trip.hz)
    known = np.isfinite(draw) & np.isfinite(x).all(axis=1)
    return x[known], draw[known]


def _columns(ambient_c: Array | None, seconds: Array) -> Array:
    f = np.exp(-seconds / FADE_S)
    cold, hot = (np.zeros(len(f)),) * 2 if ambient_c is None else ambient_hinges(ambient_c)
    cold, hot = cold / 10.0, hot / 10.0
    return np.stack([np.ones(len(f)), cold, hot, cold**2, hot**2, f, f * cold, f * hot], axis=1)
