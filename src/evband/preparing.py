"""From gridded trips and settings to the arrays that members train on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evband.channels import SIMULATED
from evband.errors import SettingsError, TripsError
from evband.features import FeatureMap, Rows
from evband.features.checking import NO_POWER
from evband.features.names import AUTO
from evband.features.physics import limits_of
from evband.features.silences import BRIDGE_S, full_of_silences
from evband.trips.thinning import thinned

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.settings import Settings
    from evband.training.plan import Job
    from evband.trips import Trip, Trips

COPIES = 5


@dataclass(frozen=True)
class Prepared:
    """Gridded training trips with their rows, made once: training, out-of-bag bands and energy all read these."""

    trips: Trips
    features: FeatureMap
    rows: Rows  # as logged: without the thinned copies that training adds
    job: Job

    def account(self, settings: Settings) -> dict[str, Any]:
        """What a model file keeps about its training trips; `unused` has what they tell and the model does not take, and why."""
        trips, features, some = self.trips, self.features, {}
        if settings.features == "auto":
            some = {c: sum(trip.has(c) for trip in trips) for c in AUTO if c not in features.channels}
        partly = [f"{c} (in {n} of {len(trips)} trips only)" for c, n in some.items() if n]
        ranges = zip(features.channels, features.low.tolist(), features.high.tolist(), strict=True)
        flat = [f"{c} (always {low:g})" for c, low, high in ranges if low == high]
        return {
            "trips": len(trips),
            "rows": len(self.rows),
            "hours": len(self.rows) / settings.hz / 3600,
            "simulated": sum(trip.trip_id.startswith(SIMULATED) for trip in trips),
            "unused": [*partly, *flat],
        }


def on_grid(trips: Trips, settings: Settings, left_open: bool) -> tuple[Trips, Settings]:
    """Trips on the grid of a fit, which bridges silences where that is `left_open` and they are many; and its settings."""
    gridded = trips.on_grid(settings.hz, bridge_s=settings.bridge_s)
    open_now = left_open and trips.hz is None and settings.road_load  # not to repeat the paper
    if not (open_now and full_of_silences(gridded)):
        return gridded, settings
    settings = replace(settings, bridge_s=BRIDGE_S)
    return trips.on_grid(settings.hz, bridge_s=settings.bridge_s), settings


def prior_features(trips: Trips, settings: Settings, prior: PowerModel | None, chosen: bool) -> FeatureMap | None:
    """The features of a trained prior, unless others are `chosen`: its weights mean what they do only with its own scales."""
    if prior is None:
        return None
    theirs = prior.feature_map_
    mine = settings.architecture(len(theirs.input_names), len(theirs.road_names))
    here = FeatureMap.fit(trips, settings.features if chosen else theirs.channels, scaling=settings.scaling)
    if prior.architecture_ != mine or theirs.channels != here.channels or theirs.hz != here.hz:
        raise SettingsError(
            f"the prior model is {_describe(prior.architecture_, theirs)} and this one {_describe(mine, here)}; "
            "fit with the prior's settings and features."
        )
    return theirs.also_on(trips, here)


def _describe(arch: Any, features: FeatureMap) -> str:
    return (
        f"{arch.layers}x{arch.hidden} ({arch.head} head, {arch.road} road-load terms) on {', '.join(features.channels)} "
        f"at {features.hz:g} Hz"
    )


def prepare(
    trips: Trips, settings: Settings, features: FeatureMap | None = None, read: Trips | None = None
) -> Prepared:
    """Features (learned here, unless given) and arrays of gridded training trips; thinned copies are of the trips as `read`."""
    from evband.training.loop import Data
    from evband.training.plan import Job, assign_folds, repeats

    features = features or FeatureMap.fit(
        trips, settings.features, settings.hinges, settings.scaling, settings.edges, settings.products, settings.fade,
        ages=bool(settings.bridge_s),
    )  # fmt: skip
    if settings.vehicle is not None:
        from evband.vehicles import named_sheet

        sheet = named_sheet(settings.vehicle)
        features = replace(features, sheet=(sheet.mass_kg, sheet.cda_m2, sheet.crr))
    rows = logged = features.transform_all(trips)
    if not np.isfinite(rows.y).any():
        raise TripsError(NO_POWER)
    lengths, trip_of, copy = rows.lengths, rows.trip, None
    if settings.bridge_s and settings.thinning:
        sets = [rows, *(features.transform_all(c) for c in copies_of(trips, read or trips, settings))]
        trip_of = np.concatenate([one.trip for one in sets])
        copy = np.repeat(np.arange(len(sets)), [len(one) for one in sets])
        rows = Rows.join(sets)
    data = Data(rows.x, rows.r, (rows.y - features.y_mean) / features.y_std, rows.start, trip_of, copy)
    speeds = [trip.table["speed_kmh"].to_numpy() for trip in trips]
    job = Job(data, assign_folds(lengths, repeats(speeds)), limits_of(features))
    return Prepared(trips, features, logged, job)


def copies_of(trips: Trips, read: Trips, settings: Settings) -> list[list[Trip]]:
    """`COPIES` of all trips, each with different gaps, so that members memorise less: an epoch draws one of them."""
    both = list(zip(read, trips, strict=True))
    return [
        [
            thinned(one, grid, settings.bridge_s, np.random.default_rng([settings.seed, k, number]))
            for k, (one, grid) in enumerate(both)
        ]
        for number in range(COPIES)
    ]
