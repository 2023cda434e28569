"""Soul EV Spy's log: `"VIN",...,"system.scan_end_time_ms",...,"car.speed_kph",...,"battery.DC_V","battery.DC_current_A",...`, a row about every 5 s.

Every name ends in its unit. Current is positive when it leaves the battery. A row is one pass over all of the car's values; its time is
the end of that pass.
"""

from __future__ import annotations

from pathlib import Path

from evband.logs.formats import clock, columns, text
from evband.trips.readings import Readings, ReadOptions

NAME = "Soul EV Spy"
_TIME = "system.scan_end_time_ms"
_KNOWN = {
    "car.speed_kph": "speed_kmh", "battery.dc_v": "battery_voltage_v", "battery.dc_current_a": "battery_current_a",
    "car.ambient_c": "ambient_temp_c", "route.elevation_m": "elevation_m", "car.odo_km": "distance_km",
    "battery.soc_display_pct": "soc_pct", "battery.drive_motor_speed_rpm": "motor_rpm",
    "route.lat_deg": "latitude_deg", "route.lng_deg": "longitude_deg",
}  # fmt: skip


def detect(head: bytes) -> bool:
    """Its names for the end of a pass, the speed and the battery's current."""
    return columns.has(head, _TIME, "car.speed_kph", "battery.dc_current_a")


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a file, cut where it is silent."""
    table = text.table(path, data)
    seconds = columns.numbers(table.frame, columns.names(table.header)[_TIME]) / 1000.0
    time, notes = clock.unroll(path, seconds, table.first_line, daily=False)
    found = columns.series(table.frame, table.header, _KNOWN, time)
    return columns.drives(path, NAME, found, (*notes, *table.notes))
