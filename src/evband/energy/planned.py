"""Planned is not driven: what a drive takes beyond what its plan would, learned from the user's own trips.

A router gives one speed per stretch of road and no stops; a driver speeds up, brakes and waits, most of it in towns. Each trip is
turned into what a router would have given for it (`router_says`), the model predicts both, and the difference in energy is taken as

    shift W + a trip's habit (variance habit W^2) + what differs from place to place (variance local km),   W = sum exp(-v / V) km

over kilometres of planned speed v: those of a town count, those of a motorway hardly. The scale V is the one under which half of the
trips are likeliest given the other half. The tails are Student-t like the errors of trips. It is the model's own answer to two
speed profiles, so no measured power is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from evband.energy.student import robust_deviation, surprise
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
# V: the first is taken with fewer than ENOUGH_TRIPS, the last counts all kilometres alike
SCALES_KMH = (25.0, 15.0, 40.0, 60.0, 1e6)
ENOUGH_TRIPS = 10  # to choose V by


@dataclass(frozen=True)
class Planned:
    """Energy driven minus energy planned, along the way."""

    shift: float  # kWh per counted km
    habit: float  # kWh^2 per counted km^2
    local: float  # kWh^2/km
    trips: int
    scale_kmh: float = SCALES_KMH[-1]  # V

    def counted(self, speed_kmh: Array) -> Array:
        """How much a kilometre of road counts that is planned at this speed."""
        return np.asarray(np.exp(-speed_kmh / self.scale_kmh))

    def counted_km(self, speed_kmh: Array, hz: float) -> float:
        """W of a whole plan."""
        return float(speed_kmh @ self.counted(speed_kmh)) / hz / 3600.0

    def over(self, km: ArrayLike, counted_km: ArrayLike) -> tuple[Array, Array]:
        """(mean in kWh, variance in kWh^2) over so many kilometres of a new trip."""
        way, counted = np.asarray(km, float), np.asarray(counted_km, float)
        return self.shift * counted, (self.habit * counted**2 + self.local * way) * (1.0 + 1.0 / self.trips)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Any) -> Self:
        """Inverse of `to_dict`; a model file is not to be trusted."""
        try:
            before = {"scale_kmh": SCALES_KMH[-1]}  # what earlier versions did
            values = {f.name: float((before | dict(saved))[f.name]) for f in fields(cls)}
        except (KeyError, TypeError, ValueError) as problem:
            raise ArtifactError(f"The plans in the model file are damaged ({problem}); fit it again.") from None
        if (
            not np.isfinite(list(values.values())).all()
            or min(values["habit"], values["local"], values["trips"] - 1) < 0
            or values["scale_kmh"] < 1.0
        ):
            raise ArtifactError("The plans in the model file are damaged; fit it again.")
        return cls(**{**values, "trips": int(values["trips"])})  # type: ignore[arg-type]


def fit_planned(difference_kwh: ArrayLike, plans: Sequence[tuple[Array, float]]) -> Planned | None:
    """From each trip's difference and its plan's (speeds in km/h, rows per second); None for fewer than `LEAST_TRIPS`.

    The mode of a Student-t posterior with wide priors."""
    kwh = np.asarray(difference_kwh, float)
    if len(kwh) < LEAST_TRIPS:
        return None
    km = np.array([speed.sum() / hz / 3600.0 for speed, hz in plans])

    def counted(scale: float) -> Array:
        return np.array([Planned(0.0, 0.0, 0.0, 1, scale).counted_km(*plan) for plan in plans])

    scale = SCALES_KMH[0]
    if len(kwh) >= ENOUGH_TRIPS:
        scale = min(SCALES_KMH, key=lambda one: _unlikely_half(kwh, km, counted(one)))
    return replace(_mode(kwh, km, counted(scale)), scale_kmh=scale)


def _unlikely_half(kwh: Array, km: Array, counted: Array) -> float:
    """Minus the log likelihood of every other trip, given the rest, and the other way round."""
    even = np.arange(len(kwh)) % 2 == 0
    total = 0.0
    for train in (even, ~even):
        found = _mode(kwh[train], km[train], counted[train])
        mean, variance = found.over(km[~train], counted[~train])
        total += float(surprise(kwh[~train] - mean, variance).sum())
    return total


def _mode(kwh: Array, km: Array, counted: Array) -> Planned:
    from scipy.optimize import minimize

    rate = kwh / counted
    scale = robust_deviation(rate) + 1e-6
    start = 2.0 * np.log(scale) + np.array([-0.7, 0.7 + np.log(np.median(counted / km))])

    def unlikely(p: Array) -> float:
        variance = np.exp(p[1]) * counted**2 + np.exp(p[2]) * km
        loss = surprise(kwh - p[0] * scale * counted, variance)
        return float(loss.sum() + 0.125 * ((p[1:] - start) ** 2).sum())

    first = np.append(np.median(rate) / scale, start)
    p = minimize(unlikely, first, method="Nelder-Mead", options={"maxiter": 2000, "xatol": 1e-3, "fatol": 1e-4}).x
    return Planned(float(p[0]) * scale, float(np.exp(p[1])), float(np.exp(p[2])), len(kwh))


def router_says(trip: Trip) -> Route | None:
    """A gridded trip as a router would have planned it: its way at one speed per stretch, without stops; None if too short."""
    assert trip.hz is not None
    speed = np.maximum(np.nan_to_num(trip.column("speed_kmh")), 0.0)
    driven = np.cumsum(speed) / trip.hz / 3600.0
    if not len(driven) or driven[-1] < SHORTEST_KM:
        return None
    at, pace = _stretches(speed, driven, trip.hz)
    table = pl.DataFrame({"distance_km": np.append(at, driven[-1]), "speed_kmh": np.append(pace, 0.0)})
    along = {}
    if trip.has("elevation_m"):
        height = trip.column("elevation_m")
        known = np.isfinite(height)
        places = np.linspace(0.0, driven[-1], max(2, int(driven[-1] / 0.05)))
        along["elevation_m"] = (places, np.interp(places, driven[known], height[known]))
    for name in ("ambient_temp_c", "wind_ms"):
        if trip.has(name):
            along[name] = (np.zeros(1), np.nanmean(trip.column(name), keepdims=True))
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
