"""Never absurd: what a model must say of any car, whatever its log held.

Mass, drag, rolling and auxiliaries read off the road-load path must have the signs and sizes that cars have, and the energy to
drive a kilometre on the level must rise with speed above 60 km/h and with climb. Physics limits the prior of the path
(`evband.features.physics`), but a log with an engine running beside the motor, a wrong channel or altitude glitches can teach the
network otherwise; then `fit` says so, energy is that of the path alone, and `range` repeats it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evband.channels import CHANNELS, DENSE, EDGES, READINGS
from evband.errors import EvbandError, SettingsError
from evband.features.physics import CLIMB, FASTER_TAKES_LESS, LOADS, MASS_KG, SLOWEST_KMH, STANDING_KW, STEP_KMH
from evband.features.wheel import USUAL, SheetMap
from evband.trips import Trip, Trips
from evband.vehicles.physics import GRAVITY

if TYPE_CHECKING:
    from evband.model import PowerModel

LIMITS = {  # of the effective terms, which hold the drive train's losses, too: from a microcar to a loaded truck
    "effective mass": MASS_KG,
    "rolling resistance": (0.0, 6_000.0),
    "drag area": (0.1, 15.0),
}
UNITS = {"effective mass": "kg", "rolling resistance": "N", "drag area": "m2"}
SETTLED_S = 240.0
LEAST_KWH_100KM, MOST_KWH_100KM = 4.0, 300.0
HEAVY_KG = 4000.0  # a vehicle beyond this may take as many times more
FALL_M_PER_KM = 5.0  # a road that falls more than this may take hardly any energy
MUCH_M = 100.0  # lifting a car so far takes some 0.5 kWh

# what such a log usually has
REASONS = "does an engine help, is a channel wrong, or does the altitude jump? evband inspect shows the log"


def of_terms(terms: Mapping[str, float]) -> list[str]:
    """Sentences that say where figures of the car (`evband.card.effective_terms`) are not those of any car."""
    found = []
    for name, (low, high) in LIMITS.items():
        if name in terms and not low <= terms[name] <= high:
            found.append(f"its {name} is {terms[name]:.3g} {UNITS[name]}, and cars have {low:g} to {high:g}")
    return found


def of_steady_drives(model: PowerModel) -> list[str]:
    """Sentences that say where steady drives on the level and uphill, as energy sees them, contradict physics."""
    from evband.energy.calibrating import predicted_drives

    features = model.feature_map_
    if not set(features.channels) >= {"speed_kmh", "acceleration_ms2"} or model.energy_ is None:
        return []
    top = float(features.high[features.channels.index("speed_kmh")])
    speeds = np.arange(SLOWEST_KMH, top + 1e-6, STEP_KMH)
    if not len(speeds):
        return []
    try:
        trips = [*(_steady(model, v) for v in speeds), _steady(model, float(speeds[0]), CLIMB), _steady(model, 0.0)]
        *drives, standing = predicted_drives(model, Trips(trips))
    except EvbandError:  # torque or forces among the inputs: no such drive can be made up
        return []
    kw = [float(d.mean[-int(60 * d.hz) :].mean()) for d in (*drives, standing)]
    per_km = np.array([one / d.speed_kmh[-1] for one, d in zip(kw, drives, strict=False)])  # kWh/km
    found = [
        FASTER_TAKES_LESS.format(fast, slow)
        for slow, fast, a, b in zip(speeds[:-1], speeds[1:], per_km[:-2], per_km[1:-1], strict=True)
        if b < a
    ]
    idle = kw[-1]
    if not STANDING_KW[0] <= idle <= STANDING_KW[1]:
        found.append(f"a standing car draws {idle:.1f} kW, and cars draw {STANDING_KW[0]:g} to {STANDING_KW[1]:g}")
    if "elevation_m" in features.channels and per_km[-1] <= per_km[0]:
        found.append(f"climbing {CLIMB:.0%} takes no more energy than the level road")
    return found


def _steady(model: PowerModel, kmh: float, slope: float = 0.0) -> Trip:
    """Minutes at one speed, everything else as usual in training."""
    features, hz = model.feature_map_, model.settings_.hz
    rows = int(SETTLED_S * hz)
    metres = (np.arange(rows) + 1) * kmh / 3.6 / hz
    table = {
        "time_s": (np.arange(rows) + 1) / hz,
        **{c: np.full(rows, kmh) for c in ("speed_kmh", *EDGES)},
        "acceleration_ms2": np.full(rows, np.nan),  # as in a plan
        "wind_ms": np.zeros(rows),
        "elevation_m": slope * metres,
        READINGS: np.full(rows, DENSE / hz),
    }
    for channel, typical in zip(features.channels, features.typical.tolist(), strict=True):
        if channel not in table:
            if channel in CHANNELS and CHANNELS[channel].kind in ("motion", "force"):
                raise SettingsError(f"{channel} of a made-up drive is not known.")
            table[channel] = np.full(rows, typical)
    frame = pl.DataFrame(table, nan_to_null=True).with_columns(segment=pl.lit(0, dtype=pl.Int32))
    return Trip(f"{kmh:.0f} km/h, slope {slope:g}", frame, hz)


def implausible(model: PowerModel, kwh: float, km: float, route: Trip) -> list[str]:
    """Warnings for a plan; a SettingsError where its consumption is not that of any car."""
    found = [f"THIS MODEL CONTRADICTS PHYSICS, do not rely on it: {problem}" for problem in model.contradictions_]
    height = route.table["elevation_m"].drop_nulls().to_numpy() if route.has("elevation_m") else np.zeros(1)
    fall = float(height[0] - height[-1]) / max(km, 1e-6)
    use = 100.0 * kwh / max(km, 1e-6)
    wheel = model.feature_map_.wheel if isinstance(model.feature_map_, SheetMap) else USUAL
    most = MOST_KWH_100KM * max(1.0, wheel[0] / HEAVY_KG)
    if km >= 1.0 and (use > most or (use < LEAST_KWH_100KM and fall < FALL_M_PER_KM)):
        why = (
            f"{found[0]}; {REASONS}"
            if found
            else "check its speeds and elevation, and the load and wind that were given"
        )
        raise SettingsError(
            f"the model takes {use:.1f} kWh/100 km for this route, which no car does, so it gives no range; {why}."
        )
    return [*found, *(_of_climbs(model) if np.ptp(height) >= MUCH_M else [])]


def _of_climbs(model: PowerModel) -> list[str]:
    """A warning where the predicted energy leaves out what slopes take."""
    from evband.energy.calibrating import predicted_drives

    before = f"heights along the route differ by over {MUCH_M:g} m, and "
    channels = set(model.feature_map_.channels)
    if not channels & {"elevation_m", "grade_pct", *LOADS}:
        return [
            f"{before}this model has no slopes among its inputs (evband fit --dem adds them): its answer is for a level road"
        ]
    if "elevation_m" not in channels:
        return []
    try:
        trips = Trips([_steady(model, SLOWEST_KMH), _steady(model, SLOWEST_KMH, CLIMB)])
        level, uphill = (float(d.mean[-int(60 * d.hz) :].mean()) for d in predicted_drives(model, trips))
    except EvbandError:  # torque or forces, as in `of_steady_drives`
        return []
    kg = 1000.0 * (uphill - level) / (GRAVITY * CLIMB * SLOWEST_KMH / 3.6)
    if kg >= MASS_KG[0]:
        return []
    return [
        f"{before}climbing takes no more of this model's energy than lifting {max(kg, 0.0):.0f} kg would, so its answer is nearly that "
        "for a level road: perhaps the elevation in its logs is noisy"
    ]
