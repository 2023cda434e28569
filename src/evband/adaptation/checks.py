"""Whether a log can be this car's: trips it has learned from already, signs, units, another car."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.errors import SettingsError, TripsError
from evband.features.wheel import ROADS, SheetMap

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.trips import Trips

Array = NDArray[np.float64]

POSSIBLE = (0.25, 4.0)  # power at the battery over power at the wheels
UNLIKELY = (0.6, 1.9)
WRONG_UNIT = 100.0
FEWEST = 30  # rows that pull
FAR = 2.0  # deviations
LEAST_SHARE = 0.25  # of the mass


def learns(model: PowerModel) -> bool:
    """A model that began with `evband start`, in the terms that this evband has."""
    return model.adaptation_ is not None and model.feature_map_.road_names == ROADS


def check_learns(model: PowerModel) -> None:
    """Refuse a model that cannot learn."""
    if model.adaptation_ is None:
        raise SettingsError("only a model that began with evband start adapts; fit this one again with the new logs.")
    if not learns(model):
        raise SettingsError(
            "the model was started by an evband with other terms: it predicts, but learns no more; make it anew with "
            "evband start, and adapt it with its logs."
        )


def new_trips(model: PowerModel, trips: Trips) -> tuple[Trips, list[str]]:
    """The trips that the model has not learned from yet, and a note of the others."""
    known = trips.among(model.fingerprints_)
    fresh = [trip.trip_id for trip in trips if trip.trip_id not in known]
    if not fresh:
        raise TripsError("the model has learned from all of these trips already; give new ones.")
    left = f"{len(known)} of {len(trips)} trips are left out: the model has learned from them already"
    return trips.subset(fresh), [f"{left} ({known[0]})"] if known else []


def check_evidence(model: PowerModel, y: Array, r: Array) -> list[str]:
    """Refuse a log whose power cannot be this car's; a note where it hardly can be.

    The slope of measured power on power at the wheels by the sheet shows a wrong sign, a wrong unit and, roughly, another car.
    """
    features = model.feature_map_
    assert isinstance(features, SheetMap)
    k = ROADS.index("wheel")
    wheel, power = r[:, k] * features.r_scale[k], y * features.y_std / features.wheel[0] * 1000.0  # W/kg
    pulling = wheel > 2.0
    if pulling.sum() < FEWEST:
        return []  # parked or creeping: nothing to compare
    ratio = float(power[pulling] @ wheel[pulling] / (wheel[pulling] @ wheel[pulling]))
    if ratio < -POSSIBLE[0]:
        raise TripsError("power falls where the car pulls: its sign is reversed; read the log with --flip-power.")
    if ratio > WRONG_UNIT or 0 < ratio < 1 / WRONG_UNIT:
        raise TripsError(
            f"power is {ratio:.3g} times what moves such a car, so its unit is wrong (W for kW?); map the column with its "
            "unit (--map)."
        )
    times = f"power is {ratio:.2f} times what the data sheet asks at the wheels"
    if not POSSIBLE[0] <= ratio <= POSSIBLE[1]:
        raise TripsError(f"{times}: the log or the sheet is another car's; check both.")
    return (
        []
        if UNLIKELY[0] <= ratio <= UNLIKELY[1]
        else [f"{times}, 0.9 to 1.4 are usual: check that both are this car's"]
    )


def another_car(after: PowerModel) -> list[str]:
    """A note where the car moves like one of quite another mass than the sheet's."""
    from evband.adaptation.mass import effective_mass
    from evband.vehicles import Sheet

    sheet, masses = Sheet.from_dict(after.adaptation_.sheet), effective_mass(after)
    mean, unsure = float(masses.mean()), sheet.uncertainty("mass_kg") * sheet.mass_kg
    far = max(FAR * float(np.hypot(masses.std(), unsure)), LEAST_SHARE * sheet.mass_kg)
    if abs(mean - sheet.mass_kg) < far:
        return []
    return [
        f"it moves like {mean:.0f} kg, the data sheet has {sheet.mass_kg:.0f} kg: check that log and sheet are the same car's"
    ]
