"""`read_trips`: any readable log in, clean trips out. The format is found by content, never by the file's name."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import COORDINATES, ON_GRID, VALUES, require
from evband.errors import EvbandError, FormatError, LogError, SettingsError
from evband.files import read_toml
from evband.logs import border, gridded, places, tidy
from evband.logs.cleaning import clean
from evband.logs.formats import excel, named_units, naming
from evband.logs.formats.text import UTF16, is_binary
from evband.logs.overlap import without_copies
from evband.terrain import Tiles
from evband.trips import Trip, Trips
from evband.trips.quality import Cleaning, Finding, Quality
from evband.trips.readings import Readings, ReadOptions, Series

_FLIPPED = ("power_kw", "battery_current_a")


def read_trips(
    source: Any,
    *,
    map: str | Path | Mapping[str, Any] | None = None,
    aliases: Mapping[str, Sequence[str]] | None = None,
    dbc: str | Path | None = None,
    hz: float | None = None,
    bridge_s: float = 0.0,
    lag: float = 0.0,
    cleaning: Cleaning | None = None,
    flip_power: bool = False,
    dem: str | Path | None = None,
    skipped: list[EvbandError] | None = None,
) -> Trips:
    """Trips from a path, a glob, a list of them, or a pandas, polars or pyarrow frame in our channel names.

    `map` describes a table in other names (a path to a TOML file, or the same as a dict); `aliases` adds names under
    which logs may know a channel; `hz` puts the trips on that grid, which bridges silences of up to `bridge_s`, with a model's `lag` (`evband.trips.grid`); `cleaning` says what is dropped as a fault;
    `flip_power` inverts the sign of power and current; `dem` is a folder of elevation tiles for logs that have coordinates but no elevation. An unreadable file or trip is an error, unless there is a list
    `skipped` to take it: then the rest is read, and an error only where nothing can be.

    >>> import polars as pl
    >>> read_trips(pl.DataFrame({"time_s": [0.0, 1.0, 2.0], "speed_kmh": [0.0, 3.0, 6.0]}))
    Trips(1 trips, 3 rows, as logged)
    """
    options = ReadOptions(aliases or {}, _mapping(map), Path(dbc) if dbc else None)
    cleaning = cleaning or Cleaning()
    tiles = None if dem is None else Tiles(dem)
    trips: list[Trip] = []
    taken: set[str] = set()
    files: list[int] = []
    for file, where, readings in _all_readings(source, options, skipped):
        try:
            trip = to_trip(readings, where, cleaning, flip_power)
            trip = trip if tiles is None else places.with_elevation(trip, tiles, where)
        except EvbandError as error:
            _skip(error, skipped)
            continue
        if trip.trip_id in taken:
            trip = replace(trip, trip_id=_free_id(where, trip.trip_id, taken))
        taken.add(trip.trip_id)
        trips.append(trip)
        files.append(file)
    trips = without_copies(trips, files, cleaning.copies)
    if hz is not None:
        trips = _on_grid(trips, hz, (cleaning.max_gap_s, bridge_s, lag), skipped)
    if skipped and not trips:
        raise LogError(f"None of {len(skipped)} logs can be read; the first error: {skipped[0]}")
    return Trips(trips)


def _on_grid(
    trips: list[Trip], hz: float, how: tuple[float, float, float], skipped: list[EvbandError] | None
) -> list[Trip]:
    gridded_trips = []
    for trip in trips:
        try:
            gridded_trips.append(trip.on_grid(hz, *how))
        except EvbandError as error:
            _skip(error, skipped)
    return gridded_trips


def _skip(error: EvbandError, skipped: list[EvbandError] | None) -> None:
    """Keep an error for later where that is asked for, else raise it."""
    if skipped is None:
        raise error
    skipped.append(error)


def to_trip(readings: Readings, where: str, cleaning: Cleaning, flip_power: bool = False) -> Trip:
    """One drive, cleaned and checked, with the report of what was found."""
    label = f"{where} (trip {border.valid_id(where, readings.trip_id)})"
    series = border.valid_series(label, readings.series)
    fixes = [series.pop(name) for name in COORDINATES if name in series]
    if not series:
        raise LogError(f"{label}: all values are missing; there is nothing to read in it.")
    require("speed_kmh", series, label)
    notes = readings.notes
    if flip_power:
        series = {name: (t, -v) if name in _FLIPPED else (t, v) for name, (t, v) in series.items()}
        notes = (*notes, "the sign of power and current was inverted (flip_power)")
    if readings.hz is not None:
        series, findings = gridded.limited(series, cleaning)
        require("speed_kmh", series, label)
        table = gridded.with_segments(_with_truth(_table(series), readings), readings, label)
        return Trip(readings.trip_id, table, readings.hz, Quality(readings.format, where, notes, tuple(findings)))
    series, findings = clean(series, cleaning)
    if readings.doubt:
        time = readings.series["speed_kmh"][0]
        findings.append(Finding("unit", "speed_kmh", len(time), time[0], time[-1], "kept", readings.doubt))
    if "speed_kmh" not in series:
        why = "; ".join(f.text for f in findings if f.channel in (None, "speed_kmh"))
        raise LogError(
            f"{label}: no speed is left after cleaning ({why}); keep what was dropped with --keep or --limit."
        )
    if "power_kw" in series and "power_kw" not in readings.series:
        notes = (*notes, "power rebuilt from current and voltage at the current's own instants")
    table = places.with_fixes(_with_truth(_table(series), readings), fixes)
    return Trip(readings.trip_id, table, None, Quality(readings.format, where, notes, tuple(findings)))


def _with_truth(table: pl.DataFrame, readings: Readings) -> pl.DataFrame:
    """The table with a simulation's truth beside it, where the log is a simulated one."""
    if readings.truth is None:
        return table
    return table.join(readings.truth, on="time_s", how="left", maintain_order="left")


def _table(series: Mapping[str, Series]) -> pl.DataFrame:
    """Channels read at instants of their own, as one table over all instants; null where a channel has no reading."""
    times = [s[0] for s in series.values()]
    shared = all(t is times[0] or np.array_equal(t, times[0]) for t in times) and bool(np.all(np.diff(times[0]) > 0))
    instants = times[0] if shared else _union(times)
    columns = {"time_s": pl.Series(instants, dtype=pl.Float64)}
    for name in (*VALUES, *ON_GRID):
        if name in series:
            time, value = series[name]
            if not shared:
                spread = np.full(len(instants), np.nan)
                spread[np.searchsorted(instants, time)] = value  # of readings at one instant the last stays
                value = spread
            columns[name] = pl.Series(np.asarray(value, np.float64), nan_to_null=True)
    return pl.DataFrame(columns)


def _union(times: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    """All distinct instants in order. A stable sort merges runs that are sorted already, far faster than `np.unique`."""
    joined = np.concatenate(times)
    joined.sort(kind="stable")
    distinct: NDArray[np.float64] = joined[np.append(True, np.diff(joined) > 0)]
    return distinct


def _all_readings(
    source: Any, options: ReadOptions, skipped: list[EvbandError] | None
) -> Iterable[tuple[int, str, Readings]]:
    if isinstance(source, str | Path) or not isinstance(source, list | tuple):
        source = [source]
    number = 0  # of a file or frame
    for one in source:
        if isinstance(one, str | Path):
            for path in paths_of(one):
                number += 1
                try:
                    found = read_file(path, options)
                except EvbandError as error:
                    _skip(error, skipped)
                    continue
                for readings in found:
                    yield number, str(path), readings
        else:
            number += 1
            for readings in tidy.frame_readings(to_polars(one, "a path, a glob"), "frame", "trip", options.aliases):
                yield number, "frame", readings


def to_polars(frame: Any, others: str) -> pl.DataFrame:
    """A user's frame as one of ours; an error names the `others` that can be read in its place."""
    import narwhals.stable.v1 as nw  # files do without

    try:
        table: pl.DataFrame = nw.from_native(frame, eager_only=True).to_polars()
        return table
    except TypeError as error:
        kind = type(frame).__name__
        raise SettingsError(
            f"An object of type {kind} cannot be read; give {others}, or a pandas, polars or pyarrow frame."
        ) from error


def paths_of(source: str | Path) -> list[Path]:
    path = Path(source)
    if os.path.isdir(path):  # unlike Path's own, these two do not raise in a directory that may not be looked into
        raise LogError(f"{path}: this is a directory; name its logs, for example '{path}/*.csv'.")
    if os.path.exists(path) or not glob.has_magic(str(source)):
        return [path]
    found = sorted(Path(name) for name in glob.glob(str(source), recursive=True))
    files = [name for name in found if not name.is_dir()]
    if not files:
        raise LogError(f"{source}: no file matches; check the path.")
    return files


def read_file(path: Path, options: ReadOptions) -> list[Readings]:
    """The drives in one file, or in all files of a zip archive."""
    data = border.log_bytes(path)
    packed = data.startswith(border.ZIP) and not excel.is_workbook(data)
    files = border.zipped(path, data) if packed else [(path, data)]
    return [readings for name, inner in files for readings in _read(name, inner, options)]


def _read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives in the bytes of a file, by the first format that recognises their content (or the user's --map)."""
    if excel.is_workbook(data):
        data = excel.to_csv(path, data)
    head = data[: border.HEAD]
    for module in formats(options):
        with (
            border.foreseen(path, module.NAME),
            np.errstate(over="ignore"),
        ):  # 1e308 in another unit: dropped as infinite
            if module.detect(head) or (module is named_units and module.detect(head, options.aliases)):
                readings: list[Readings] = module.read(path, data, options)
                return readings
    raise FormatError(f"{path}: {_unknown(path, head)}")


def _unknown(path: Path, head: bytes) -> str:
    """What to do with a file that no reader knows."""
    if head.startswith(b"\xd0\xcf\x11\xe0"):
        return "this is a workbook of Excel 97 to 2003; save it as .xlsx or as CSV."
    if is_binary(head) or head.startswith(b"%PDF"):
        return "this is a binary file of no known format; export the drive as CSV."
    coding = "utf-16" if head[:2] in UTF16 else "utf-8"
    begins = head.decode(coding, "replace").lstrip("\ufeff").strip().split("\n")[0][:80].strip()
    if not begins:
        return "this file is empty; export the drive again."
    if speed := named_units.bare_speed(head):
        return (
            f"its speed {speed!r} names no unit; add it with --alias 'speed_kmh={speed} (km/h)' (or mph, m/s), "
            f"or in the map that evband inspect {path} --write-map map.toml writes."
        )
    return (
        f'no reader knows this file, which begins "{begins}"; if it is a table, evband inspect {path} --write-map map.toml '
        "writes a first guess of its columns, to correct and to give with --map."
    )


def formats(options: ReadOptions) -> list[ModuleType]:
    """Every format, in the order in which they are asked; with a --map, only that."""
    from evband.logs import formats as known

    if options.map is not None:
        return [known.MAPPED]
    return [*known.FORMATS, tidy, known.LAST]


def _mapping(map: str | Path | Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if map is None or isinstance(map, Mapping):
        return map
    return read_toml(map, SettingsError, "map")


def _free_id(where: str, trip_id: str, taken: set[str]) -> str:
    """A name no other trip has: of a file of the same name in another folder that folder's, else the file's, else a number."""
    own, folder = naming.trip_id(Path(where)), Path(where).absolute().parent.name
    wanted = f"{folder}/{trip_id}" if own == trip_id else f"{own}:{trip_id}"
    free, number = wanted, 2
    while free in taken:
        free, number = f"{wanted}:{number}", number + 1
    return free
