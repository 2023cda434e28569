"""How hard a car rolled on a trip: the share of rolling resistance above what its model expects, and how sure that is.

Errors of the mean along a trip that the model has not learned from are the share x of rolling resistance, which is asked
for, and what each trip has of its own, with the covariance that each has along the way: wind, which pushes by drag and
turns within minutes; the cabin's draw, more at first and going up and down, by shares of what the weather asks for; load,
seen in inertia and slopes; brakes that give back more or less; noise of rows; and heights, unknown (`HILLS`) or logged
with an error. What heights give they take again along the way, so they blur x only by what lies between start and end,
which generalised least squares knows. How noisy rows and heights are is chosen for each reading by restricted likelihood.
A trip is taken as the way back of the one before it, or as some of it, if the hills of one road there and back explain
the errors of the two better than those of two roads: then slopes are opposite, and nothing is left of them but what the
logs cannot tell apart.
"""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, solve_triangular

from evband.adaptation.cabin import cabin_of
from evband.adaptation.members import Evidence
from evband.adaptation.starting import PER_WHEEL
from evband.features.wheel import AIR, ROADS, SheetMap
from evband.vehicles.physics import GRAVITY

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

TERMS = ("rolling", "aero", "slope", "inertia")  # whose sum is the power at the wheels
SECONDS, MOST_BINS = 6, 200  # of a bin of rows; in a trip
STRANGE, OFTEN = 8.0, 0.5  # deviations from the trip's median at which an error is cut; W/kg, added to deviations there
ANY = 850.0  # W that a cabin asks for where the temperature is not logged
ALWAYS, LEAST = 0.5, 0.1  # W/kg of a trip's own draw in any weather; that the weather asks for at least
THROUGHOUT, AT_FIRST, WARM_S = 0.5, 0.6, 300.0  # of what is asked for, all the way and at first, and how long that is
LOAD, BRAKES = 0.045, 0.1  # share of the mass; of what is braked
WIND = ((1.5, 85.0), (0.6, 16.0))  # m/s along the road, and over how many seconds that changes
CYCLING = (0.25, 80.0)  # of what is asked for, s
ROWS, FLOOR = 1.5, 0.1  # rows that count as one; W/kg of a bin's error that lasts through it
HILLS = ((6.3, 1400.0), (21.0, 10_000.0))  # deviation of heights and the length over which they change, m
SEEN, HEIGHT = 0.14, (0.5, 30.0)  # of hills that are left where elevation is logged; its error in m, and for how many s
NOISES, HEIGHTS = (0.3, 1.0, 3.0), (0.35, 1.0, 2.8)  # times the variance of rows; times heights that no log has seen
ALIKE = 0.02  # share by which the ways there and back may differ in length
LIKELY, UNLIKELY = 3.0, -1.0  # log odds that a trip as long as the one before it, or a shorter one, is its way back


class Reading(NamedTuple):
    """Of a trip, or of a way there and back."""

    share: float
    variance: float
    trips: int = 1


class Bins(NamedTuple):
    """Means of some seconds' rows, weighted by what they tell; powers in W/kg at the battery."""

    error: Array
    variance: Array
    rolling: Array
    drag: Array  # for each m/s of wind
    weight: Array  # what the whole mass asks for, but for rolling
    braking: Array
    speed: Array  # m/s
    place: Array  # m from the start
    time: Array  # s
    length: float  # m, of the whole way
    cabin: float  # W/kg that the weather asks for
    seen: bool  # its heights are logged


class Fit(NamedTuple):
    """Generalised least squares of the share, and the restricted likelihood of what it rests on."""

    likelihood: float
    share: float
    variance: float


def readings(model: PowerModel, rows: Evidence) -> list[Reading]:
    """Of all trips, those that are ways there and back together."""
    trips = [_bins(model, rows.of(group)) for group in rows.groups]
    found, done = list[Reading](), False
    for trip, then in pairwise([*trips, None]):
        assert trip is not None
        if done:  # with the one before
            done = False
            continue
        near = then is not None and not trip.seen and then.length < (1.0 + ALIKE) * trip.length
        both = _both(trip, then) if near and then is not None else None
        done = both is not None
        found.append(both or _reading(_best([trip]), 1))
    return found


def _bins(model: PowerModel, rows: Evidence) -> Bins:
    features = model.feature_map_
    assert isinstance(features, SheetMap)
    views = model.architecture_.unpack(model.theta_)
    h = rows.states
    location, scale = (views["head_w"][:, k, :, None] for k in (0, 1))
    mu = (h @ location)[..., 0].mean(0) + rows.r @ views["road_w"].mean(0) + views["head_b"][:, 0].mean()
    s = np.asarray(np.logaddexp(0.0, (h @ scale)[..., 0] + views["head_b"][:, 1:2]).mean(0), float)
    mass, drag, crr = features.wheel
    unit = features.y_std / mass * 1000.0  # W/kg
    terms = {name: rows.r[:, ROADS.index(name)] * features.r_scale[ROADS.index(name)] for name in TERMS}
    speed = terms["rolling"] / (crr * GRAVITY)
    place, weight, error = np.cumsum(speed), 1.0 / (s * unit) ** 2, (rows.y - mu) * unit
    usual, strange = np.median(error), STRANGE * np.hypot(s * unit, OFTEN)
    first = np.arange(0, len(s), max(SECONDS, -(-len(s) // MOST_BINS)))
    total = np.add.reduceat(weight, first)

    def means(values: Array) -> Array:
        return np.asarray(np.add.reduceat(weight * values, first) / total)

    return Bins(
        means(np.clip(error, usual - strange, usual + strange)), ROWS / total + FLOOR**2,
        means(PER_WHEEL * terms["rolling"]), means(PER_WHEEL * AIR * drag / mass * speed**2),
        means(PER_WHEEL * (terms["inertia"] + terms["slope"])), means(np.maximum(0.0, -sum(terms.values()))),
        means(speed), means(place), means(np.arange(float(len(s)))), float(place[-1]),
        _asked(rows, features) / mass, bool(terms["slope"].any()),
    )  # fmt: skip


def _asked(rows: Evidence, features: SheetMap) -> float:
    """W that cabins draw on average in the trip's weather."""
    asked, unknown = cabin_of(rows.r[:1], features)
    return ANY if unknown[0] > 0.5 else float(asked[0])


def _both(there: Bins, back: Bins) -> Reading | None:
    """Of two trips as a way there and back; None where the hills that they show are not the same."""
    together, apart = (_best([there, back], mirrored) for mirrored in (True, False))
    odds = LIKELY if back.length > (1.0 - ALIKE) * there.length else UNLIKELY
    return _reading(together, 2) if together.likelihood + odds > apart.likelihood else None


def _reading(fit: Fit, trips: int) -> Reading:
    return Reading(fit.share, fit.variance, trips)


def _best(trips: list[Bins], mirrored: bool = False) -> Fit:
    """With the likeliest noise of rows and heights; of two trips, with the hills of one road or of two."""
    error, rolling, noise = (
        np.concatenate([getattr(one, name) for one in trips]) for name in ("error", "rolling", "variance")
    )
    own, hidden = block_diag(*map(_own, trips)), _hills(trips, mirrored)
    if all(one.seen for one in trips):
        height, seconds = HEIGHT
        own += SEEN**2 * hidden
        hidden = block_diag(*((PER_WHEEL * GRAVITY * height) ** 2 * _slopes(one.time, seconds) for one in trips))
    return max(
        _fit(error, rolling, own + np.diag(times * noise) + high**2 * hidden)
        for times, high in product(NOISES, HEIGHTS)
    )


def _fit(error: Array, rolling: Array, covariance: Array) -> Fit:
    root = np.linalg.cholesky(covariance)
    x, y = solve_triangular(root, np.stack([rolling, error], 1), lower=True, check_finite=False).T
    told = float(x @ x)
    share = float(x @ y) / told
    left = float(y @ y) - told * share**2
    return Fit(-0.5 * left - float(np.log(np.diag(root)).sum()) - 0.5 * math.log(told), share, 1.0 / told)


def _own(trip: Bins) -> Array:
    """Covariance of what a trip has of its own."""
    apart = (trip.time[:, None] - trip.time) ** 2
    asked = math.hypot(trip.cabin, LEAST)
    effects = np.stack([
        np.full(len(trip.time), math.hypot(ALWAYS, THROUGHOUT * asked)), AT_FIRST * asked * np.exp(-trip.time / WARM_S),
        LOAD * trip.weight, BRAKES * trip.braking,
    ])  # fmt: skip
    wind = sum(deviation**2 * np.exp(-apart / seconds**2) for deviation, seconds in WIND)
    return np.asarray(
        effects.T @ effects
        + np.outer(trip.drag, trip.drag) * wind
        + (CYCLING[0] * asked) ** 2 * np.exp(-apart / CYCLING[1] ** 2)
    )


def _hills(trips: list[Bins], mirrored: bool) -> Array:
    """Covariance of what hills of unknown heights ask for: of roads of their own, or of one road there and back."""
    if not mirrored:
        return np.asarray(block_diag(*(_climb(one.place, one.speed) for one in trips)))
    there, back = trips
    return _climb(np.append(there.place, there.length - back.place), np.append(there.speed, -back.speed))


def _climb(place: Array, speed: Array) -> Array:
    push = PER_WHEEL * GRAVITY * speed
    return np.asarray(np.outer(push, push) * sum(height**2 * _slopes(place, length) for height, length in HILLS))


def _slopes(place: Array, length: float) -> Array:
    """Covariance of the slope of smooth noise of unit variance whose correlation falls as exp(-(distance / length)^2)."""
    far = (place[:, None] - place) ** 2 / length**2
    return np.asarray(2.0 / length**2 * (1.0 - 2.0 * far) * np.exp(-far))
