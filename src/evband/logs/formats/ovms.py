"""OVMS metrics as a wide CSV: a time column and metric names such as `v.p.speed`, `v.b.power`, `v.e.temp`; changed values only, or all.

Units are those of the metrics (km/h, kW, V, A, C, m) where the header names no other; power and current are positive when they leave the battery.
"""

from __future__ import annotations

from pathlib import Path

from evband.channels import CHANNELS, known_units
from evband.errors import LogError
from evband.logs.formats import claims, clock, columns, text
from evband.logs.formats.units import unit_for
from evband.trips.readings import Readings, ReadOptions

NAME = "OVMS"
_KNOWN = {
    "v.p.speed": "speed_kmh", "v.p.gpsspeed": "speed_kmh", "v.b.power": "power_kw",
    "v.b.voltage": "battery_voltage_v", "v.b.current": "battery_current_a", "v.b.soc": "soc_pct",
    "v.e.temp": "ambient_temp_c", "v.p.altitude": "elevation_m", "v.p.acceleration": "acceleration_ms2",
    "v.p.odometer": "distance_km", "v.m.rpm": "motor_rpm", "v.p.latitude": "latitude_deg",
    "v.p.longitude": "longitude_deg",
}  # fmt: skip
_TIMES = ("time", "timestamp", "date", "datetime", "m.time.utc", "utc", "time_s")


def detect(head: bytes) -> bool:
    """The metrics' names for speed and for power or current."""
    found = set(columns.names(_plain(text.header(head)[0])))
    return bool(found & {"v.p.speed", "v.p.gpsspeed"}) and bool(found & {"v.b.power", "v.b.current", "v.b.voltage"})


def _plain(header: list[str]) -> list[str]:
    """Names without units in brackets."""
    return [claims.split_unit(name)[0] for name in header]


def _with_units(path: Path, header: list[str]) -> tuple[dict[str, str | columns.Column], list[str]]:
    """The metrics, those whose names are followed by a unit, `v.p.speed (mph)`, in that, and notes on units that are unknown; those
    of another channel than speed and power are the metric's own, as a rule (`dd`, `kms`)."""
    found: dict[str, str | columns.Column] = dict(_KNOWN)
    channels = [_KNOWN.get(name) for name in map(str.casefold, _plain(header))]
    notes = []
    for name, unit in map(claims.split_unit, header):
        channel = _KNOWN.get(name.casefold())
        if channel and unit:
            ours = unit_for(channel, unit)
            if ours is not None:
                found[name.casefold()] = columns.Column(channel, ours)
            elif channel not in claims.MATTERS:
                notes.append(f"{name} has the unit {unit!r}, which is unknown: taken as {CHANNELS[channel].unit}")
            elif channels.count(channel) > 1:
                notes.append(f"{name} is left out: its unit {unit!r} is unknown")
                del found[name.casefold()]
            else:
                raise LogError(f"{path}: {name} has the unit {unit!r}, which is unknown for {channel}; use one of {', '.join(known_units(channel))}.")  # fmt: skip
    return found, notes


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a file, cut where it is silent."""
    table = text.table(path, data)
    header = _plain(table.header)
    known, unknown = _with_units(path, table.header)
    where = columns.names(header)
    column = next((where[name] for name in _TIMES if name in where), 0)
    time, notes = clock.unroll(path, columns.seconds(table.frame[str(column)]), table.first_line)
    found = columns.series(table.frame, header, known, time)
    if "speed_kmh" not in found:
        raise LogError(f"{path}: v.p.speed has no values; log it as well.")
    return columns.drives(path, NAME, found, (*unknown, *notes, *table.notes))
