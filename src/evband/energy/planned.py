"""Planned is not driven: what a drive takes beyond what its plan would, learned from the user's own trips.

A router gives one speed per stretch of road and no stops; a driver speeds up, brakes and waits. Each trip is turned into what a
router would have given for it (`router_says`), the model predicts both, and the difference in energy over `km` kilometres is taken as

    shift km + a trip's habit (variance habit km^2) + what differs from place to place (variance local km)

with Student-t tails like the errors of trips. It is the model's own answer to two speed profiles, so no measured power is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from evband.errors import ArtifactError
from evband.routes.profile import Route, from_profile
from evband.trips import Trip

Array = NDArray[np.float64]

CELL_KM = 0.25
MOST_CELLS = 400
APART_KMH = 15.0  # neighbouring stretches whose speeds differ by less are one
SHORT_KM = 1.0  # a stretch shorter than this joins a neighbour that differs by up to three times as much
STEP_KMH = 5.0  # a router's speeds come in steps
CRAWL_KMH = 5.0  # slower is waiting, which no router knows of
SHORTEST_KM = 0.5
LEAST_TRIPS = 5
TAILS = 5.0


@dataclass(frozen=True)
class Planned:
    """Energy driven minus energy planned, along the way."""

    shift: float  # kWh/km
    habit: float  # kWh^2/km^2
    local: float  # kWh^2/km
    trips: int

    def over(self, km: ArrayLike) -> tuple[Array, Array]:
        """(mean in kWh, variance in kWh^2) over so many kilometres of a new trip."""
        way = np.asarray(km, float)
        return self.shift * way, (self.habit * way**2 + self.local * way) * (1.0 + 1.0 / self.trips)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Any) -> Self:
        """Inverse of `to_dict`; a model file is not to be trusted."""
        try:
            values = {f.name: float(saved[f.name]) for f in fields(cls)}
        except (KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(f"The plans in the model file are damaged ({problem}); fit it again.") from None
        if (
            not np.isfinite(list(values.values())).all()
            or min(values["habit"], values["local"], values["trips"] - 1) < 0
        ):
            raise ArtifactError("The plans in the model file are damaged; fit it again.")
        return cls(values["shift"], values["habit"], values["local"], int(values["trips"]))


def fit_planned(difference_kwh: Sequence[float], km: Sequence[float]) -> Planned | None:
    """The mode of a Student-t posterior with wide priors; None for fewer than `LEAST_TRIPS` trips."""
    from scipy.optimize import minimize

    length = np.asarray(km, float)
    if len(length) < LEAST_TRIPS:
        return None
    rate = np.asarray(difference_kwh, float) / length
    middle = float(np.median(rate))
    scale = 1.4826 * float(np.median(np.abs(rate - middle))) + 1e-6
    start = np.array([middle / scale, 2.0 * np.log(scale) - 0.7, 2.0 * np.log(scale) + 0.7])

    def unlikely(p: Array) -> float:
        variance = np.exp(p[1]) + np.exp(p[2]) / length
        z2 = (rate - p[0] * scale) ** 2 / variance
        loss = 0.5 * np.log(variance) + 0.5 * (TAILS + 1.0) * np.log1p(z2 / TAILS)
        return float(loss.sum() + 0.125 * ((p[1:] - start[1:]) ** 2).sum())

    p = minimize(unlikely, start, method="Nelder-Mead", options={"maxiter": 2000, "xatol": 1e-3, "fatol": 1e-4}).x
    return Planned(float(p[0]) * scale, float(np.exp(p[1])), float(np.exp(p[2])), len(length))


def router_says(trip: Trip) -> Route | None:
    """A gridded trip as a router would have planned it: its way at one speed per stretch, without stops; None if too short."""
    assert trip.hz is not None
    speed = np.maximum(np.nan_to_num(trip.table["speed_kmh"].to_numpy().astype(float)), 0.0)
    driven = np.cumsum(speed) / trip.hz / 3600.0
    if not len(driven) or driven[-1] < SHORTEST_KM:
        return None
    at, pace = _stretches(speed, driven, trip.hz)
    table = pl.DataFrame({"distance_km": np.append(at, driven[-1]), "speed_kmh": np.append(pace, 0.0)})
    along = {}
    if trip.has("elevation_m"):
        height = trip.table["elevation_m"].to_numpy().astype(float)
        known = np.isfinite(height)
        places = np.linspace(0.0, driven[-1], max(2, int(driven[-1] / 0.05)))
        along["elevation_m"] = (places, np.interp(places, driven[known], height[known]))
    for name in ("ambient_temp_c", "wind_ms"):
        if trip.has(name):
            along[name] = (np.zeros(1), np.array([float(np.nanmean(trip.table[name].to_numpy().astype(float)))]))
    return replace(from_profile(table, trip.trip_id), along=along)


def _stretches(speed: Array, driven: Array, hz: float) -> tuple[Array, Array]:
    """(km at which each stretch begins, its speed in km/h): cells of the way, joined while neighbours are alike."""
    cells = int(np.clip(round(driven[-1] / CELL_KM), 1, MOST_CELLS))
    edges = np.linspace(0.0, driven[-1], cells + 1)
    cell = np.clip(np.searchsorted(edges, driven, side="left") - 1, 0, cells - 1)
    moving = speed > CRAWL_KMH
    km = np.bincount(cell, weights=np.where(moving, speed, 0.0), minlength=cells) / hz / 3600.0
    hours = np.bincount(cell, weights=moving, minlength=cells) / hz / 3600.0
    usual = km.sum() / hours.sum() if hours.any() else 30.0
    parts = [
        [edges[i], k, h] if h > 0 else [edges[i], edges[1], edges[1] / usual]
        for i, (k, h) in enumerate(zip(km.tolist(), hours.tolist(), strict=True))
    ]
    while len(parts) > 1:
        begin = np.array([p[0] for p in parts] + [driven[-1]])
        pace = np.array([p[1] / p[2] for p in parts])
        length = np.diff(begin)
        short = np.minimum(length[1:], length[:-1]) < SHORT_KM
        apart = np.abs(np.diff(pace)) * np.where(short, 1.0 / 3.0, 1.0)
        i = int(np.argmin(apart))
        if apart[i] >= APART_KMH:
            break
        parts[i : i + 2] = [[parts[i][0], parts[i][1] + parts[i + 1][1], parts[i][2] + parts[i + 1][2]]]
    pace = np.array([p[1] / p[2] for p in parts])
    return np.array([p[0] for p in parts]), np.maximum(np.round(pace / STEP_KMH) * STEP_KMH, STEP_KMH)
