"""From a model and trips to what energy stands on: drives with their linear path, and the energy part of a model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.energy.cabin import CHANNEL as CABIN
from evband.energy.cabin import Cabin, fit_cabin
from evband.energy.drives import Drive, drives_of
from evband.energy.errors import ErrorModel
from evband.energy.fitting import fit_errors
from evband.energy.mean import TripMean
from evband.energy.planned import LEAST_TRIPS, Planned, fit_planned, router_says
from evband.energy.sanity import contradictions
from evband.errors import TripsError
from evband.trips import Trips

if TYPE_CHECKING:
    from evband.bands import Bands
    from evband.features import FeatureMap
    from evband.model import PowerModel
    from evband.training.plan import Job

Array = NDArray[np.float64]
CLIMB = "v*grade"  # the road term that is climb in m/s
PLANNABLE = {"speed_kmh", "acceleration_ms2", "elevation_m", "ambient_temp_c", "wind_ms", CABIN}
MOST_PLANS = 60  # trips that say how plans differ from drives


def predicted_drives(model: PowerModel, trips: Trips) -> list[Drive]:
    """Trips on the model's grid as it predicts them, with the mean over trips that its calibration found."""
    mean = model.errors_.mean
    return [mean.of(drive) for drive in _with_path(model.feature_map_, model.predict(trips), trips, mean.weight > 0)]


class RowMean:
    """The mean over trips of single rows, for streams: equal to `TripMean.of` of the whole drive."""

    def __init__(self, features: FeatureMap, mean: TripMean) -> None:
        self.mean, self._features = mean, features
        self._weights = features.least_squares() if mean.weight else None
        self._idle = not mean.weight and not any(mean.slopes)

    def added(self, network_kw: Array, speed_kmh: Array, road: NDArray[np.float32]) -> Array:
        """[n] kW on top of the network's mean, of rows with these road-load features [n, K]."""
        if self._idle:
            return np.zeros(len(network_kw))
        linear, climb = road_rows(self._features, road, self._weights)
        return self.mean.rows(network_kw, linear, np.maximum(np.nan_to_num(speed_kmh), 0.0), climb)


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
        errors = fit_errors(drives)
    except TripsError:
        return None
    cabin = fit_cabin(trips) if CABIN in features.channels else None
    planned = _planned(model, trips, errors)
    return errors.to_dict() | {
        "cabin": None if cabin is None else cabin.to_dict(),
        "planned": None if planned is None else planned.to_dict(),
    }


def find_contradictions(model: PowerModel, terms: Mapping[str, float]) -> None:
    """Check a calibrated model against physics; keep what was found, and the car's figures, in its energy part."""
    if model.energy_ is None:
        return
    drag, idle = terms.get("drag area"), terms.get("auxiliary power")
    if drag is not None and idle is not None:
        model.energy_["car"] = {"drag_m2": drag, "idle_kw": idle}
    model.energy_["contradictions"] = contradictions(model, terms)


def cabin_of(model: PowerModel) -> Cabin | None:
    """What the cabin draws on average, where the model needs it and its trips told."""
    saved = (model.energy_ or {}).get("cabin")
    return None if saved is None else Cabin.from_dict(saved)


def planned_of(model: PowerModel) -> Planned | None:
    """How drives differ from plans; None where no route can supply the model's inputs."""
    saved = (model.energy_ or {}).get("planned")
    return None if saved is None else Planned.from_dict(saved)


def _planned(model: PowerModel, trips: Trips, errors: ErrorModel) -> Planned | None:
    """The difference between trips as driven and as a router would have planned them, both as the model predicts them."""
    channels, mean = model.feature_map_.channels, errors.mean
    if not set(channels) <= PLANNABLE:
        return None
    chosen = [trips[int(i)] for i in np.unique(np.linspace(0, len(trips) - 1, min(MOST_PLANS, len(trips))).astype(int))]
    pairs = []
    for trip in chosen:
        route = router_says(trip)
        if route is not None and all(trip.has(c) for c in channels):
            if CABIN in channels:
                route = route.with_everywhere(CABIN, float(np.nanmean(trip.table[CABIN].to_numpy().astype(float))))
            pairs.append((trip, replace(route.on_grid(model.settings_.hz), trip_id=trip.trip_id)))
    if len(pairs) < LEAST_TRIPS:
        return None
    kwh = []
    for side in range(2):
        these = Trips(pair[side] for pair in pairs)
        drives = _with_path(model.feature_map_, model.predict(these), these, mean.weight > 0)
        kwh.append(np.array([float(mean.of(d).mean.sum()) / d.hz / 3600.0 for d in drives]))
    return fit_planned((kwh[0] - kwh[1]).tolist(), [pair[1].distance_km for pair in pairs])


def road_rows(features: FeatureMap, r: NDArray[np.float32], weights: Array | None) -> tuple[Array | None, Array | None]:
    """(power in kW of the linear path with these weights, climb in m/s) of rows of road-load features [T, K]."""
    linear = None if weights is None else features.y_mean + features.y_std * (r.astype(np.float64) @ weights)
    if CLIMB not in features.road_names:
        return linear, None
    column = features.road_names.index(CLIMB)
    return linear, np.asarray(r[:, column] * features.r_scale[column] + features.r_shift[column], float)


def _with_path(features: FeatureMap, bands: Bands, trips: Trips, path: bool, job: Job | None = None) -> list[Drive]:
    """Drives of bands of these trips, in the order of the bands."""
    if not path and CLIMB not in features.road_names:
        return drives_of(bands, None, None)
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
