"""`evband adapt`: what minutes to hours of a car's own driving say about it, in seconds of computing and without torch.

Rows of trip g are taken as  y = w . phi + z . b_g + noise,  phi the road-load terms and the member's hidden state, z a
trip's own offset and its shares of drag and rolling resistance (heater, wind, load: b_g ~ N(0, 1) in those units), and
Student-t noise whose errors last some seconds, so that `CORRELATED` rows count as one. Of each member the weights w
move from the car it was drawn as to one that explains the rows: with prior precision P and the information A of the
rows (trip effects integrated out),

    w <- w + (A + P)^-1 (phi' W (y - w . phi) + A^(1/2) xi),   xi ~ N(0, I)

which turns draws from the prior into draws from the posterior (a perturbed, anchored MAP; exact for Gaussian noise).
The next log goes on from P + A. Then the scale: how noisy the log is, from rows on the move, each trip a draw about
the car's own level.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.checks import another_car, check_evidence, new_trips
from evband.adaptation.state import Adaptation
from evband.channels import STANDING_KMH
from evband.errors import SettingsError
from evband.features.wheel import ROADS, SheetMap
from evband.network.heads.base import SCALE_FLOOR
from evband.network.inference import degrees_of_freedom

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

CORRELATED = 5.0  # rows that count as one, at 1 Hz, once the trip's own effects are apart
SCALE_CORRELATED = 10.0  # the same for the scale
TRIP_SCALE_SD = 0.45  # of the log scale, from trip to trip
ROUNDS = 4  # of reweighting the Student-t's rows
FEWEST_ROWS = 30
OFFSETS = np.linspace(-3.0, 3.0, 121)  # of the log scale


@dataclass(frozen=True)
class Evidence:
    """Rows with measured power, in standardised units."""

    r: Array  # [rows, roads]
    h: NDArray[np.float32]  # [members, rows, hidden]
    y: Array  # [rows]
    trip: NDArray[np.int64]  # [rows]
    moving: NDArray[np.bool_]  # [rows]
    effect: Array  # [rows, 3], z


def adapt(model: PowerModel, trips: Any, seed: int = 0) -> PowerModel:
    """A copy of a started model that has learned from trips with measured power."""
    if model.adaptation_ is None:
        raise SettingsError("only a model that began with evband start adapts; fit this one again with the new logs.")
    found, notes = new_trips(model, model.on_grid(trips))
    rows = evidence(model, found)
    notes += check_evidence(model, rows.y, rows.r)
    adapted = updated(model, rows, len(found), sorted(found.traces), seed)
    notes += another_car(adapted)
    adapted.adaptation_ = replace(adapted.adaptation_, notes=tuple(notes))
    return adapted


def evidence(model: PowerModel, trips: Any) -> Evidence:
    """The rows of trips from which a model learns."""
    parts = [model.feature_map_.transform(trip) for trip in trips]
    x, r, start, y = (np.concatenate([getattr(p, name) for p in parts]) for name in ("x", "r", "start", "y"))
    trip = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    speed = np.concatenate([t.table["speed_kmh"].to_numpy() for t in trips])
    return evidence_of(model, x, r, start, y, trip, speed)


def evidence_of(
    model: PowerModel,
    x: NDArray[np.float32],  # [rows, inputs]
    r: NDArray[np.float32],  # [rows, roads]
    start: NDArray[np.bool_],
    power_kw: Array,
    trip: NDArray[np.int64],
    speed_kmh: Array,
) -> Evidence:
    """The same of rows that are features already."""
    from evband.network.predict import hidden_states

    known = np.isfinite(power_kw)
    if known.sum() < FEWEST_ROWS:
        raise SettingsError(
            f"only {int(known.sum())} rows have measured power, {FEWEST_ROWS} are needed; give a longer log."
        )
    h = hidden_states(model.architecture_, model.theta_, x, start)[:, known]
    terms, moving = r[known].astype(float), speed_kmh[known] >= STANDING_KMH
    y = power_kw[known] / model.feature_map_.y_std
    return Evidence(terms, h, y, trip[known], moving, trip_effects(model, terms))


def trip_effects(model: PowerModel, terms: Array) -> Array:
    """z of rows: a trip's own offset, its share of drag and of rolling resistance, each of unit variance."""
    offset, drag, rolling = model.adaptation_.trip_effect
    fm = model.feature_map_
    assert isinstance(fm, SheetMap)
    unit = fm.y_std / fm.wheel[0] * 1000.0  # W/kg per standardised unit
    aero, roll = (terms[:, ROADS.index(k)] * fm.r_scale[ROADS.index(k)] for k in ("aero", "rolling"))
    return np.asarray(np.stack([np.full(len(terms), offset), drag * aero, rolling * roll], 1) / unit)


def updated(model: PowerModel, rows: Evidence, trips: int, traces: Sequence[str], seed: int = 0) -> PowerModel:
    """The model after these rows."""
    before: Adaptation = model.adaptation_
    theta, precision = model.theta_.copy(), before.precision.astype(float)
    views = model.architecture_.unpack(theta)
    nu = degrees_of_freedom(model.architecture_, views)
    assert nu is not None
    scale = _Scale(*before.scale)
    ranks = scale.ranks(views["head_b"][:, 1] - before.neutral)
    groups = [np.flatnonzero(rows.trip == t) for t in np.unique(rows.trip)]
    likely = np.zeros(len(OFFSETS))
    for m in range(len(theta)):
        rng = np.random.default_rng([seed, len(model.fingerprints_), m])
        member = Member(rows, m, views, float(before.neutral[m]), float(nu[m]))
        weights, information, offsets = member.learn(precision[m], scale, groups, rng)
        views["road_w"][m], views["head_w"][m, 0] = weights[: len(ROADS)], weights[len(ROADS) :]
        precision[m] += information
        views["head_b"][m, 1] = before.neutral[m] + offsets.of_a_trip().at(ranks[m])
        likely += offsets.density / len(theta)
    after = copy(model)
    after.theta_, after.fingerprints_ = theta, sorted({*model.fingerprints_, *traces})
    after.adaptation_ = replace(
        before,
        precision=precision.astype(np.float32),
        scale=_Offsets(likely).moments,
        minutes=before.minutes + len(rows.y) / model.settings_.hz / 60.0,
        trips=before.trips + trips,
    )
    return after


def _near() -> Array:
    """Density of a trip's offset (columns) about its car's (rows), but for a constant."""
    return np.asarray(np.exp(-((OFFSETS[:, None] - OFFSETS) ** 2) / (2 * TRIP_SCALE_SD**2)))


@dataclass(frozen=True)
class _Offsets:
    """What is known of the log scale's offset, as a density over `OFFSETS`."""

    density: Array

    def of_a_trip(self) -> _Offsets:
        """Of the next trip, which has a level of its own."""
        blurred = _near() @ self.density
        return _Offsets(blurred / blurred.sum())

    def at(self, rank: float) -> float:
        """Quantile."""
        return float(np.interp(rank, np.cumsum(self.density), OFFSETS))

    @property
    def moments(self) -> tuple[float, float]:
        mean = float(self.density @ OFFSETS)
        return mean, max(0.05, float(self.density @ (OFFSETS - mean) ** 2) ** 0.5)


@dataclass(frozen=True)
class _Scale:
    """Prior of the log scale's offset over cars, or what earlier logs left of it."""

    mean: float
    sd: float

    def ranks(self, offsets: Array) -> Array:
        """Where members stand in it, 0 to 1: a member that was drawn as a noisy log stays one of the noisy ones."""
        order = np.argsort(np.argsort(offsets))
        return np.asarray((order + 0.5) / len(offsets))

    def posterior(self, raw: Array, error: Array, nu: float, groups: list[NDArray[np.int64]]) -> _Offsets:
        """Given errors of rows: each trip is a draw about the car's level, `TRIP_SCALE_SD` wide."""
        log = -((OFFSETS - self.mean) ** 2) / (2 * self.sd**2)
        for group in groups:
            s = np.logaddexp(0.0, raw[group, None] + OFFSETS) + SCALE_FLOOR
            fit = (-np.log(s) - (nu + 1) / 2 * np.log1p((error[group, None] / s) ** 2 / nu)).sum(0) / SCALE_CORRELATED
            log += np.log(_near() @ np.exp(fit - fit.max()) + 1e-300)
        density = np.exp(log - log.max())
        return _Offsets(density / density.sum())


class Member:
    """One member's view of the rows."""

    def __init__(self, rows: Evidence, m: int, views: dict[str, Any], neutral: float, nu: float) -> None:
        h = rows.h[m].astype(float)
        self.rows, self.nu = rows, nu
        self.phi = np.concatenate([rows.r, h], 1)  # [rows, Q]
        self.prior = np.concatenate([views["road_w"][m], views["head_w"][m, 0]]).astype(float)
        self.y = rows.y - float(views["head_b"][m, 0])
        self.raw = h @ views["head_w"][m, 1].astype(float) + neutral

    def learn(
        self, precision: Array, scale: _Scale, groups: list[NDArray[np.int64]], rng: np.random.Generator
    ) -> tuple[Array, Array, _Offsets]:
        """(weights, information of the rows, offset of the log scale)."""
        moving = [g[self.rows.moving[g]] for g in groups]
        moving = [g for g in moving if len(g) >= FEWEST_ROWS] or groups
        w, own = self.prior, np.zeros(len(self.y))
        for _ in range(ROUNDS):
            error = self.y - self.phi @ w - own
            offsets = scale.posterior(self.raw, error, self.nu, moving)
            s = np.logaddexp(0.0, self.raw + OFFSETS[offsets.density.argmax()]) + SCALE_FLOOR
            weight = (self.nu + 1) / (self.nu + (error / s) ** 2) / s**2 / CORRELATED
            information, gain, effects = self.normal_equations(weight, groups)
            w = self.prior + np.linalg.solve(information + precision, gain)
            own = self.own(effects, weight, w, groups)
        return self.drawn(information, gain, precision, rng), information, offsets

    def drawn(self, information: Array, gain: Array, precision: Array, rng: np.random.Generator) -> Array:
        """The weights after the rows: the solution of the normal equations with perturbed data."""
        values, vectors = np.linalg.eigh(information)
        perturbed = gain + vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.standard_normal(len(values)))
        return np.asarray(self.prior + np.linalg.solve(information + precision, perturbed))

    def normal_equations(self, weight: Array, groups: list[NDArray[np.int64]]) -> tuple[Array, Array, list[Array]]:
        """Information [Q, Q] and gain [Q] with each trip's effects integrated out, and these effects' covariances."""
        error = self.y - self.phi @ self.prior
        size = self.phi.shape[1]
        information, gain = np.zeros((size, size)), np.zeros(size)
        effects: list[Array] = []
        for g in groups:
            phi, z = self.phi[g], self.rows.effect[g]
            weighted, zw = phi * weight[g, None], z * weight[g, None]
            covariance = np.linalg.inv(z.T @ zw + np.eye(z.shape[1]))
            cross = weighted.T @ z
            information += weighted.T @ phi - cross @ covariance @ cross.T
            gain += weighted.T @ error[g] - cross @ covariance @ (zw.T @ error[g])
            effects.append(np.asarray(covariance, np.float64))
        return np.asarray((information + information.T) / 2), np.asarray(gain), effects

    def own(self, effects: list[Array], weight: Array, w: Array, groups: list[NDArray[np.int64]]) -> Array:
        """z . b_g of every row, given the weights."""
        error, own = self.y - self.phi @ w, np.zeros(len(self.y))
        for g, covariance in zip(groups, effects, strict=True):
            z = self.rows.effect[g]
            own[g] = z @ (covariance @ ((z * weight[g, None]).T @ error[g]))
        return own
