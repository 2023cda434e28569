"""Tidy tables in our channel names: CSV, Parquet, or a frame in memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import COORDINATES, ON_GRID, VALUES, require
from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import named_units, naming, text
from evband.trips.readings import Readings, ReadOptions
from evband.trips.trips import truths

NAME = "tidy table"


def detect(head: bytes) -> bool:
    """Parquet, or a header line with `time_s` and `speed_kmh` between commas, or with names of ours in a table that does not
    tell its units otherwise."""
    if head.startswith(border.PARQUET):
        return True
    header = _header(head)
    names = {name.strip(' "\r') for name in re.split(r"[,;\t|]", header)}
    if {"time_s", "speed_kmh"} <= names and "," in header:
        return True
    return ("time_s" in names or len(names & set(VALUES)) >= 2) and not named_units.detect(head)


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """All trips of a tidy file."""
    return frame_readings(parse(path, data), str(path), naming.trip_id(path), options.aliases)


def parse(path: Path, data: bytes) -> pl.DataFrame:
    """The file's table, whatever its columns are called."""
    if data.startswith(border.PARQUET):
        return border.parquet(path, data)
    if data[:2] in text.UTF16:
        data = text.to_utf8(data)
    border.check_header_line(path, data[: border.HEAD], 0, len(data) <= border.HEAD)
    header = _header(data[: border.HEAD])
    other = max(";", "\t", "|", key=header.count)
    if header.count(other) > header.count(","):
        raise LogError(
            f"{path}: its columns are separated by {other!r}, a tidy table's by commas; "
            f"write it with commas or describe it in a --map file."
        )
    border.check_width(path, header.count(",") + 1)
    with border.parsing(path):
        try:
            return _read_csv(data)
        except pl.exceptions.PolarsError as error:
            if "utf-8" not in str(error):
                raise
        return _read_csv(text.to_utf8(data))


def _read_csv(data: bytes) -> pl.DataFrame:
    frame = pl.read_csv(data, infer_schema_length=10_000, null_values=["", "NA", "NaN", "nan", "null"])
    if frame.width and frame.schema[first := frame.columns[0]] == pl.String:  # files put together repeat their header
        frame = frame.filter(pl.col(first).ne_missing(first))
    return frame


def _header(head: bytes) -> str:
    return text.decode(head).split("\n", 1)[0]


def frame_readings(
    frame: pl.DataFrame, where: str, default_id: str, aliases: Mapping[str, Sequence[str]] | None = None
) -> list[Readings]:
    """The trips of a frame in our names. Columns that are not channels of ours are never used."""
    frame = _renamed(frame, aliases or {})
    for needed in ("time_s", "speed_kmh"):
        require(needed, frame.columns, where)
    numbered = _has_segments(frame)
    ours = (*VALUES, *ON_GRID) if numbered else (*VALUES, *COORDINATES)
    channels = [name for name in ours if name in frame.columns]
    truth = [name for name in truths(frame) if frame[name].dtype.is_numeric()]
    ignored = [name for name in frame.columns if name not in ("time_s", "trip_id", *channels, *truth)]
    if numbered:
        ignored.remove("segment")
    notes = (f"columns that are not channels were ignored: {', '.join(ignored)}",) if ignored else ()
    numbers = frame.select([number(frame, name, where) for name in ("time_s", *channels, *truth)])
    if numbered:
        numbers = numbers.with_columns(frame["segment"].cast(pl.Int32))
    if not frame.height:
        raise LogError(f"{where}: it has a header but no rows; there is no trip in it.")
    trips = {name: _in_order(name, part, where) for name, part in _parts(numbers, _ids(frame, where, default_id))}
    hz = grid_rate([part["time_s"].to_numpy() for part, _ in trips.values()]) if numbered else None
    if numbered and hz is None:
        notes = (*notes, "the column segment was ignored: the times lie on no grid")
    return [_one_trip(name, part, where, (*notes, *more), hz) for name, (part, more) in trips.items()]


def _parts(numbers: pl.DataFrame, ids: pl.Series) -> Iterator[tuple[str, pl.DataFrame]]:
    """The rows of each trip."""
    if ids.n_unique() == 1:
        yield str(ids[0]), numbers
        return
    parts = numbers.with_columns(ids.alias("trip_id")).partition_by("trip_id", maintain_order=True, as_dict=True, include_key=False)  # fmt: skip
    for key, part in parts.items():
        yield str(key[0]), part


def _has_segments(frame: pl.DataFrame) -> bool:
    """Whether a column `segment` numbers the rows as our own tables do: whole numbers of 32 bits, none missing."""
    if "segment" not in frame.columns:
        return False
    column = frame["segment"]
    if not column.dtype.is_integer() or column.null_count() or not len(column):
        return False
    low, high = column.to_physical().cast(pl.Float64).min(), column.to_physical().cast(pl.Float64).max()
    return isinstance(low, float) and isinstance(high, float) and low >= -(2.0**31) and high < 2.0**31


def _ids(frame: pl.DataFrame, where: str, default_id: str) -> pl.Series:
    """The trip_id of every row as text."""
    if "trip_id" not in frame.columns:
        return pl.repeat(default_id, frame.height, eager=True)
    ids = frame["trip_id"]
    if ids.dtype.is_nested() or ids.dtype in (pl.Binary, pl.Object, pl.Duration):
        raise LogError(f"{where}: the column trip_id holds {ids.dtype}, not a text or number; convert it first.")
    ids = ids.cast(pl.String)
    if ids.null_count():
        raise LogError(f"{where}: {ids.null_count()} rows have no trip_id; give every row one, or drop the column.")
    if (count := ids.n_unique()) > border.MOST_TRIPS:
        raise LogError(f"{where}: it holds {count} trips, more than {border.MOST_TRIPS}; split it.")
    return ids


def _renamed(frame: pl.DataFrame, aliases: Mapping[str, Sequence[str]]) -> pl.DataFrame:
    """The user's own names for channels that the frame lacks, as ours."""
    found = {
        channel: next((name for name in names if name in frame.columns), None)
        for channel, names in aliases.items()
        if channel not in frame.columns
    }
    return frame.rename({name: channel for channel, name in found.items() if name is not None})


def grid_rate(times: Sequence[NDArray[np.float64]]) -> float | None:
    """The rate of the grid on which all these trips' rows stand; None where there is none.

    >>> grid_rate([np.array([0.5, 1.0, 3.5]), np.array([7.0])]), grid_rate([np.array([0.0, 1.0, 2.7])])
    (2.0, None)
    """
    steps = np.concatenate([np.diff(time) for time in times])
    if not len(steps):
        return None
    rows = np.round(steps / steps.min())
    if np.any(np.abs(steps / steps.min() - rows) > 1e-3 * rows):
        return None
    rate = float(rows.sum() / steps.sum())
    plain = float(Fraction(rate).limit_denominator(1000))
    return plain if abs(plain - rate) <= 1e-6 * rate else rate


def number(frame: pl.DataFrame, name: str, where: str) -> pl.Series:
    """A column as Float64, NaN and infinities as null."""
    column = frame[name]
    if name == "time_s" and column.dtype == pl.Float32:
        column = column.cast(pl.String)  # 0.1 as a 32-bit float is 0.1, not 0.10000000149
    if not (column.dtype.is_numeric() or column.dtype in (pl.String, pl.Null, pl.Boolean)):
        raise LogError(f"{where}: the column {name} holds {column.dtype}, not numbers; convert it first.")
    values = column.cast(pl.Float64, strict=False)
    bad = values.is_null() & column.is_not_null()
    if bad.any():
        row = int(bad.arg_true()[0])
        raise LogError(
            f"{where}: {name} has {column[row]!r} in row {row + 1}, which is not a number; correct or empty that cell."
        )
    wild = ~values.is_finite()
    return values.set(wild, None).alias(name) if name != "time_s" and wild.any() else values


def _in_order(trip_id: str, part: pl.DataFrame, where: str) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A trip's rows with times that increase, and a note where some repeated; a clock that runs back is an error."""
    time = part["time_s"].to_numpy()  # NaN where there is none
    if not np.isfinite(time).all():
        row = int(np.argmin(np.isfinite(time))) + 1
        raise LogError(f"{where}: trip {trip_id} has no time_s in its row {row}; give every row a time.")
    if np.abs(time).max() > border.LATEST_S:
        row = int(np.argmax(np.abs(time) > border.LATEST_S))
        raise LogError(
            f"{where}: trip {trip_id} has the time_s {time[row]:g}, which is not a plausible time; correct the times."
        )
    steps = np.diff(time)
    if (steps < 0).any():
        row = int(np.argmax(steps < 0)) + 1
        raise LogError(
            f"{where}: time runs backwards in trip {trip_id}, from {time[row - 1]:g} to {time[row]:g} s at its row {row + 1}; "
            f"sort the rows, or give each drive a trip_id of its own."
        )
    same = steps < border.SHORTEST_STEP_S
    if not same.any():
        return part, ()
    note = f"{int(same.sum())} rows repeat the time of the row before; the last of each is kept"
    return part.filter(pl.Series(np.append(~same, True))), (note,)


def _one_trip(trip_id: str, part: pl.DataFrame, where: str, notes: tuple[str, ...], hz: float | None) -> Readings:
    time = part["time_s"].to_numpy()
    series = {}
    for name in (*VALUES, *(COORDINATES if hz is None else ON_GRID)):
        if name in part.columns and part[name].null_count() < part.height:
            known = part[name].is_not_null().to_numpy()
            value = part[name].to_numpy()
            series[name] = (time, value) if known.all() else (time[known], value[known])
    if not series:
        raise LogError(f"{where}: all values of trip {trip_id} are missing; leave that trip out.")
    segment = (time, part["segment"].to_numpy()) if hz is not None else None
    truth = part.select("time_s", *truths(part)) if truths(part) else None
    return Readings(trip_id, series, NAME, notes, hz, segment, truth)
