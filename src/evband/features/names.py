"""Which channels are features: what a user names, or all that help; never an electrical one."""

from __future__ import annotations

import re
from collections import abc
from collections.abc import Iterable
from typing import TYPE_CHECKING

from evband.channels import ELECTRICAL, FEATURE_SETS
from evband.errors import ChannelError

if TYPE_CHECKING:
    from evband.trips import Trip

AUTO = (
    "speed_kmh",
    "acceleration_ms2",
    "motor_torque_nm",
    "motor_rpm",
    "force_n",
    "road_load_n",
    "parasitic_n",
    "elevation_m",
    "ambient_temp_c",
    "wind_ms",
    "hvac_power_kw",
)
CABIN = "hvac_power_kw"  # heater and air conditioning: one consumer's own draw, not the answer
_ELECTRICAL_NAME = re.compile(r"power|voltage|current|soc|energy|_kwh?$|_[av]$", re.IGNORECASE)


def resolve_features(spec: str | Iterable[str], trips: abc.Sequence[Trip]) -> tuple[str, ...]:
    """Channel names behind `auto`, a feature set's name or a comma list; every trip must have every one of them."""
    if spec == "auto":
        found = tuple(c for c in AUTO if all(trip.has(c) for trip in trips))
        if "speed_kmh" not in found:
            lacking = next((trip.trip_id for trip in trips if not trip.has("speed_kmh")), "?")
            raise ChannelError(f"trip {lacking} has no speed_kmh; map its speed channel, or name the features to use.")
        return found
    if isinstance(spec, str):
        named = FEATURE_SETS.get(spec) or tuple(name.strip() for name in spec.split(",") if name.strip())
    else:
        named = tuple(spec)
    if not named or len(set(named)) != len(named):
        raise ChannelError(f"features {spec!r} name no channel, or one twice; give e.g. auto, motion or a,b,c.")
    for name in named:
        if name != CABIN and (name in ELECTRICAL or _ELECTRICAL_NAME.search(name)):
            raise ChannelError(
                f"{name} cannot be a feature: electrical channels and other estimates of power are the answer, not inputs."
            )
        if name in ("time_s", "trip_id", "segment") or name.startswith("true_"):
            raise ChannelError(f"{name} cannot be a feature: it does not measure what the car did.")
    require_channels(named, trips)
    return named


def require_channels(channels: Iterable[str], trips: abc.Sequence[Trip]) -> None:
    """Raise for the first trip that lacks any of `channels`, naming all it lacks."""
    for trip in trips:
        lacking = [c for c in channels if not trip.has(c)]
        if lacking:
            raise ChannelError(
                f"trip {trip.trip_id} has no {', '.join(lacking)}; leave that out of the features or map the log's name for it."
            )
