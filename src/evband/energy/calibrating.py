"""From a model and trips to what energy stands on: drives with their linear path, and the energy part of a model file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.energy.cabin import Cabin, fit_cabin
from evband.energy.drives import Drive, drives_of
from evband.energy.fitting import fit_errors
from evband.energy.mean import TripMean
from evband.energy.planned import LEAST_TRIPS, Planned, fit_planned, router_says
from evband.energy.sanity import of_steady_drives, of_terms
from evband.errors import TripsError
from evband.features.names import CABIN
from evband.features.physics import contradictions
from evband.features.road_load import CLIMB
from evband.trips import Trips

if TYPE_CHECKING:
    from evband.bands import Bands
    from evband.features import FeatureMap, Rows
    from evband.model import PowerModel
    from evband.training.plan import Job
    from evband.trips import Trip

Array = NDArray[np.float64]
PLANNABLE = {"speed_kmh", "acceleration_ms2", "elevation_m", "ambient_temp_c", "wind_ms", CABIN}
BY_PATH = "so energy and range are those of its road-load path alone, which physics limits"
MOST_PLANS = 60  # trips whose plans are compared with them


def predicted_drives(model: PowerModel, trips: Trips) -> list[Drive]:
    """Trips on the model's grid as it predicts them, with the mean over trips that its calibration found."""
    mean = model.errors_.mean
    return [mean.of(drive) for drive in _drives(model, trips, model.feature_map_.transform_all(trips), mean)]


class RowMean:
    """The mean over trips of single rows, for streams: equal to `TripMean.of` of the whole drive."""

    def __init__(self, features: FeatureMap, mean: TripMean) -> None:
        self.mean, self._features = mean, features
        self._weights = features.least_squares() if mean.weight else None

    def of(
        self, network_kw: Array, members_kw: Array, speed_kmh: Array, road: NDArray[np.float32]
    ) -> tuple[Array, Array]:
        """(mean [n], members [M, n]) in kW of rows with these road-load features [n, K]; of members only what they differ by counts."""
        mean, members = self.mean.tamed(network_kw, members_kw)
        if self.mean.idle:
            return mean, members
        linear, climb = road_rows(self._features, road, self._weights)
        return mean + self.mean.rows(mean, linear, np.maximum(np.nan_to_num(speed_kmh), 0.0), climb), members


def energy_part(
    model: PowerModel, trips: Trips, rows: Rows, bands: Bands | None, job: Job | None = None
) -> dict[str, Any] | None:
    """What a model file keeps for energy, from bands of trips by members that never saw them; None where there are too few.

    With the training `job`, the linear path of a trip is that of the other folds. A model that goes on from a prior keeps
    the prior's scales and moments, which are no least squares on these trips: it has no path to weigh in.
    """
    if bands is None:
        return None
    features, ours = model.feature_map_, not hasattr(model.prior, "feature_map_") and model.architecture_.road > 0
    drives = _with_path(features, bands, rows, ours, job)
    try:
        errors = fit_errors(drives)
    except TripsError:
        return None
    model.energy_ = errors.to_dict()
    problems = of_steady_drives(model)
    if problems and ours:
        errors = fit_errors(drives, TripMean(1.0, apart_kw=errors.mean.apart_kw))
        problems.append(BY_PATH)
    problems = [*(f"its log alone says that {text}" for text in contradictions(features) if ours), *problems]
    cabin = fit_cabin(trips) if CABIN in features.channels else None
    planned = _planned(model, trips, rows, errors.mean)
    return errors.to_dict() | {
        "cabin": None if cabin is None else cabin.to_dict(),
        "planned": None if planned is None else planned.to_dict(),
        "contradictions": problems,
    }


def find_contradictions(model: PowerModel, terms: Mapping[str, float]) -> None:
    """Add what the car's figures contradict to what `energy_part` found, and keep them, in a model's energy part."""
    if model.energy_ is None:
        return
    drag, idle = terms.get("drag area"), terms.get("auxiliary power")
    if drag is not None and idle is not None:
        model.energy_["car"] = {"drag_m2": drag, "idle_kw": idle}
    model.energy_["contradictions"] = [*of_terms(terms), *model.energy_.get("contradictions", [])]


def cabin_of(model: PowerModel) -> Cabin | None:
    """What the cabin is expected to draw; None where it is not among the inputs, or too few trips logged it."""
    saved = (model.energy_ or {}).get("cabin")
    return None if saved is None else Cabin.from_dict(saved)


def planned_of(model: PowerModel) -> Planned | None:
    """How drives differ from plans; None where no route can supply the model's inputs."""
    saved = (model.energy_ or {}).get("planned")
    return None if saved is None else Planned.from_dict(saved)


def _planned(model: PowerModel, trips: Trips, rows: Rows, mean: TripMean) -> Planned | None:
    """The difference between trips as driven and as a router would have planned them, both as the model predicts them."""
    channels = model.feature_map_.channels
    if not set(channels) <= PLANNABLE:
        return None
    routes: dict[int, Trip] = {}
    for k in np.unique(np.linspace(0, len(trips) - 1, min(MOST_PLANS, len(trips))).astype(int)).tolist():
        trip, route = trips[k], router_says(trips[k])
        if route is not None and all(trip.has(c) for c in channels):
            if CABIN in channels:
                route = route.with_everywhere(CABIN, float(np.nanmean(trip.column(CABIN))))
            routes[k] = replace(route.on_grid(model.settings_.hz), trip_id=trip.trip_id)
    if len(routes) < LEAST_TRIPS:
        return None
    driven, planned = Trips(trips[k] for k in routes), Trips(routes.values())
    kwh = [
        np.array([float(mean.of(d).mean.sum()) / d.hz / 3600.0 for d in _drives(model, these, own, mean)])
        for these, own in ((driven, rows.of([*routes])), (planned, model.feature_map_.transform_all(planned)))
    ]
    hz = float(model.settings_.hz)
    return fit_planned(kwh[0] - kwh[1], [(route.table["speed_kmh"].to_numpy(), hz) for route in planned])


def road_rows(features: FeatureMap, r: NDArray[np.float32], weights: Array | None) -> tuple[Array | None, Array | None]:
    """(power in kW of the linear path with these weights, climb in m/s) of rows of road-load features [T, K]."""
    linear = None if weights is None else features.y_mean + features.y_std * (r.astype(np.float64) @ weights)
    if CLIMB not in features.road_names:
        return linear, None
    column = features.road_names.index(CLIMB)
    return linear, np.asarray(r[:, column] * features.r_scale[column] + features.r_shift[column], float)


def _drives(model: PowerModel, trips: Trips, rows: Rows, mean: TripMean) -> list[Drive]:
    """Trips and their rows as the calibrated model predicts them."""
    return _with_path(model.feature_map_, model.bands_of(trips, rows), rows, mean.weight > 0)


def _with_path(features: FeatureMap, bands: Bands, rows: Rows, path: bool, job: Job | None = None) -> list[Drive]:
    """Drives of bands of these rows' trips, in the order of the bands."""
    place = {rows.trip_id[own.start]: (trip, own) for trip, own in enumerate(rows.parts)}
    ours = features.least_squares() if path and job is None else None
    linear, climb = [], []
    for trip_id in dict.fromkeys(bands.trip_id.tolist()):
        trip, own = place[trip_id]
        weights = job.road_weights(int(job.fold[trip])) if path and job is not None else ours
        power, rise = road_rows(features, rows.r[own], weights)
        linear.append(power)
        climb.append(rise)
    return drives_of(bands, _joined(linear), _joined(climb))


def _joined(parts: list[Array | None]) -> Array | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if known else None
