"""Argonne's dynamometer tables (D3, used by the US EPA and DOE): tabs or commas, `Time[s]` or `Time[s]_RawFacilities`, `Dyno_Spd[mph]`.

Units stand in brackets or after two underscores (`HVBatt_Curr_Hioki_I1__A`). The battery is whatever column says so: an `HV...Batt...` (or
`Batt`) name in V, A or kW; of several the power analyser's (Hioki), whose sign is ours, before the car's own. Cell_Temp is the ambient.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from evband.channels import from_unit
from evband.errors import LogError
from evband.logs.formats import claims, clock, columns, text
from evband.logs.formats.units import unit_for
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "ANL dynamometer"
_TIMES = ("time", "test_time", "daq_time")  # the last may begin with rows of another test
_UNIT = re.compile(r"^(.+?)(?:\[([^\]]*)\].*|__([^_]+))$")
_BATTERY = ("battery_voltage_v", "battery_current_a", "power_kw")
_NAMES = (
    ("speed_kmh", re.compile(r"^dyno_(spd|speed)")),
    ("force_n", re.compile(r"^dyno_(tractive_?force|tractive_?effort|force)")),
    ("ambient_temp_c", re.compile(r"^(test_)?cell_temp")),
    *((channel, re.compile(r"batt")) for channel in _BATTERY),
    ("motor_rpm", re.compile(r"^(motor|mot|drive_motor|edm).*(spd|speed|rpm)")),
    ("motor_torque_nm", re.compile(r"^(motor|mot|drive_motor|edm).*(torque|trq)")),
)
_NOT = re.compile(r"12v|lv_|aux|cell|module|temp|min|max|limit|charg|soc|12_v|avail|dcdc")


def _split(header: str) -> tuple[str, str]:
    """Name, in small letters, and unit.

    >>> _split("Time[s]_RawFacilities"), _split("HVBatt_Volt_Hioki_U1__V"), _split("Phase_number")
    (('time', 's'), ('hvbatt_volt_hioki_u1', 'V'), ('phase_number', ''))
    """
    found = _UNIT.match(header.strip())
    name, *units = found.groups() if found else (header.strip(), "")
    return name.strip().casefold(), next((unit for unit in units if unit), "")


def detect(head: bytes) -> bool:
    """A dynamometer's speed with its unit in brackets, and a time."""
    names = [_split(cell)[0] for cell in text.header(head)[0]]
    return any(name in _TIMES for name in names) and any(name.startswith(("dyno_spd", "dyno_speed")) for name in names)


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One test per file."""
    table = text.table(path, data)
    split = [_split(name) for name in table.header]
    column = min((_TIMES.index(name), i) for i, (name, _) in enumerate(split) if name in _TIMES)[1]
    time, notes = clock.unroll(path, columns.numbers(table.frame, column), table.first_line, daily=False)
    found: dict[str, Series] = {}
    for i, (name, unit) in sorted(enumerate(split), key=lambda one: "hioki" not in one[1][0]):
        for channel, pattern in _NAMES:
            ours = unit_for(channel, unit) if unit else None
            wrong = channel in _BATTERY and _NOT.search(name)
            if channel in found or ours is None or not pattern.search(name) or wrong:
                continue
            at, value = claims.series(time, from_unit(channel, columns.numbers(table.frame, i), ours))
            if len(at):
                found[channel] = (at, value)
                notes.append(f"{channel} is {table.header[i]!r}")
                break
    if "speed_kmh" not in found:
        raise LogError(f"{path}: the dynamometer's speed has no values; export the test again.")
    return columns.drives(path, NAME, found, (*notes, *table.notes), silence_s=np.inf)
