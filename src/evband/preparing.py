"""From gridded trips and settings to the arrays that members train on, and arrays of several trips end to end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.errors import TripsError
from evband.features import FeatureMap, Sequence
from evband.trips.thinning import thinned

if TYPE_CHECKING:
    from evband.settings import Settings
    from evband.training.plan import Job
    from evband.trips import Trips


def prepare(trips: Trips, settings: Settings, features: FeatureMap | None = None) -> tuple[FeatureMap, Job]:
    """Features (learned here, unless given) and arrays of gridded training trips."""
    from evband.training.loop import Data
    from evband.training.plan import Job, assign_folds, repeats

    features = features or FeatureMap.fit(
        trips, settings.features, settings.hinges, settings.scaling, settings.edges, settings.products, settings.fade,
        ages=bool(settings.bridge_s),
    )  # fmt: skip
    rows = [features.transform(trip) for trip in trips]
    if not any(np.isfinite(row.y).any() for row in rows):
        raise TripsError("none of these trips has measured power; a model can only be fitted to logs with power_kw.")
    lengths = np.array([len(row) for row in rows])
    trip_of, thin = np.repeat(np.arange(len(rows)), lengths), None
    if settings.bridge_s and settings.thinning:
        copies = [
            features.transform(thinned(trip, settings.bridge_s, np.random.default_rng([settings.seed, k])))
            for k, trip in enumerate(trips)
        ]
        copied = np.array([len(copy) for copy in copies])
        rows, trip_of = [*rows, *copies], np.append(trip_of, np.repeat(np.arange(len(copies)), copied))
        thin = np.repeat([False, True], [lengths.sum(), copied.sum()])
    data = Data(
        np.concatenate([row.x for row in rows]),
        np.concatenate([row.r for row in rows]),
        (np.concatenate([row.y for row in rows]) - features.y_mean) / features.y_std,
        np.concatenate([row.start for row in rows]),
        trip_of,
        thin,
    )
    speeds = [trip.table["speed_kmh"].to_numpy() for trip in trips]
    return features, Job(data, assign_folds(lengths, repeats(speeds)))


def seconds_since(start: NDArray[np.bool_], hz: float) -> NDArray[np.float64]:
    """Time since the last reset, at each row."""
    rows = np.arange(len(start))
    return (rows - np.maximum.accumulate(np.where(start, rows, 0))) / hz


def joined(parts: list[NDArray]) -> NDArray:
    """End to end; a single long drive is not copied."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def outside_names(rows: list[Sequence], channels: tuple[str, ...]) -> NDArray[np.str_]:
    """The first channel that left its training range, of each row."""
    which = np.concatenate([row.which_outside for row in rows])
    return np.where(which.any(1), np.asarray(channels)[which.argmax(1)], "")
