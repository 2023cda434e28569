"""Leaf Spy's log: `Date/Time,Lat,Long,Elv,Speed,Gids,SOC,AHr,Pack Volts,Pack Amps,...`, one row about every 5 s.

Discharge is positive. SOC comes in 1e-4 %, ambient in F, the estimated heater and air conditioner in steps of 250 W and 50 W. Speed is the
phone's (GPS) in the phone's unit, which the odometer gives away: km/h or mph is chosen by it. Charging rows are mixed in; corrupt rows
are left out by their time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evband.channels import KM_PER_MILE
from evband.errors import LogError
from evband.logs.formats import clock, columns, text
from evband.logs.formats.columns import Column
from evband.trips.readings import Readings, ReadOptions, Series, trapezoids

NAME = "Leaf Spy"
_KNOWN: columns.Known = {
    "speed": "speed_kmh", "elv": "elevation_m", "pack volts": "battery_voltage_v", "pack amps": "battery_current_a",
    "ambient": Column("ambient_temp_c", "f"), "odo(km)": "distance_km", "odo(mi)": Column("distance_km", "mi"),
    "soc": Column("soc_pct", "%", 1e-4),
}  # fmt: skip
_CABIN = {"est pwr a/c(50w)": 0.05, "est pwr htr(250w)": 0.25}


def detect(head: bytes) -> bool:
    """Its names for pack voltage, pack current and gids."""
    return columns.has(head, "date/time", "pack volts", "pack amps")


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives of a file, cut where it is silent."""
    table = text.table(path, data)
    time = _time(path, table)
    found = columns.series(table.frame, table.header, _KNOWN, time)
    found |= columns.cabin(table.frame, table.header, _CABIN, time)
    notes = [*table.notes]
    if "soc_pct" in found and np.median(found["soc_pct"][1]) < 0.05:  # some versions write percent
        found["soc_pct"] = (found["soc_pct"][0], 1e4 * found["soc_pct"][1])
    if "speed_kmh" in found and _in_miles(found["speed_kmh"], found.get("distance_km")):
        found["speed_kmh"] = (found["speed_kmh"][0], KM_PER_MILE * found["speed_kmh"][1])
        notes.append("speed_kmh: the odometer shows that 'Speed' is in mph")
    return columns.drives(path, NAME, found, tuple(notes))


def _time(path: Path, table: text.Table) -> NDArray[np.float64]:
    where = columns.names(table.header)
    if "epoch time" in where:
        time = columns.numbers(table.frame, where["epoch time"])
        if np.isfinite(time).mean() > 0.5:
            good = np.isfinite(time) & (
                np.abs(time - np.nanmedian(time)) < 400 * clock.DAY_S
            )  # a shifted row has another number
            return np.where(good, time, np.nan)
    seconds = clock.since_first_day(table.frame[str(where["date/time"])])
    if not np.isfinite(seconds).any():
        raise LogError(f"{path}: no Date/Time in it can be read; export it again or describe it in a --map file.")
    return clock.unroll(path, seconds, table.first_line)[0]


def _in_miles(speed: Series, odometer: Series | None) -> bool:
    """Whether the odometer's way is 1.6 times that of the speed, over at least 3 km of driving without gaps."""
    if odometer is None or len(odometer[0]) < 2 or len(speed[0]) < 3:
        return False
    near = np.diff(speed[0]) < 30.0
    driven = float(np.sum(trapezoids(speed)[near])) / 3600.0
    counted = np.interp(speed[0], *odometer)
    way = float(np.sum(np.clip(np.diff(counted), 0.0, 5.0)[near]))
    return driven > 0 and way >= 3.0 and 1.4 < way / driven < 1.85
