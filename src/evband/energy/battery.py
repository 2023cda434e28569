"""What a battery holds: the usable kWh given or of the data sheet, and what no battery holds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from evband.energy.doubts import Doubts
from evband.errors import SettingsError

if TYPE_CHECKING:
    from evband.model import PowerModel

MOST_KWH = 2000.0  # the largest trucks carry less


def known_battery(model: PowerModel, capacity_kwh: float | None, doubts: Doubts) -> tuple[float, Doubts]:
    """The usable kWh given, or those of the data sheet that a model was started from, with that number's spread."""
    if capacity_kwh is not None:
        return capacity_kwh, doubts
    battery = None if model.adaptation_ is None else model.adaptation_.sheet.get("battery_kwh")
    if battery is None:
        raise SettingsError(
            "The usable capacity of the battery is not known; give --capacity-kwh (capacity_kwh in Python): "
            "only a model started from a data sheet with a battery brings its own."
        )
    return battery["value"], replace(doubts, capacity_sd_pct=doubts.capacity_sd_pct or 100.0 * battery["spread"])


def held_kwh(soc: Any, capacity_kwh: Any, reserve_soc: Any = 0.0) -> Any:
    """What a battery of this charge holds above its reserve."""
    return (soc - reserve_soc) / 100.0 * capacity_kwh


def check_battery(soc: float, capacity_kwh: float, reserve_soc: float = 0.0) -> None:
    """Percent from 0 to 100, and a battery that holds something."""
    for name, value in (("The state of charge", soc), ("The reserve", reserve_soc)):
        if not 0 <= value <= 100:
            raise SettingsError(f"{name} is {value} %; give one from 0 to 100.")
    if not (np.isfinite(capacity_kwh) and capacity_kwh > 0):
        raise SettingsError(f"The usable capacity is {capacity_kwh} kWh; give a positive number.")
    if capacity_kwh > MOST_KWH:
        raise SettingsError(
            f"The usable capacity is {capacity_kwh:g} kWh, more than any car or truck has; give kWh, not Wh: "
            f"{capacity_kwh / 1000:g} kWh?"
        )
