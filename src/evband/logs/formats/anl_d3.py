"""Argonne's dynamometer tables (D3, used by the US EPA and DOE): tabs or commas, `Time[s]`, `Dyno_Spd[mph]`, names with units in brackets.

The battery is whatever column says so: an `HV...Batt...` (or `Batt`) name in V, A or kW; of several the first. Cell_Temp is the ambient.
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
_TIMES = ("time", "daq_time", "test_time")
_BATTERY = ("battery_voltage_v", "battery_current_a", "power_kw")
_NAMES = (
    ("speed_kmh", re.compile(r"^dyno_(spd|speed)")),
    ("force_n", re.compile(r"^dyno_(tractive_?force|force)")),
    ("ambient_temp_c", re.compile(r"^(test_)?cell_temp")),
    *((channel, re.compile(r"batt")) for channel in _BATTERY),
    ("motor_rpm", re.compile(r"^(motor|mot|drive_motor|edm).*(spd|speed|rpm)")),
    ("motor_torque_nm", re.compile(r"^(motor|mot|drive_motor|edm).*(torque|trq)")),
)
_NOT = re.compile(r"12v|lv_|aux|cell|module|temp|min|max|limit|charg|soc|12_v")


def detect(head: bytes) -> bool:
    """A dynamometer's speed with its unit in brackets, and a time."""
    names = [claims.split_unit(cell)[0].casefold() for cell in text.header(head)[0]]
    return any(name in _TIMES for name in names) and any(name.startswith(("dyno_spd", "dyno_speed")) for name in names)


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One test per file."""
    table = text.table(path, data)
    split = [(name.casefold(), unit) for name, unit in map(claims.split_unit, table.header)]
    column = next(i for i, (name, _) in enumerate(split) if name in _TIMES)
    time, notes = clock.unroll(path, columns.numbers(table.frame, column), table.first_line, daily=False)
    found: dict[str, Series] = {}
    for i, (name, unit) in enumerate(split):
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
