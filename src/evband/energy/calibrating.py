"""From a model and trips to what energy stands on: drives with their linear path, and the energy part of a model file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.energy.drives import Drive, drives_of
from evband.energy.fitting import fit_errors
from evband.energy.mean import TripMean
from evband.errors import TripsError
from evband.trips import Trips

if TYPE_CHECKING:
    from evband.bands import Bands
    from evband.features import FeatureMap
    from evband.model import PowerModel
    from evband.training.plan import Job

Array = NDArray[np.float64]
CLIMB = "v*grade"  # the road term that is climb in m/s


def predicted_drives(model: PowerModel, trips: Trips) -> list[Drive]:
    """Trips on the model's grid as it predicts them, with the mean over trips that its calibration found."""
    mean = model.errors_.mean
    return [mean.of(drive) for drive in _with_path(model.feature_map_, model.predict(trips), trips, mean.weight > 0)]


class RowMean:
    """The mean over trips one row at a time, for streams: equal to `TripMean.of` of the whole drive."""

    def __init__(self, features: FeatureMap, mean: TripMean) -> None:
        self._mean, self._features = mean, features
        self._weights = features.least_squares() if mean.weight else None
        self._idle = not mean.weight and not any(mean.slopes)

    def added(self, network_kw: float, speed_kmh: float, road: NDArray[np.float32]) -> float:
        """kW on top of the network's mean."""
        if self._idle:
            return 0.0
        linear, climb = road_rows(self._features, road[None], self._weights)
        return self._mean.row(
            network_kw,
            network_kw if linear is None else float(linear[0]),
            max(speed_kmh, 0.0),
            0.0 if climb is None else float(climb[0]),
        )


def energy_part(model: PowerModel, trips: Trips, bands: Bands | None, job: Job | None = None) -> dict[str, Any] | None:
    """What a model file keeps for energy, from bands of trips by members that never saw them; None where too few tell.

    With the training `job`, the linear path of a trip is that of the other folds. A model that goes on from a prior keeps
    the prior's scales and moments, which are no least squares on these trips: it has no path to weigh in.
    """
    if bands is None:
        return None
    features, ours = model.feature_map_, not hasattr(model.prior, "feature_map_") and model.architecture_.road > 0
    drives = _with_path(features, bands, trips, ours, job)
    try:
        return fit_errors(drives).to_dict()
    except TripsError:
        return None


def road_rows(features: FeatureMap, r: NDArray[np.float32], weights: Array | None) -> tuple[Array | None, Array | None]:
    """(power in kW of the linear path with these weights, climb in m/s) of rows of road-load features [T, K]."""
    linear = None if weights is None else features.y_mean + features.y_std * (r.astype(np.float64) @ weights)
    if CLIMB not in features.road_names:
        return linear, None
    column = features.road_names.index(CLIMB)
    return linear, np.asarray(r[:, column] * features.r_scale[column] + features.r_shift[column], float)


def _with_path(features: FeatureMap, bands: Bands, trips: Trips, path: bool, job: Job | None = None) -> list[Drive]:
    """Drives of bands of these trips, in the order of the bands."""
    number = {trip_id: i for i, trip_id in enumerate(trips.ids)}
    linear, climb = [], []
    weights: dict[int, Array] = {}
    for trip_id in dict.fromkeys(bands.trip_id.tolist()):
        trip = number[trip_id]
        fold = -1 if job is None else int(job.fold[trip])
        if path and fold not in weights:
            weights[fold] = features.least_squares() if job is None else _left_out(job, fold)
        rows = road_rows(features, features.transform(trips[trip]).r, weights.get(fold))
        linear.append(rows[0])
        climb.append(rows[1])
    return drives_of(bands, _joined(linear), _joined(climb))


def _left_out(job: Job, fold: int) -> Array:
    """Least squares on all trips but those of one fold."""
    from evband.training.plan import least_squares

    trips = np.flatnonzero(job.fold != fold)
    return least_squares(job.data, trips if len(trips) else np.arange(len(job.fold)))


def _joined(parts: list[Array | None]) -> Array | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None
