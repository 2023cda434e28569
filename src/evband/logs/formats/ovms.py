"""OVMS metrics as a wide CSV: a time column and metric names such as `v.p.speed`, `v.b.power`, `v.e.temp`; changed values only, or all.

Units are those of the metrics (km/h, kW, V, A, C, m); power and current are positive when they leave the battery.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from evband.errors import LogError
from evband.logs.formats import claims, clock, columns, text
from evband.logs.formats.columns import Column
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions

NAME = "OVMS"
_KNOWN = {
    "v.p.speed": Column("speed_kmh", "km/h"),
    "v.p.gpsspeed": Column("speed_kmh", "km/h"),
    "v.b.power": Column("power_kw", "kW"),
    "v.b.voltage": Column("battery_voltage_v", "V"),
    "v.b.current": Column("battery_current_a", "A"),
    "v.b.soc": Column("soc_pct", "%"),
    "v.e.temp": Column("ambient_temp_c", "C"),
    "v.p.altitude": Column("elevation_m", "m"),
    "v.p.acceleration": Column("acceleration_ms2", "m/s2"),
    "v.p.odometer": Column("distance_km", "km"),
    "v.m.rpm": Column("motor_rpm", "rpm"),
    "v.p.latitude": Column("latitude_deg", "deg"),
    "v.p.longitude": Column("longitude_deg", "deg"),
}
_TIMES = ("time", "timestamp", "date", "datetime", "m.time.utc", "utc", "time_s")


def detect(head: bytes) -> bool:
    """The metrics' names for speed and for power or current."""
    found = set(columns.names(_plain(text.header(head)[0])))
    return bool(found & {"v.p.speed", "v.p.gpsspeed"}) and bool(found & {"v.b.power", "v.b.current", "v.b.voltage"})


def _plain(header: list[str]) -> list[str]:
    """Names without units in brackets."""
    return [claims.split_unit(name)[0] for name in header]


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a file, cut where it is silent."""
    table = text.table(path, data)
    header = _plain(table.header)
    where = columns.names(header)
    column = next((where[name] for name in _TIMES if name in where), 0)
    time = columns.numbers(table.frame, column)
    if not np.isfinite(time).any():
        time = columns.seconds(table.frame[str(column)])
    if not np.isfinite(time).any():
        time = clock.since_first_day(table.frame[str(column)])
    time = np.where(time > 1e11, time / 1000.0, time)  # milliseconds since 1970
    time, notes = clock.unroll(path, time, table.first_line)
    found = columns.series(table.frame, header, _KNOWN, time)
    if "speed_kmh" not in found:
        raise LogError(f"{path}: v.p.speed has no values; log it as well.")
    return columns.drives(path, trip_id(path), NAME, found, (*notes, *table.notes))
