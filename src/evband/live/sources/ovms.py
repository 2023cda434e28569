"""OVMS v3: one retained topic per metric, `<prefix>/<user>/<vehicle>/metric/v/b/power`, plain text, no timestamp."""

from __future__ import annotations

from collections.abc import Iterable

from evband.live.config import Car, Mqtt
from evband.live.reading import CAPACITY, CHARGING, Reading, reading

METRICS = {
    "v/p/speed": "speed_kmh",
    "v/p/acceleration": "acceleration_ms2",
    "v/p/altitude": "elevation_m",
    "v/e/temp": "ambient_temp_c",
    "v/m/rpm": "motor_rpm",
    "v/b/power": "power_kw",
    "v/b/current": "battery_current_a",
    "v/b/voltage": "battery_voltage_v",
    "v/b/soc": "soc_pct",
    "v/b/capacity": CAPACITY,
    "v/c/charging": CHARGING,
}
WORDS = {"yes": "1", "no": "0"}


class Ovms:
    """`topic` is the vehicle's: `ovms/<user>/<vehicle>`."""

    def __init__(self, car: Car, mqtt: Mqtt) -> None:
        self._car, self._base = car.id, car.under("metric/")
        self.filters = (f"{self._base}v/#",)

    def read(self, topic: str, payload: bytes, retained: bool) -> Iterable[Reading]:
        channel = METRICS.get(topic.removeprefix(self._base))
        if channel is None:
            return
        text = payload[:64].decode("utf-8", "replace").strip()
        if not text:
            return  # a metric that is not known
        yield reading(self._car, channel, WORDS.get(text.lower(), text), retained)
