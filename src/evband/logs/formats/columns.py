"""Tables with fixed names: what each column is, in which unit and sign; instants from dates; one table into its drives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import CHANNELS, NEW_TRIP_S, from_unit
from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import claims, clock, text
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, Series

Array = NDArray[np.float64]


class Column(NamedTuple):
    """What a column is: value in our unit = scale * (value in `unit`)."""

    channel: str
    unit: str
    scale: float = 1.0

    def values(self, raw: Array) -> Array:
        """In our unit and sign."""
        return self.scale * from_unit(self.channel, raw, self.unit)


Known = Mapping[str, str | Column]  # name in small letters -> channel, where it is in our unit, or a `Column`
TESLA: dict[str, str | Column] = {
    "speed": "speed_kmh", "power": "power_kw", "elevation": "elevation_m", "outside_temp": "ambient_temp_c", "odometer": "distance_km",
    "battery_level": "soc_pct", "latitude": "latitude_deg", "longitude": "longitude_deg",
}  # fmt: skip
"""The names of Tesla's own interface, which loggers of its cars keep."""


def names(header: list[str]) -> dict[str, int]:
    """Where each name stands, in small letters; of two alike the first."""
    found: dict[str, int] = {}
    for number, name in enumerate(header):
        found.setdefault(" ".join(name.casefold().split()), number)
    return found


def has(head: bytes, *wanted: str) -> bool:
    """Whether the header of a file has all these names."""
    return set(wanted) <= set(names(text.header(head)[0]))


def numbers(frame: pl.DataFrame, column: int | str) -> Array:
    """One column as numbers, NaN where it has none."""
    return text.numbers(frame, [str(column)]).to_series().fill_null(np.nan).to_numpy()


def series(frame: pl.DataFrame, header: list[str], known: Known, time: Array) -> dict[str, Series]:
    """The channels of the columns that are known and hold readings; of two columns for one channel the first listed."""
    where = names(header)
    found: dict[str, Series] = {}
    for name, what in known.items():
        column = Column(what, CHANNELS[what].unit) if isinstance(what, str) else what
        if name in where and column.channel not in found:
            at, value = claims.series(time, column.values(numbers(frame, where[name])))
            if len(at):
                found[column.channel] = (at, value)
    return found


INVERTED = "discharge is negative in this format; the current's sign was inverted"


def cabin(frame: pl.DataFrame, header: list[str], parts: Mapping[str, float], time: Array) -> dict[str, Series]:
    """`hvac_power_kw`: the sum of several consumers in kW, each with its factor, where at least one is known; {} without."""
    where = names(header)
    values = [factor * numbers(frame, where[name]) for name, factor in parts.items() if name in where]
    known = [np.isfinite(value) for value in values]
    if not values or not np.any(known):
        return {}
    whole = np.where(np.any(known, axis=0), np.nansum(values, axis=0), np.nan)
    return {"hvac_power_kw": claims.series(time, whole)}


def seconds(column: pl.Series) -> Array:
    """Seconds since 1970 of dates as databases write them (`2024-01-05 11:26:58.123`, with `T`, `Z`, `+00` or `-05:00`); NaN else.

    Where there is none of those, numbers and other dates are read as `clock` reads them.
    """
    plain = column.cast(pl.String).str.strip_chars().str.replace("T", " ", literal=True).str.replace(r"\s*Z$", "")
    zoned = plain.str.replace(r"(\d:\d{2}:\d{2}(?:\.\d+)?)$", "${1}+00:00")
    zoned = zoned.str.replace(r"(:\d{2}(?:\.\d+)?)\s*([+-]\d{2})$", "${1}${2}:00")
    when = zoned.str.to_datetime("%Y-%m-%d %H:%M:%S%.f%z", strict=False)
    if when.null_count() == len(when):
        value = numbers(pl.DataFrame({"0": plain}), 0)
        return clock.of_numbers(value) if np.isfinite(value).any() else clock.since_first_day(plain)
    return when.dt.epoch("us").cast(pl.Float64).fill_null(np.nan).to_numpy() / 1e6


def bare_seconds(frame: pl.DataFrame, column: int, found: Sequence[claims.Claim]) -> tuple[Array, list[str]]:
    """A column of numbers as times in seconds, though it names no unit (the speed among the claims helps), and a note where that is a guess."""
    value = numbers(frame, column)
    speeds = (c for c in found if c.channel == "speed_kmh" and c.unit is not None)
    speed = next((from_unit(c.channel, numbers(frame, c.column), str(c.unit)) for c in speeds), None)
    time = clock.of_numbers(value, speed)
    step, of_seconds = clock.median_step(value), clock.median_step(time)
    if not (of_seconds < step or step > 60.0) or np.nanmax(np.abs(value), initial=0.0) >= clock.DATED:
        return time, []
    unit = "milliseconds" if of_seconds < step else "seconds"
    return time, [f"its times name no unit and step by {step:g}: taken as {unit} (a --map file can name it)"]


def dated(frame: pl.DataFrame, column: int | str) -> pl.DataFrame:
    """The rows whose date can be read, in its order, with its `seconds` as a column `when`."""
    frame = frame.with_columns(pl.Series("when", seconds(frame[str(column)])))
    return frame.filter(pl.col("when").is_finite()).sort("when", maintain_order=True)


def drives(
    path: Path,
    format: str,
    found: Mapping[str, Series],
    notes: tuple[str, ...],
    name: str = "",
    silence_s: float = NEW_TRIP_S,
) -> list[Readings]:
    """The readings cut where speed is silent for long; each drive with at least two speeds. Named as the file by default."""
    name = name or trip_id(path)
    if "speed_kmh" not in found or len(found["speed_kmh"][0]) == 0:
        raise LogError(f"{path}: all values of speed are missing; export the drive again with its speed.")
    time = found["speed_kmh"][0]
    cuts = np.flatnonzero(np.diff(time) > silence_s)
    if len(cuts) >= border.MOST_TRIPS:
        raise LogError(f"{path}: it falls into {len(cuts) + 1} drives, more than {border.MOST_TRIPS}; split it.")
    starts = np.append(-np.inf, (time[cuts] + time[cuts + 1]) / 2.0)
    ends = np.append(starts[1:], np.inf)
    trips = []
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        part = {channel: _between(s, start, end) for channel, s in found.items()}
        part = {channel: s for channel, s in part.items() if len(s[0])}
        if len(part.get("speed_kmh", ((), ()))[0]) >= 2 or len(starts) == 1:
            trips.append(Readings(name if len(starts) == 1 else f"{name}_{number + 1}", part, format, notes))
    if not trips:
        raise LogError(f"{path}: no drive in it has two speed readings; export more of it.")
    return trips


def _between(readings: Series, start: float, end: float) -> Series:
    time, value = readings
    a, b = np.searchsorted(time, [start, end])
    return time[a:b], value[a:b]
