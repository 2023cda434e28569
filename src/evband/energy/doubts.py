"""What nobody knows exactly before a drive: charge, capacity, load, weather, wind and stops, each with a spread of its own.

Where the model has an input for it (temperature, wind, the cabin's draw) a spread is asked of the model itself: the route is
predicted again one standard deviation away. Load, stops, and wind without such an input come from physics:

    load   m (c_rr g v + a v + g climb), driven at 88 % and regained at 65 %
    wind   rho CdA ((v + w) |v + w| - v^2) v / 2 / 0.88 for a head wind w
    stops  the car's power at a standstill, for so many minutes spread over the way
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.energy.drives import Drive
from evband.errors import ArtifactError, SettingsError
from evband.features.wheel import USUAL, SheetMap
from evband.vehicles.physics import BASE_KW, DRIVING, GRAVITY, REGENERATING, wheel_power

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

_, DRAG_M2, ROLLING = USUAL  # where the model cannot tell
DRAG_LIMITS_M2, IDLE_LIMITS_KW = (0.4, 1.2), (0.2, 5.0)  # what of a car's is believed
MOST = {
    "soc_sd": 50.0, "capacity_sd_pct": 50.0, "payload_kg": 5000.0, "payload_sd_kg": 5000.0, "ambient_sd_c": 30.0, "head_wind_ms": 60.0,
    "head_wind_sd_ms": 30.0, "stops_min": 5000.0, "stops_sd_min": 5000.0,
}  # fmt: skip


@dataclass(frozen=True)
class Doubts:
    """Values beside the plan, and standard deviations (`_sd`); all 0 by default, which is sure of everything."""

    soc_sd: float = 0.0  # percent of charge
    capacity_sd_pct: float = 0.0  # percent of the capacity
    payload_kg: float = 0.0  # beyond what the training trips carried
    payload_sd_kg: float = 0.0
    ambient_sd_c: float = 0.0
    head_wind_ms: float = 0.0
    head_wind_sd_ms: float = 0.0
    stops_min: float = 0.0
    stops_sd_min: float = 0.0

    def __post_init__(self) -> None:
        for f in fields(self):
            value, most = getattr(self, f.name), MOST[f.name]
            least = -most if f.name in ("head_wind_ms", "payload_kg") else 0.0
            if not (np.isfinite(value) and least <= value <= most):
                raise SettingsError(f"{f.name} is {value}; give a number from {least:g} to {most:g}.")


def load_kw(kg: float, drive: Drive) -> Array:
    """[T] kW at the battery for so much more mass."""
    v = drive.speed_kmh / 3.6
    climb = 0.0 if drive.climb_ms is None else drive.climb_ms
    change = np.diff(v, prepend=v[:1]) * drive.hz
    wheel = kg * (ROLLING * GRAVITY * v + change * v + GRAVITY * climb) / 1000.0
    return np.where(wheel * np.sign(kg) > 0, wheel / DRIVING, REGENERATING * wheel)


def wind_kw(head_ms: float, drag_m2: float, drive: Drive) -> Array:
    """[T] kW at the battery against such a head wind; a tail wind is negative."""
    windy, still = (
        wheel_power(drive.speed_kmh / 3.6, 0.0, 0.0, drag_m2, 0.0, wind_ms=w).drag_kw for w in (head_ms, 0.0)
    )
    return np.asarray((windy - still) / DRIVING)


def stops_kw(minutes: float, idle_kw: float, drive: Drive, route_km: float) -> Array:
    """[T] kW at the battery: so many minutes of standing on every `route_km`, where the car moves."""
    kwh_per_km = idle_kw * minutes / 60.0 / max(route_km, 1e-6)
    return kwh_per_km * drive.speed_kmh


def car_of(model: PowerModel) -> tuple[float, float]:
    """(drag area in m2, power at a standstill in kW): as fitting read them off the road-load path, within what cars have;
    the drag area of a data sheet as it stands there."""
    if isinstance(model.feature_map_, SheetMap):
        return float(model.feature_map_.wheel[1]), BASE_KW
    saved = (model.energy_ or {}).get("car")
    try:
        drag, idle = (DRAG_M2, BASE_KW) if saved is None else (float(saved["drag_m2"]), float(saved["idle_kw"]))
    except (KeyError, TypeError, ValueError) as problem:
        raise ArtifactError(f"The car's figures in the model file are damaged ({problem}); fit it again.") from None
    return float(np.clip(drag, *DRAG_LIMITS_M2)), float(np.clip(idle, *IDLE_LIMITS_KW))


def physical_kw(model: PowerModel, doubts: Doubts, drive: Drive, route_km: float) -> tuple[Array, dict[str, Array]]:
    """(kW that come on top of the plan's rows, kW of one standard deviation by source)."""
    drag, idle = car_of(model) if doubts != Doubts() else (DRAG_M2, 0.0)
    added = load_kw(doubts.payload_kg, drive) + stops_kw(doubts.stops_min, idle, drive, route_km)
    spreads = {}
    if doubts.payload_sd_kg:
        spreads["load"] = load_kw(doubts.payload_sd_kg, drive)
    if doubts.stops_sd_min:
        spreads["stops"] = stops_kw(doubts.stops_sd_min, idle, drive, route_km)
    if "wind_ms" not in model.feature_map_.channels:
        added = added + wind_kw(doubts.head_wind_ms, drag, drive)
        if doubts.head_wind_sd_ms:
            w, s = doubts.head_wind_ms, doubts.head_wind_sd_ms
            spreads["wind"] = wind_kw(w + s, drag, drive) - wind_kw(w, drag, drive)
    return added, spreads
