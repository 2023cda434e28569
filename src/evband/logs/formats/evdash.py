"""evDash's log on its SD card: a line `{"currTime":1640995200,"speedKmh":52,"batPowKw":-9.3,"batPowA":-25.1,"batV":371.0,...},` per pass over the ECUs.

Current and power are negative on discharge and are inverted. -1 stands for what no ECU has told yet.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from evband.errors import LogError
from evband.logs import telemetry
from evband.logs.formats import abrp, claims, clock, columns
from evband.logs.formats.columns import Column
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "evDash"
_KNOWN = {
    "speedKmh": Column("speed_kmh", "km/h"), "batPowA": Column("battery_current_a", "A", -1.0), "batV": Column("battery_voltage_v", "V"),
    "batPowKw": Column("power_kw", "kW", -1.0), "socPerc": Column("soc_pct", "%"), "alt": Column("elevation_m", "m"),
    "motorRpm": Column("motor_rpm", "rpm"), "motorTqNm": Column("motor_torque_nm", "Nm"), "odoKm": Column("distance_km", "km"),
    "outC": Column("ambient_temp_c", "C"), "lat": Column("latitude_deg", "deg"), "lon": Column("longitude_deg", "deg"),
}  # fmt: skip
_UNKNOWN = -1.0


def detect(head: bytes) -> bool:
    """An object with its names for time and battery power."""
    start = head[:4096]
    return start.lstrip(b"\xef\xbb\xbf[ \r\n").startswith(b"{") and b'"currTime"' in start and b'"batPowKw"' in start


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a file, cut where it is silent."""
    times: list[float] = []
    rows: list[list[float]] = []
    for number, sample in abrp.samples(path, re.sub(rb"\},[ \r]*$", b"}", data, flags=re.MULTILINE)):
        when = telemetry.number(sample.get("currTime"))
        if when is None:
            raise LogError(f"{path}: line {number} has no currTime; repair or remove that line.")
        values = (telemetry.number(sample.get(key)) for key in _KNOWN)
        times.append(when)
        rows.append([np.nan if value is None else value for value in values])
    time, notes = clock.unroll(path, np.array(times), 1, daily=False)
    table = dict(zip(_KNOWN, np.array(rows).T, strict=True))
    unknown = {key: table["batV" if key.startswith("batPow") else key] == _UNKNOWN for key in table}
    found: dict[str, Series] = {}
    for key, column in _KNOWN.items():
        at, value = claims.series(time, column.values(np.where(unknown[key], np.nan, table[key])))
        if len(at):
            found[column.channel] = (at, value)
    if {"battery_voltage_v", "battery_current_a"} <= found.keys():
        found.pop("power_kw", None)
    return columns.drives(path, NAME, found, (columns.INVERTED, *notes))
