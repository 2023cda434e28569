"""The TU Munich BMW i3 drives: `Time [s];Velocity [km/h];...;Battery Voltage [V];Battery Current [A];...`, latin-1.

Its current is negative when the battery discharges; ours is positive.
"""

from __future__ import annotations

from pathlib import Path

from evband.channels import from_unit
from evband.errors import LogError
from evband.logs.formats import claims, clock, columns, text
from evband.logs.formats.naming import trip_id
from evband.logs.formats.units import unit_for
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "TU Munich BMW i3"
_CHANNELS = {
    "velocity": "speed_kmh",
    "longitudinal acceleration": "acceleration_ms2",
    "motor torque": "motor_torque_nm",
    "elevation": "elevation_m",
    "ambient temperature": "ambient_temp_c",
    "soc": "soc_pct",
    "battery voltage": "battery_voltage_v",
    "battery current": "battery_current_a",
}
_DISCHARGE_NEGATIVE = "battery_current_a"
_CABIN = {"heating power can [kw]": 1.0, "heating power [kw]": 1.0, "aircon power [kw]": 1.0}


def _name(header: str) -> tuple[str, str]:
    name, unit = claims.split_unit(header)
    return " ".join(name.casefold().split()), unit


def detect(head: bytes) -> bool:
    """Its names for time, speed and current, with units in square brackets."""
    names = {_name(cell) for cell in text.header(head)[0]}
    return {("time", "s"), ("velocity", "km/h"), ("battery current", "a")} <= {(n, u.casefold()) for n, u in names}


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive per file."""
    table = text.table(path, data)
    names = [_name(cell) for cell in table.header]
    when = columns.numbers(table.frame, [name for name, _ in names].index("time"))
    time, notes = clock.unroll(path, when, table.first_line, daily=False)
    series: dict[str, Series] = {}
    for i, (name, unit) in enumerate(names):
        channel = _CHANNELS.get(name)
        if channel is None or channel in series:
            continue
        ours = unit_for(channel, unit)
        if ours is None:
            raise LogError(f"{path}: the column {table.header[i]!r} has an unknown unit; correct its header.")
        at, value = claims.series(time, from_unit(channel, columns.numbers(table.frame, i), ours))
        series[channel] = (at, -value if channel == _DISCHARGE_NEGATIVE else value)
    if series["speed_kmh"][1].size == 0:
        raise LogError(f"{path}: all values of 'Velocity [km/h]' are missing; fetch the file again.")
    series |= columns.cabin(table.frame, table.header, _CABIN, time)
    notes.append(columns.INVERTED)
    return [Readings(trip_id(path), series, NAME, tuple(notes))]
