"""TeslaMate: one retained topic per value, `teslamate[/namespace]/cars/<id>/speed`; only changed values are sent.

Its documents give power in W, its discovery code in kW: `evband.live.power_check` finds out which.
"""

from __future__ import annotations

from collections.abc import Iterable

from evband.live.config import Car, Mqtt
from evband.live.reading import CHARGING, Reading, reading

VALUES = {
    "speed": "speed_kmh",
    "elevation": "elevation_m",
    "outside_temp": "ambient_temp_c",
    "power": "power_kw",
    "battery_level": "soc_pct",
    "usable_battery_level": "soc_pct",
}


class TeslaMate:
    """`topic` is the car's: `teslamate/cars/1`."""

    def __init__(self, car: Car, mqtt: Mqtt) -> None:
        self._car, self._base = car.id, car.under("")
        self.filters = (f"{self._base}+",)
        self._usable = False

    def read(self, topic: str, payload: bytes, retained: bool) -> Iterable[Reading]:
        name = topic.removeprefix(self._base)
        text = payload[:64].decode("utf-8", "replace").strip()
        if name == "state":
            yield Reading(self._car, CHARGING, float(text == "charging"), None, retained)
            return
        self._usable |= name == "usable_battery_level"
        if name not in VALUES or text in ("", "nil") or (name == "battery_level" and self._usable):
            return
        yield reading(self._car, VALUES[name], text, retained)
