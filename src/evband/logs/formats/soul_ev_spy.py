"""Soul EV Spy's log: `"VIN",...,"system.scan_end_time_ms",...,"car.speed_kph",...,"battery.DC_V","battery.DC_current_A",...`, a row about every 5 s.

Every name ends in its unit. Current is positive when it leaves the battery. A row is one pass over all of the car's values; its time is
the end of that pass.
"""

from __future__ import annotations

from pathlib import Path

from evband.logs.formats import clock, columns, text
from evband.logs.formats.columns import Column
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions

NAME = "Soul EV Spy"
_TIME = "system.scan_end_time_ms"
_KNOWN = {
    "car.speed_kph": Column("speed_kmh", "km/h"),
    "battery.dc_v": Column("battery_voltage_v", "V"),
    "battery.dc_current_a": Column("battery_current_a", "A"),
    "car.ambient_c": Column("ambient_temp_c", "C"),
    "route.elevation_m": Column("elevation_m", "m"),
    "car.odo_km": Column("distance_km", "km"),
    "battery.soc_display_pct": Column("soc_pct", "%"),
    "battery.drive_motor_speed_rpm": Column("motor_rpm", "rpm"),
    "route.lat_deg": Column("latitude_deg", "deg"),
    "route.lng_deg": Column("longitude_deg", "deg"),
}


def detect(head: bytes) -> bool:
    """Its names for the end of a pass, the speed and the battery's current."""
    return {_TIME, "car.speed_kph", "battery.dc_current_a"} <= set(columns.names(text.header(head)[0]))


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a file, cut where it is silent."""
    table = text.table(path, data)
    seconds = columns.numbers(table.frame, columns.names(table.header)[_TIME]) / 1000.0
    time, notes = clock.unroll(path, seconds, table.first_line, daily=False)
    found = columns.series(table.frame, table.header, _KNOWN, time)
    return columns.drives(path, trip_id(path), NAME, found, (*notes, *table.notes))
