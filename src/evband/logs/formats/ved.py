"""The Vehicle Energy Dataset (Ann Arbor) and eVED, its extension: `DayNum,VehId,Trip,Timestamp(ms),...,HV Battery Current[A],...`, a week of many cars per file.

Current is negative on discharge and is inverted. Every row repeats each channel's last value; a value that says the same again within a second
is not a new reading. Trips of cars without a high-voltage battery are left out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import columns, text
from evband.logs.formats.columns import Column
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "VED"
_KNOWN: columns.Known = {
    "vehicle speed[km/h]": "speed_kmh", "hv battery current[a]": Column("battery_current_a", "A", -1.0),
    "hv battery voltage[v]": "battery_voltage_v", "hv battery soc[%]": "soc_pct", "oat[degc]": "ambient_temp_c",
    "elevation smoothed[m]": "elevation_m", "elevation raw[m]": "elevation_m", "latitude[deg]": "latitude_deg",
    "longitude[deg]": "longitude_deg",
}  # fmt: skip
_CABIN = {"heater power[watts]": 1e-3, "air conditioning power[watts]": 1e-3}
_CABIN_KW = {"heater power[watts]": 1e-3, "air conditioning power[kw]": 1.0}
HELD_S = 1.0


def detect(head: bytes) -> bool:
    """Its numbers of vehicle and trip beside the battery's current."""
    return columns.has(head, "vehid", "trip", "timestamp(ms)", "hv battery current[a]")


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive for each vehicle and trip."""
    table = text.table(path, data)
    where = columns.names(table.header)
    vehicle, trip = str(where["vehid"]), str(where["trip"])
    parts = table.frame.partition_by(vehicle, trip, maintain_order=True, as_dict=True)
    if len(parts) > border.MOST_TRIPS:
        raise LogError(f"{path}: it holds {len(parts)} trips, more than {border.MOST_TRIPS}; split it.")
    trips: list[Readings] = []
    for (car, number), part in parts.items():
        trips += _trip(
            f"ved_{str(car).split('.')[0]}_{str(number).split('.')[0]}", table.header, part, where["timestamp(ms)"]
        )
    if not trips:
        raise LogError(f"{path}: no trip in it has a battery current and a speed; take a file with electric cars.")
    return trips


def _trip(name: str, header: list[str], part: pl.DataFrame, clock: int) -> list[Readings]:
    time = columns.numbers(part, clock) / 1000.0
    found = columns.series(part, header, _KNOWN, time)
    if not {"speed_kmh", "battery_current_a", "battery_voltage_v"} <= found.keys():
        return []
    found |= columns.cabin(part, header, _CABIN, time) or columns.cabin(part, header, _CABIN_KW, time)
    found = {channel: fresh(*s) for channel, s in found.items()}
    return [Readings(name, found, NAME, (columns.INVERTED,))]


def fresh(time: np.ndarray, value: np.ndarray) -> Series:
    """The readings that say something new, or the same again a second or more after the last that was kept.

    >>> fresh(np.array([0.0, 0.1, 0.9, 1.1, 1.2, 2.4]), np.array([5.0, 5.0, 5.0, 6.0, 6.0, 6.0]))[0].tolist()
    [0.0, 1.1, 2.4]
    """
    run = np.maximum.accumulate(np.where(np.append(True, np.diff(value) != 0), np.arange(len(value)), 0))
    age = np.floor((time - time[run]) / HELD_S)  # whole seconds since its run began
    keep = np.append(True, (np.diff(value) != 0) | (np.diff(age) > 0))[: len(value)]
    return time[keep], value[keep]
