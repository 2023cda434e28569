"""How hard a car rolled on a trip: the share of rolling resistance above what its model expects, and how sure that is.

Errors of the mean along a trip that the model has not learned from are explained by what each trip has of its own (the
cabin's draw, also at first, and wind, as a share of drag), by the share x of rolling resistance, which is asked for, and
by hills that no log has seen: heights that change over `HILLS`' lengths push by their slope times speed. What hills give
they take again along the way, so only the height between start and end blurs x, which generalised least squares with
their covariance knows. A trip that is as long as the one before it is taken as its way back: then the slopes of the two
are opposite, row by row, and nothing is left of the hills but what the logs cannot tell apart.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.members import CORRELATED, Evidence
from evband.adaptation.starting import PER_WHEEL
from evband.features.wheel import ROADS, SheetMap
from evband.vehicles.physics import GRAVITY

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

SECONDS, MOST_BINS = 6, 200  # of a bin of rows; in a trip
STRANGE = 8.0  # deviations at which an error is cut
HILLS = ((9.0, 1400.0), (30.0, 10_000.0))  # deviation of heights and the length over which they change, m
SEEN = 0.3  # of the hills that are left where elevation is logged
FLOOR = 0.3  # W/kg of a bin's error that lasts through it
WIND, CABIN, AT_FIRST, WARM_S = (
    0.07,
    0.6,
    0.5,
    300.0,
)  # share of drag; W/kg throughout and at first, and how long that is
ALIKE = 0.02  # share by which the ways there and back may differ in length
FREE = 10.0  # deviation of the share that is asked for: it is all but free


class Reading(NamedTuple):
    """Of a trip, or of a way there and back."""

    share: float
    variance: float
    trips: int = 1


class Bins(NamedTuple):
    """Means of some seconds' rows, weighted by what they tell; powers in W/kg."""

    error: Array
    variance: Array
    aero: Array
    rolling: Array
    speed: Array  # m/s
    place: Array  # m from the start
    time: Array  # s
    length: float  # m, of the whole way
    seen: bool  # its heights are logged


def readings(model: PowerModel, rows: Evidence) -> list[Reading]:
    """Of all trips, those that are ways there and back together."""
    trips = [_bins(model, rows.of(group)) for group in rows.groups]
    found, done = list[Reading](), False
    for trip, then in pairwise([*trips, None]):
        assert trip is not None
        if done:  # with the one before
            done = False
        elif then is not None and abs(then.length - trip.length) < ALIKE * trip.length:
            found.append(_reading([trip, then]))
            done = True
        else:
            found.append(_reading([trip]))
    return found


def _bins(model: PowerModel, rows: Evidence) -> Bins:
    features = model.feature_map_
    assert isinstance(features, SheetMap)
    views = model.architecture_.unpack(model.theta_)
    location, scale = (views["head_w"][:, k, :, None] for k in (0, 1))
    mu = (rows.h @ location)[..., 0].mean(0) + rows.r @ views["road_w"].mean(0) + views["head_b"][:, 0].mean()
    s = np.asarray(np.logaddexp(0.0, (rows.h @ scale)[..., 0] + views["head_b"][:, 1:2]).mean(0), float)
    unit = features.y_std / features.wheel[0] * 1000.0  # W/kg
    aero, rolling, slope = (rows.r[:, k] * features.r_scale[k] for k in map(ROADS.index, ("aero", "rolling", "slope")))
    speed = rolling / (features.wheel[2] * GRAVITY)
    place, weight = np.cumsum(speed), 1.0 / (s * unit) ** 2
    first = np.arange(0, len(s), max(SECONDS, -(-len(s) // MOST_BINS)))
    total = np.add.reduceat(weight, first)

    def means(values: Array) -> Array:
        return np.asarray(np.add.reduceat(weight * values, first) / total)

    error = means(np.clip(rows.y - mu, -STRANGE * s, STRANGE * s) * unit)
    time = np.arange(float(len(s)))
    return Bins(
        error, CORRELATED / total + FLOOR**2, means(PER_WHEEL * aero), means(PER_WHEEL * rolling), means(speed),
        means(place), means(time), float(place[-1]), bool(slope.any()),
    )  # fmt: skip


def _reading(trips: list[Bins]) -> Reading:
    """Posterior mean and variance of the share, of one trip or of two, of which the second goes back."""
    error, rolling = (np.concatenate([getattr(trip, name) for trip in trips]) for name in ("error", "rolling"))
    place = np.concatenate([trip.length - trip.place if k else trip.place for k, trip in enumerate(trips)])
    speed = np.concatenate([-trip.speed if k else trip.speed for k, trip in enumerate(trips)])
    own = np.repeat(np.eye(len(trips)), [len(trip.error) for trip in trips], 0)  # [bins, trips]
    each = [np.concatenate(parts) for parts in zip(*(
        (WIND * trip.aero, CABIN + 0.0 * trip.time, AT_FIRST * np.exp(-trip.time / WARM_S)) for trip in trips
    ), strict=True)]  # fmt: skip
    effects = np.column_stack([FREE * rolling, *(column[:, None] * own for column in each)])  # of unit variance
    left = SEEN if all(trip.seen for trip in trips) else 1.0
    far = (place[:, None] - place) ** 2
    slopes = sum((left * height / length) ** 2 * 2.0 * (1.0 - 2.0 * far / length**2) * np.exp(-far / length**2)
                 for height, length in HILLS)  # fmt: skip
    push = PER_WHEEL * GRAVITY * speed
    covariance = np.diag(np.concatenate([trip.variance for trip in trips])) + push[:, None] * push * slopes
    solved = np.linalg.solve(covariance, np.column_stack([effects, error]))
    posterior = np.linalg.inv(effects.T @ solved[:, :-1] + np.eye(effects.shape[1]))
    share = float(posterior[0] @ (effects.T @ solved[:, -1]))
    return Reading(FREE * share, FREE**2 * float(posterior[0, 0]), len(trips))
