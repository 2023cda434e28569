"""Tesla fleet-telemetry over MQTT: `<base>/<VIN>/v/<Field>`; a value is `12.3` or `"12.3"`, depending on firmware.

Speed is in mph; the sign of `PackCurrent` is compared with motion before power is used.
"""

from __future__ import annotations

from collections.abc import Iterable

from evband.channels import KM_PER_MILE
from evband.live.config import Car, Mqtt
from evband.live.reading import CHARGING, Reading, reading

FIELDS = {
    "VehicleSpeed": ("speed_kmh", KM_PER_MILE),
    "LongitudinalAcceleration": ("acceleration_ms2", 1.0),
    "DiTorquemotor": ("motor_torque_nm", 1.0),
    "OutsideTemp": ("ambient_temp_c", 1.0),
    "PackVoltage": ("battery_voltage_v", 1.0),
    "PackCurrent": ("battery_current_a", 1.0),
    "Soc": ("soc_pct", 1.0),
}
CHARGING_STATES = ("charging", "chargestatecharging", "detailedchargestatecharging")


class FleetTelemetry:
    """`topic` is the vehicle's: `<base>/<VIN>`."""

    def __init__(self, car: Car, mqtt: Mqtt) -> None:
        self._car, self._base = car.id, car.under("v/")
        self.filters = (f"{self._base}+",)

    def read(self, topic: str, payload: bytes, retained: bool) -> Iterable[Reading]:
        field = topic.removeprefix(self._base)
        text = payload[:80].decode("utf-8", "replace").strip().strip('"')
        if field in ("ChargeState", "DetailedChargeState"):
            yield Reading(self._car, CHARGING, float(text.lower() in CHARGING_STATES), None, retained)
            return
        if field not in FIELDS or text in ("", "null", "<invalid>"):
            return
        channel, factor = FIELDS[field]
        yield reading(self._car, channel, text, retained, factor)
