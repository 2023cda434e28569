"""Leaf Spy's log: `Date/Time,Lat,Long,Elv,Speed,Gids,SOC,AHr,Pack Volts,Pack Amps,...`, one row about every 5 s.

Discharge is positive. SOC comes in 1e-4 %, the estimated heater and air conditioner in steps of 250 W and 50 W. Speed is the phone's (GPS),
below 0 without a fix, and in the phone's unit: the odometer, or `Speed1`, shows whether that is mph, and altitudes are then in feet. Where
`Speed1`, the car's own in 0.01 km/h, is alive and agrees, it is taken. Ambient is in F or C, whichever lies nearer to the pack's temperature.
Charging rows are mixed in; corrupt rows are left out by their time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evband.channels import KM_PER_MILE, from_unit
from evband.errors import LogError
from evband.logs.formats import clock, columns, text
from evband.logs.formats.columns import Column
from evband.trips.readings import Readings, ReadOptions, Series, trapezoids

NAME = "Leaf Spy"
_FASTEST_KM_S = 0.06  # of a jump of the odometer that counts
_KNOWN: columns.Known = {
    "speed": "speed_kmh", "elv": "elevation_m", "pack volts": "battery_voltage_v", "pack amps": "battery_current_a",
    "ambient": "ambient_temp_c", "odo(km)": "distance_km", "odo(mi)": Column("distance_km", "mi"),
    "soc": Column("soc_pct", "%", 1e-4),
}  # fmt: skip
_OWN: columns.Known = {"speed1": Column("speed_kmh", "km/h", 0.01)}
_PACK: columns.Known = {"pack t1 c": "ambient_temp_c"}
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
    if "speed_kmh" in found:
        own = columns.series(table.frame, table.header, _OWN, time).get("speed_kmh")
        found |= _motion(found, own, notes)
    if "ambient_temp_c" in found:
        pack = columns.series(table.frame, table.header, _PACK, time).get("ambient_temp_c")
        found["ambient_temp_c"] = _ambient(found["ambient_temp_c"], pack, notes)
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


def _motion(found: Mapping[str, Series], own: Series | None, notes: list[str]) -> dict[str, Series]:
    """Speed and altitude in our units, from the phone's and, where it agrees with the phone's, the car's `own` speed."""
    time, value = found["speed_kmh"]
    fix = value >= 0.0
    if not fix.all():
        notes.append(f"{np.sum(~fix)} rows have no speed: the phone had no GPS fix")
    speed = (time[fix], value[fix])
    ratio = _times_faster(speed, own) if own is not None else 0.0
    agrees = any(abs(ratio / unit - 1.0) < 0.1 for unit in (1.0, KM_PER_MILE))
    in_miles = ratio > 1.3 if agrees else _in_miles(speed, found.get("distance_km"))
    motion = {"speed_kmh": (speed[0], speed[1] * (KM_PER_MILE if in_miles else 1.0))}
    if own is not None and (agrees or not fix.any()):
        motion["speed_kmh"] = own
        notes.append("speed_kmh is 'Speed1', the car's own; set aside: 'Speed', the phone's")
    if in_miles:
        notes.append(f"{'Speed1' if agrees else 'the odometer'} shows that 'Speed' is in mph, so 'Elv' is in feet")
        if "elevation_m" in found:
            motion["elevation_m"] = (found["elevation_m"][0], from_unit("elevation_m", found["elevation_m"][1], "ft"))
    return motion


def _times_faster(speed: Series, own: Series) -> float:
    """How many times larger the car's own speed is where the phone's shows that it drives; 0 where it is dead."""
    same, a, b = np.intersect1d(speed[0], own[0], return_indices=True)
    driving = speed[1][a] > 10.0
    return float(np.median(own[1][b][driving] / speed[1][a][driving])) if len(same) and driving.any() else 0.0


def _in_miles(speed: Series, odometer: Series | None) -> bool:
    """Whether the odometer's way is 1.6 times that of the speed, over at least 3 km of driving without gaps or dead readings."""
    if odometer is None or len(odometer[0]) < 2 or len(speed[0]) < 3:
        return False
    step = np.diff(speed[0])
    near = (step < max(30.0, 2.0 * float(np.median(step)))) & (np.minimum(speed[1][1:], speed[1][:-1]) > 0.0)
    driven = float(np.sum(trapezoids(speed)[near])) / 3600.0
    counted = np.diff(np.interp(speed[0], *odometer))
    way = float(np.sum(np.clip(counted, 0.0, np.maximum(5.0, step * _FASTEST_KM_S))[near]))
    return driven > 0 and way >= 3.0 and 1.4 < way / driven < 1.85


def _ambient(ambient: Series, pack: Series | None, notes: list[str]) -> Series:
    """In C: the log's are F, unless they lie nearer to the pack's temperature as C."""
    time, value = ambient
    in_f = from_unit("ambient_temp_c", value, "f")
    if pack is None:
        return time, in_f
    as_f, as_c = (abs(float(np.median(of)) - float(np.median(pack[1]))) for of in (in_f, value))
    if as_f <= as_c:
        return time, in_f
    notes.append("'Ambient' is taken as C: the pack's temperature lies nearer to that than to F")
    return time, value
