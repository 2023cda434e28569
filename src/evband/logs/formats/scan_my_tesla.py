"""Scan My Tesla's log: `Time,Battery voltage,Battery current,Battery power,...`, no units, milliseconds since the log began.

A cell is filled only when its value changed. Metric units, as the app logs by default.
"""

from __future__ import annotations

from pathlib import Path

from evband.errors import LogError
from evband.logs.formats import clock, columns, text
from evband.trips.readings import Readings, ReadOptions

NAME = "Scan My Tesla"
_KNOWN = {
    "speed": "speed_kmh", "vehicle speed": "speed_kmh", "battery voltage": "battery_voltage_v",
    "battery current": "battery_current_a", "battery power": "power_kw", "outside temp": "ambient_temp_c",
    "outside temperature": "ambient_temp_c", "elevation": "elevation_m", "altitude": "elevation_m",
    "odometer": "distance_km", "soc": "soc_pct", "rr torque measured": "motor_torque_nm",
}  # fmt: skip
_CABIN = {"heating/cooling": 1.0}
_LEAST_MS = 5  # between rows: no log is written faster


def detect(head: bytes) -> bool:
    """Time first, in steps that are no seconds, and its names for the battery, without units."""
    header, delimiter = text.header(head)
    found = set(columns.names(header))
    theirs = {"battery voltage", "battery current"} <= found and not any(name.startswith("dy_") for name in found)
    if not theirs or header[0].casefold() != "time":
        return False
    first = [text.cells(line, delimiter)[0] for line in text.lines(head) if line.strip()]
    times = [float(cell) for cell in first if cell.isascii() and cell.replace(".", "", 1).isdigit()]
    return len(times) > 1 and times[-1] - times[0] > _LEAST_MS * (len(times) - 1)


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive per file, cut where it is silent."""
    table = text.table(path, data)
    time, notes = clock.unroll(path, columns.numbers(table.frame, 0) / 1000.0, table.first_line, daily=False)
    found = columns.series(table.frame, table.header, _KNOWN, time)
    if {"battery_voltage_v", "battery_current_a"} <= found.keys() and "power_kw" in found:
        del found["power_kw"]
        notes.append("power_kw: 'Battery power' is left out, since current and voltage are there")
    found |= columns.cabin(table.frame, table.header, _CABIN, time)
    if "speed_kmh" not in found:
        raise LogError(f"{path}: it has no column Speed with values; log the speed as well.")
    return columns.drives(path, NAME, found, (*notes, *table.notes))
