"""The vocabulary: every channel with its unit, physical limits and sign, the units logs use, and the feature sets.

One vocabulary everywhere, the unit in the name. Positive power and current mean discharge, negative ones regeneration
or charging.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evband.errors import ChannelError

Kind = Literal["time", "id", "motion", "force", "place", "coordinate", "weather", "cabin", "electrical"]


@dataclass(frozen=True)
class Channel:
    """One quantity. Values outside [low, high] cannot be: they are glitches. A reading older than `max_age_s` says
    nothing about now."""

    name: str
    unit: str
    low: float
    high: float
    kind: Kind
    max_age_s: float = 10.0


_INF = float("inf")

CHANNELS: dict[str, Channel] = {
    channel.name: channel
    for channel in (
        Channel("time_s", "s", -_INF, _INF, "time"),
        Channel("trip_id", "", -_INF, _INF, "id"),
        Channel("speed_kmh", "km/h", -30.0, 350.0, "motion"),
        Channel("acceleration_ms2", "m/s2", -20.0, 20.0, "motion", 5.0),
        Channel("motor_torque_nm", "Nm", -10_000.0, 10_000.0, "motion", 5.0),
        Channel("motor_rpm", "rpm", -30_000.0, 30_000.0, "motion", 5.0),
        Channel("force_n", "N", -60_000.0, 60_000.0, "force", 5.0),
        Channel("road_load_n", "N", -60_000.0, 60_000.0, "force", 5.0),
        Channel("parasitic_n", "N", -60_000.0, 60_000.0, "force", 5.0),
        Channel("drive_ref_kmh", "km/h", -30.0, 350.0, "motion"),
        Channel("elevation_m", "m", -500.0, 9_000.0, "place", 120.0),
        Channel("grade_pct", "%", -60.0, 60.0, "place", 30.0),
        Channel("latitude_deg", "deg", -90.0, 90.0, "coordinate"),
        Channel("longitude_deg", "deg", -180.0, 180.0, "coordinate"),
        Channel("ambient_temp_c", "C", -60.0, 65.0, "weather", 600.0),
        Channel("wind_ms", "m/s", -100.0, 100.0, "weather", 600.0),
        Channel("hvac_power_kw", "kW", -1.0, 30.0, "cabin", 600.0),
        Channel("distance_km", "km", 0.0, 2_000_000.0, "place", 120.0),
        Channel("soc_pct", "%", 0.0, 100.5, "electrical", 600.0),
        Channel("battery_voltage_v", "V", 20.0, 1_200.0, "electrical", 60.0),
        Channel("battery_current_a", "A", -650.0, 2_500.0, "electrical"),
        Channel("power_kw", "kW", -400.0, 1_200.0, "electrical"),
    )
}

ELECTRICAL: frozenset[str] = frozenset(name for name, c in CHANNELS.items() if c.kind == "electrical")
"""The answer, in one form or another: never an input."""

VALUES: tuple[str, ...] = tuple(n for n, c in CHANNELS.items() if c.kind not in ("time", "id", "coordinate"))
"""Every channel that a grid may hold, in the order tables show them."""

COORDINATES = ("latitude_deg", "longitude_deg")
"""Kept with readings as logged, for elevation from tiles; never on a grid, where a lost fix would end a segment."""

STANDING_KMH = 1.0  # slower is a standstill
BRAKING_MS2, CITY_KMH, MOTORWAY_KMH = 0.3, 50.0, 90.0  # regimes: slows by more, is slower, is faster
CHARGING_KW = -0.5  # less than this at a standstill comes from a charger
NEW_TRIP_S = 600.0  # a silence that is longer begins another drive
SIMULATED = "sim_"  # how the ids of simulated trips begin
EDGES = ("speed_start_kmh", "speed_end_kmh")
"""Columns that only the grid has: the speeds at a bin's two edges, as far as they are known at its end."""

AGE = "age_s"
"""A column of a grid that bridges silences: seconds since the last speed reading, 0 in a bin that has one."""

READINGS = "speed_readings"
"""A column that only the grid has: how many speed readings fell into the bin."""

DERIVED_MS2 = 1e-9  # an acceleration this near the change of the edge speeds was made of them
SENSED = "acceleration_sensed"
"""A column that only the grid has: 1 where a sensor told the acceleration, 0 where it is the change of speed."""

ON_GRID = (*EDGES, READINGS, SENSED)
"""The columns that a grid has beside channels, and that come along with it into a file."""

DENSE = 4.0  # speed readings per second: more tell no more, and a plan is known as closely

FEATURE_SETS: dict[str, tuple[str, ...]] = {
    # The paper's five dynamometer sets: DY_DriveRef, DY_Parasitic, DY_Roadld, DY_flt_force, Speed, Acceleration.
    "S1": ("drive_ref_kmh", "parasitic_n", "force_n", "speed_kmh", "acceleration_ms2"),
    "S2": ("drive_ref_kmh", "parasitic_n", "road_load_n", "force_n", "speed_kmh", "acceleration_ms2"),
    "S3": ("drive_ref_kmh", "parasitic_n", "road_load_n", "force_n", "speed_kmh"),
    "S4": ("drive_ref_kmh", "force_n"),
    "S5": ("acceleration_ms2",),
    "motion": ("speed_kmh", "acceleration_ms2"),
    "torque": ("speed_kmh", "acceleration_ms2", "motor_torque_nm"),
}

KM_PER_MILE = 1.609344

# unit of a log -> (scale, offset): value in our unit = scale * value + offset. One table per unit of ours; how else each is
# spelled is in `evband.logs.formats.units`.
_UNITS: dict[str, dict[str, tuple[float, float]]] = {
    "s": {"s": (1, 0), "ms": (1e-3, 0), "us": (1e-6, 0), "min": (60, 0), "h": (3600, 0)},
    "km/h": {"km/h": (1, 0), "kmh": (1, 0), "kph": (1, 0), "mph": (KM_PER_MILE, 0), "m/s": (3.6, 0), "kn": (1.852, 0)},
    "m/s2": {"m/s2": (1, 0), "g": (9.80665, 0), "ft/s2": (0.3048, 0)},
    "Nm": {"nm": (1, 0), "lbft": (1.3558179483314004, 0)},
    "rpm": {"rpm": (1, 0), "rad/s": (9.549296585513721, 0)},
    "N": {"n": (1, 0), "kn": (1000, 0), "lbf": (4.4482216152605, 0)},
    "m": {"m": (1, 0), "km": (1000, 0), "ft": (0.3048, 0)},
    "%": {"%": (1, 0), "1": (100, 0)},
    "deg": {"deg": (1, 0)},
    "C": {"c": (1, 0), "f": (5 / 9, -160 / 9), "k": (1, -273.15)},
    "m/s": {"m/s": (1, 0), "km/h": (1 / 3.6, 0), "kmh": (1 / 3.6, 0), "mph": (0.44704, 0), "kn": (1.852 / 3.6, 0)},
    "km": {"km": (1, 0), "m": (1e-3, 0), "mi": (KM_PER_MILE, 0), "ft": (0.3048e-3, 0)},
    "V": {"v": (1, 0), "mv": (1e-3, 0), "kv": (1e3, 0)},
    "A": {"a": (1, 0), "ma": (1e-3, 0)},
    "kW": {"kw": (1, 0), "w": (1e-3, 0), "mw": (1e3, 0), "hp": (0.7456998715822702, 0), "ps": (0.73549875, 0)},
}  # fmt: skip


def known_units(channel: str) -> tuple[str, ...]:
    """The units in which a log may give this channel."""
    return tuple(_UNITS.get(CHANNELS[channel].unit, {}))


def conversion(channel: str, unit: str) -> tuple[float, float]:
    """(scale, offset) with value in our unit = scale * value + offset; an unknown unit is an error that lists the known.

    >>> conversion("speed_kmh", "mph")
    (1.609344, 0.0)
    """
    table = _UNITS.get(CHANNELS[channel].unit, {})
    if unit.casefold() not in table:
        raise ChannelError(
            f"{channel}: the unit {unit!r} is unknown for it; use one of {', '.join(table)} or convert the column first."
        )
    scale, offset = table[unit.casefold()]
    return float(scale), float(offset)


def from_unit(channel: str, values: NDArray[np.float64], unit: str) -> NDArray[np.float64]:
    """Values as logged in `unit`, in the channel's own unit."""
    scale, offset = conversion(channel, unit)
    return values if (scale, offset) == (1.0, 0.0) else values * scale + offset


_OTHER_WORDS = {"speed_kmh": ("speed", "velocity", "vss"), "time_s": ("time", "seconds", "timestamp", "elapsed")}


def require(channel: str, found: Iterable[str], where: str) -> None:
    """An error that names the columns found and the nearest match, unless `channel` is among them."""
    found = tuple(found)
    if channel in found:
        return
    hint = f"; the nearest is {near!r}" if (near := _nearest(channel, found)) else ""
    raise ChannelError(
        f"{where}: there is no {channel} among its columns ({', '.join(found) or 'none'}){hint}; "
        f"rename it, add an alias, or name it in a --map file."
    )


def _nearest(channel: str, found: Iterable[str]) -> str | None:
    """The column that looks most like this channel, among those that are no other channel of ours."""
    words = (channel, *_OTHER_WORDS.get(channel, ()))
    alike = {
        name: max(difflib.SequenceMatcher(None, word, name.lower()).ratio() for word in words)
        for name in found
        if name not in CHANNELS
    }
    best = max(alike, key=alike.__getitem__, default=None)
    return best if best is not None and alike[best] >= 0.4 else None
