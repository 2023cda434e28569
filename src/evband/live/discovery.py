"""Home Assistant's MQTT discovery in the device form: one retained message per car, all sensors in it."""

from __future__ import annotations

from typing import Any

from evband import __version__

FRESH_S, RANGE_S = 60, 900  # s after which a sensor without news becomes unavailable

# key: (name, template's path, class, unit, state class, decimals, expiry)
_SENSORS: dict[str, tuple[str, str, str | None, str, str | None, int, int | None]] = {
    "power": ("Power", "mean_kw", "power", "kW", "measurement", 1, FRESH_S),
    "power_low": ("Power p05", "lower_kw", "power", "kW", "measurement", 1, FRESH_S),
    "power_high": ("Power p95", "upper_kw", "power", "kW", "measurement", 1, FRESH_S),
    "range_p05": ("Range p05", "range_km.p05", "distance", "km", "measurement", 0, RANGE_S),
    "range_p50": ("Range", "range_km.p50", "distance", "km", "measurement", 0, RANGE_S),
    "range_p95": ("Range p95", "range_km.p95", "distance", "km", "measurement", 0, RANGE_S),
    "trip_energy": ("Trip energy", "energy_kwh.mean", "energy", "kWh", "total", 2, None),
    "consumption": ("Consumption", "kwh_100km", "energy_distance", "kWh/100km", "measurement", 1, None),
    "soc": ("State of charge", "soc_pct", "battery", "%", "measurement", 0, RANGE_S),
}
_CHANCES = {
    "arrival": ("Arrival probability", "arrival_probability"),
    "arrival_empty": ("Arrival probability, to empty", "arrival_probability_empty"),
}


def topic(prefix: str, car: str) -> str:
    return f"{prefix}/device/evband_{car}/config"


def device(car: str, name: str, prefix: str = "evband", status: str = "status") -> dict[str, Any]:
    """The message that describes one car; every template reads a key of the state object."""
    return {
        "device": {
            "identifiers": [f"evband_{car}"], "name": name, "manufacturer": "evband", "model": "EV bands", "sw_version": __version__,
        },
        "origin": {"name": "evband", "sw_version": __version__},
        "availability": [{"topic": f"{prefix}/{status}"}, {"topic": f"{prefix}/{car}/status"}],
        "availability_mode": "all",
        "state_topic": f"{prefix}/{car}/state",
        "qos": 1,
        "components": _components(car, f"{prefix}/{car}/state"),
    }  # fmt: skip


def _components(car: str, state: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for key, (name, path, kind, unit, state_class, decimals, expiry) in _SENSORS.items():
        found[key] = {
            **_base("sensor", car, key, name), "device_class": kind, "unit_of_measurement": unit, "state_class": state_class,
            "suggested_display_precision": decimals, "value_template": f"{{{{ value_json.{path} }}}}",
        } | ({} if expiry is None else {"expire_after": expiry})  # fmt: skip
    found["power"]["json_attributes_topic"] = state
    for key, (name, path) in _CHANCES.items():
        value = f"value_json.{path}"
        found[key] = {
            **_base("sensor", car, key, name), "unit_of_measurement": "%", "state_class": "measurement", "expire_after": RANGE_S,
            "value_template": f"{{{{ (100 * {value}) | round(0) if {value} is not none else none }}}}",
        }  # fmt: skip
    found["state"] = {**_base("sensor", car, "state", "State"), "value_template": "{{ value_json.state }}"}
    for key, name, path in (("outside", "Outside training range", "outside"), ("degraded", "Degraded", "degraded")):
        found[key] = {
            **_base("binary_sensor", car, key, name), "device_class": "problem", "entity_category": "diagnostic",
            "value_template": f"{{{{ 'ON' if value_json.{path} else 'OFF' }}}}",
        }  # fmt: skip
    return found


def _base(platform: str, car: str, key: str, name: str) -> dict[str, Any]:
    plain = f"evband_{car}_{key}".lower().replace(".", "_").replace("-", "_")
    return {
        "platform": platform,
        "unique_id": f"evband_{car}_{key}",
        "default_entity_id": f"{platform}.{plain}",
        "name": name,
    }
