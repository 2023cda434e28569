"""What every source gives: readings of a car's channels at an instant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from evband.channels import CHANNELS, VALUES
from evband.logs.telemetry import KEYS, time_of

CHARGING, CAPACITY = "charging", "capacity_kwh"
EXTRAS = (CHARGING, CAPACITY)  # not channels of a model, but of a battery
SLOW = ("soc_pct", "ambient_temp_c", CAPACITY)
"""What a retained value may prime: it was true once, at a time nobody knows, and changes slowly."""

LARGEST = 65_536  # bytes of a message from a feed
COLUMNS = (*VALUES, *EXTRAS)
LIMITS = {name: (CHANNELS[name].low, CHANNELS[name].high) for name in VALUES} | {
    CHARGING: (0.0, 1.0),
    CAPACITY: (0.5, 2000.0),
}
SAMPLE_KEYS = KEYS | {"is_charging": CHARGING, "capacity": CAPACITY, CHARGING: CHARGING, CAPACITY: CAPACITY}


class Reading(NamedTuple):
    """One channel of one car. `at` is None where the feed has no clock; `retained`: stored by the broker, age unknown."""

    car: str
    channel: str
    value: float
    at: float | None = None
    retained: bool = False


class Sample(NamedTuple):
    """Several channels of one car at one instant, the cheap form for feeds of one message per tick."""

    car: str
    values: Mapping[str, float]
    at: float | None = None
    retained: bool = False


def number(raw: Any) -> float | None:
    """A finite or infinite number, also one written as text; None for everything else. NaN is passed on to be counted."""
    if type(raw) is float or type(raw) is int:
        try:
            return float(raw)
        except OverflowError:
            return math.inf
    if isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, str | bytes) and len(raw) <= 64:
        try:
            return float(raw)
        except ValueError:
            return None
    return None


def reading(car: str, channel: str, text: str, retained: bool, factor: float = 1.0) -> Reading:
    """A value that a feed without a clock sends as text; ValueError where it is not a number."""
    value = number(text)
    if value is None:
        raise ValueError(text)
    return Reading(car, channel, factor * value, None, retained)


def sample(car: str, message: Mapping[str, Any], retained: bool = False) -> Sample | None:
    """A telemetry object (ABRP's keys or our channels) as a sample; None where it has no channel of ours. What is not a number
    is passed on as NaN, to be counted; null is nothing."""
    values = {}
    for key, raw in message.items():
        channel = SAMPLE_KEYS.get(key)
        if channel is not None and raw is not None:
            value = None if isinstance(raw, bool) and channel != CHARGING else number(raw)
            values[channel] = math.nan if value is None else value
    if not values:
        return None
    return Sample(car, values, time_of(message), retained)
