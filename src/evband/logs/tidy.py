"""Tidy tables in our channel names: CSV, Parquet, or a frame in memory."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import polars as pl

from evband.channels import EDGES, VALUES, require
from evband.errors import LogError
from evband.logs.readings import Readings, ReadOptions

NAME = "tidy table"

_PARQUET = b"PAR1"


def detect(head: bytes) -> bool:
    """Parquet, or a header line with `time_s` and one of our channels in it."""
    if head.startswith(_PARQUET):
        return True
    names = {name.strip(' "\r') for name in _header(head).replace(";", ",").replace("\t", ",").split(",")}
    return "time_s" in names or len(names & set(VALUES)) >= 2


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """All trips of a tidy file."""
    return frame_readings(parse(path, data), str(path), path.name.split(".")[0])


def parse(path: Path, data: bytes) -> pl.DataFrame:
    """The file's table, whatever its columns are called."""
    try:
        if data.startswith(_PARQUET):
            return pl.read_parquet(io.BytesIO(data))
        header = _header(data[:65536])
        other = max(";", "\t", key=header.count)
        if header.count(other) > header.count(","):
            raise LogError(
                f"{path}: its columns are separated by {other!r}, a tidy table's by commas; "
                f"write it with commas or describe it in a --map file."
            )
        return pl.read_csv(data, infer_schema_length=10_000, null_values=["", "NA", "NaN", "nan", "null"])
    except pl.exceptions.PolarsError as error:
        reason = str(error).strip().splitlines()[0].rstrip(".")
        raise LogError(f"{path}: the table cannot be parsed ({reason}); check that it is whole.") from error


def _header(head: bytes) -> str:
    return head.removeprefix(b"\xef\xbb\xbf").split(b"\n", 1)[0].decode("utf-8", "replace")


def frame_readings(frame: pl.DataFrame, where: str, default_id: str) -> list[Readings]:
    """The trips of a frame in our names. Columns that are no channels of ours are never used."""
    for needed in ("time_s", "speed_kmh"):
        require(needed, frame.columns, where)
    ours = (*VALUES, *EDGES) if "segment" in frame.columns else VALUES  # a grid's edge speeds come along with it
    channels = [name for name in ours if name in frame.columns]
    ignored = [name for name in frame.columns if name not in (*ours, "time_s", "trip_id", "segment")]
    notes = (f"columns that are no channels were ignored: {', '.join(ignored)}",) if ignored else ()
    numbers = frame.select([_number(frame, name, where) for name in ("time_s", *channels)])
    if "segment" in frame.columns:
        numbers = numbers.with_columns(frame["segment"].cast(pl.Int32))
    ids = (
        frame["trip_id"].cast(pl.String)
        if "trip_id" in frame.columns
        else pl.repeat(default_id, frame.height, eager=True)
    )
    if ids.null_count():
        raise LogError(f"{where}: {ids.null_count()} rows have no trip_id; give every row one, or drop the column.")
    if not frame.height:
        raise LogError(f"{where}: it has a header but no rows; there is no trip in it.")
    numbers = numbers.with_columns(ids.alias("trip_id"))
    parts = numbers.partition_by("trip_id", maintain_order=True, as_dict=True, include_key=False)
    return [_one_trip(str(key[0]), part, where, notes) for key, part in parts.items()]


def _number(frame: pl.DataFrame, name: str, where: str) -> pl.Series:
    """A column as Float64, NaN and infinities as null."""
    column = frame[name]
    if name == "time_s" and column.dtype == pl.Float32:
        column = column.cast(pl.String)  # 0.1 as a 32-bit float is 0.1, not 0.10000000149
    if not (column.dtype.is_numeric() or column.dtype in (pl.String, pl.Null, pl.Boolean)):
        raise LogError(f"{where}: the column {name} holds {column.dtype}, not numbers; convert it first.")
    number = column.cast(pl.Float64, strict=False)
    bad = number.is_null() & column.is_not_null()
    if bad.any():
        row = int(bad.arg_true()[0])
        raise LogError(
            f"{where}: {name} has {column[row]!r} in row {row + 1}, which is no number; correct or empty that cell."
        )
    return number.set(~number.is_finite(), None).alias(name) if name != "time_s" else number


def _one_trip(trip_id: str, part: pl.DataFrame, where: str, notes: tuple[str, ...]) -> Readings:
    time = part["time_s"].fill_null(float("nan")).to_numpy()
    if not np.isfinite(time).all():
        row = int(np.argmin(np.isfinite(time))) + 1
        raise LogError(f"{where}: trip {trip_id} has no time_s in its row {row}; give every row a time.")
    steps = np.diff(time)
    if (steps < 0).any():
        row = int(np.argmax(steps < 0)) + 1
        raise LogError(
            f"{where}: time runs backwards in trip {trip_id}, from {time[row - 1]:g} to {time[row]:g} s at its row {row + 1}; "
            f"sort the rows, or give each drive a trip_id of its own."
        )
    if (steps == 0).any():
        again = int((steps == 0).sum())
        notes = (*notes, f"{again} rows repeat the time of the row before; the last of each is kept")
        part = part.filter(pl.Series(np.append(steps > 0, True)))
        time = part["time_s"].to_numpy()
    hz = None
    if "segment" in part.columns and len(time) > 1:
        hz = float(np.round(1.0 / np.min(np.diff(time)), 6))
    series = {}
    for name in part.columns:
        if name in (*VALUES, *EDGES) and part[name].null_count() < part.height:
            known = part[name].is_not_null().to_numpy()
            value = part[name].to_numpy()
            series[name] = (time, value) if known.all() else (time[known], value[known])
    if not series:
        raise LogError(f"{where}: all values of trip {trip_id} are missing; leave that trip out.")
    segment = part["segment"].to_numpy() if hz is not None else None
    return Readings(trip_id, series, NAME, notes, hz, segment)
