"""One telemetry object, as ABRP (Iternio) has it: its keys, its time and its numbers, for logs, streams and live feeds alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evband.channels import VALUES

KEYS = {
    "speed": "speed_kmh",
    "power": "power_kw",
    "current": "battery_current_a",
    "voltage": "battery_voltage_v",
    "soc": "soc_pct",
    "ext_temp": "ambient_temp_c",
    "elevation": "elevation_m",
    "hvac_power": "hvac_power_kw",
    **{name: name for name in VALUES},
}
TIMES = ("utc", "time_s", "timestamp")
MILLISECONDS = 1e11  # a time since 1970 beyond this is not in seconds: some senders write milliseconds


def unwrapped(item: Any) -> dict[str, Any] | None:
    """The object itself, bare or wrapped as `{"tlm": {...}}`; None where it is not one."""
    if isinstance(item, dict) and isinstance(item.get("tlm"), dict):
        item = item["tlm"]
    return item if isinstance(item, dict) else None


def number(raw: Any) -> float | None:
    """A finite number, also one written as text; None for everything else."""
    if isinstance(raw, bool) or raw is None:
        return None
    try:
        value = float(raw)
    except (TypeError, ValueError, OverflowError):
        return None
    return value if math.isfinite(value) else None


def time_of(sample: Mapping[str, Any]) -> float | None:
    """Its time in seconds; None where it has none."""
    value = number(next((sample[key] for key in TIMES if key in sample), None))
    return value / 1000.0 if value is not None and value > MILLISECONDS else value
