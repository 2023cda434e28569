"""Which cars there are in a lake of logs, and how to read one: hive-style folders, a column, or a file or folder per car.

Files lie in folders or behind any URL that fsspec knows (`s3://`, `gs://`, `file://` ...); those are fetched whole.
"""

from __future__ import annotations

import glob
import hashlib
import mmap
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import polars as pl

from evband.errors import EvbandError, LogError, require
from evband.logs.pages import checked_rows
from evband.terrain.tiles import Tiles
from evband.trips import Trips

KINDS = (".parquet", ".csv", ".gz", ".txt", ".xlsx", ".mf4", ".dat")
TABLES = KINDS[:2]  # may hold several cars
MOST_CARS = 1_000_000
MOST_ROWS = 5_000_000  # of one car in one run: two months at 1 Hz
MOST_BYTES = 2 << 30  # of a file that is one car's, or comes from a URL
ROW_BYTES = 8  # of a row in a packed table, at least
LARGE_BYTES = 256 << 20  # from which a shared file is filtered as it streams by
USUAL = "vehicle_id"  # column or key of folders that names cars
NOBODY = ""  # id of rows that name no car
DAMAGE = (pl.exceptions.PolarsError, OSError, ValueError, pl.exceptions.PanicException)


@dataclass(frozen=True)
class Car:
    """One car and where its rows are."""

    vehicle_id: str
    own: tuple[str, ...] = ()  # files
    shared: tuple[str, ...] = ()  # with other cars
    column: str | None = None  # that names the vehicles there
    rows: int = 0  # in them
    dem: str | None = None  # folder of elevation tiles for its coordinates

    @property
    def size(self) -> int:
        """Rows, about: those of files of its own by their bytes, 0 behind URLs."""
        local = [name for name in self.own if os.path.isfile(name)]
        return self.rows + sum(map(os.path.getsize, local)) // ROW_BYTES

    @property
    def file_name(self) -> str:
        """Safe whatever the id is."""
        name = quote(self.vehicle_id, safe=" ").replace("~", "%7E")
        return (f"%2E{name[1:]}" if name.startswith(".") else name) + ".evband"  # no hidden file

    @property
    def seed(self) -> int:
        """Members of different cars are different draws."""
        return int.from_bytes(hashlib.sha256(self.vehicle_id.encode()).digest()[:4], "little")

    @property
    def stamp(self) -> str:
        """Changes when a file of the car, or the folder of tiles, does."""
        facts = [(name, *_size_and_time(name)) for name in (*self.own, *self.shared)]
        return hashlib.sha256(repr((self.column, facts, self.dem)).encode()).hexdigest()[:16]


def find_cars(logs: Iterable[str], by: str, own: str = "file", dem: str | Path | None = None) -> list[Car]:
    """All cars of these files, folders, globs or URLs, in the order of their ids; a table that names none is that of a car
    with a file or a folder of its `own`. A `by` other than the usual one must name some."""
    tiles = None if dem is None else str(Tiles(dem).folder.absolute())  # a folder without tiles is no car's fault
    owned: dict[str, list[str]] = {}
    shared: dict[str, list[str]] = {}
    rows: dict[str, int] = {}
    named = False  # by folders
    for path in _files(logs):
        pieces = PurePosixPath(path.replace(os.sep, "/"))
        hive = [piece.partition("=")[2] for piece in pieces.parts if piece.startswith(f"{by}=")]
        if hive:
            owned.setdefault(hive[-1], []).append(path)
            named = True
            continue
        ids = _ids(path, by)
        if ids is None:
            name = pieces.stem if own == "file" else pieces.parent.name or Path(path).absolute().parent.name
            owned.setdefault(name, []).append(path)
        for name, count in (ids or {}).items():
            shared.setdefault(name, []).append(path)
            rows[name] = rows.get(name, 0) + count
    if by != USUAL and not (named or shared):
        raise LogError(f"none of these logs has a column or a folder of the name {by}; correct --by.")
    cars = [
        Car(name, tuple(owned.get(name, ())), tuple(shared.get(name, ())), by if name in shared else None, rows.get(name, 0), tiles)
        for name in {**owned, **shared}
    ]  # fmt: skip
    if not 0 < len(cars) <= MOST_CARS:
        raise LogError(f"there are {len(cars)} cars in these logs; give 1 to {MOST_CARS}.")
    return sorted(cars, key=lambda car: car.vehicle_id)


def _files(logs: Iterable[str]) -> list[str]:
    found: list[str] = []
    for name in logs:
        if "://" in name:
            files = _remote_files(name)
        elif (path := Path(name)).is_dir():
            files = [str(file) for file in sorted(path.rglob("*")) if file.suffix.lower() in KINDS and file.is_file()]
        else:
            files = [name] if path.exists() else sorted(glob.glob(name, recursive=True))
        if not files:
            raise LogError(f"{name}: no log is there; check the path.")
        found += files
    return found


def _remote(url: str) -> tuple[Any, str]:
    """fsspec's file system of a URL, and the path on it."""
    require("fsspec", "logs behind a URL")
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as problem:
        raise LogError(f"{url}: it cannot be opened ({problem}); install what its scheme needs.") from None
    return system, path


def _remote_files(url: str) -> list[str]:
    system, path = _remote(url)
    try:
        found = system.glob(path) if glob.has_magic(path) else [path] if system.isfile(path) else system.find(path)
    except OSError as problem:
        raise LogError(f"{url}: it cannot be listed ({problem}); check the URL.") from None
    return [system.unstrip_protocol(file) for file in sorted(found) if file.lower().endswith(KINDS)]


def _size_and_time(name: str) -> tuple[int, str]:
    if "://" not in name:
        stat = os.stat(name)
        return stat.st_size, str(stat.st_mtime_ns)
    system, path = _remote(name)
    info = system.info(path)
    changed = next((info[key] for key in ("ETag", "mtime", "LastModified", "created") if key in info), "")
    return int(info.get("size") or 0), str(changed)


def _scan(name: str) -> pl.LazyFrame:
    source: Any = name
    table = name.lower().endswith(".parquet")
    if "://" in name:
        if _size_and_time(name)[0] > MOST_BYTES:
            raise LogError(f"{name}: it is larger than {MOST_BYTES >> 30} GB; cut it into partitions.")
        system, path = _remote(name)
        source = system.cat_file(path)
        if table:
            checked_rows(source)
    elif table:
        with open(name, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
            checked_rows(pages)
    return pl.scan_parquet(source) if table else pl.scan_csv(source)


def _collected(frame: pl.LazyFrame, path: str) -> pl.DataFrame:
    """What is asked of a file, a piece of it at a time where it is large."""
    return frame.collect(engine="streaming" if _size_and_time(path)[0] > LARGE_BYTES else "auto")


def _ids(path: str, by: str) -> dict[str, int] | None:
    """Rows of each vehicle that a table names; None where it names none, or cannot be read (the car's own turn tells why)."""
    if not path.lower().endswith(TABLES):
        return None
    try:
        frame = _scan(path)
        if by not in frame.collect_schema().names():
            return None
        found = _collected(frame.group_by(pl.col(by).cast(pl.String).fill_null(NOBODY)).len(), path)
    except (*DAMAGE, EvbandError):
        return None
    return dict(sorted(found.iter_rows()))


def read_cars(
    cars: list[Car], hz: float, bridge_s: float, notes: dict[str, list[str]] | None = None
) -> dict[str, Trips | EvbandError]:
    """Trips of each car, or why there are none; a file that several cars share is read once. What of a car's logs could not be
    read goes into `notes`."""
    notes = {} if notes is None else notes
    frames: dict[str, list[pl.DataFrame] | EvbandError] = {car.vehicle_id: [] for car in cars}
    for path in sorted({path for car in cars for path in car.shared}):
        mine = [car for car in cars if path in car.shared and car.rows <= MOST_ROWS and car.vehicle_id != NOBODY]
        for name, part in _rows_of(path, mine):
            before = frames[name]
            if isinstance(part, EvbandError):
                frames[name] = part
            elif isinstance(before, list):
                before.append(part)
    found: dict[str, Trips | EvbandError] = {}
    for car in cars:
        skipped: list[EvbandError] = []
        found[car.vehicle_id] = _trips(car, frames[car.vehicle_id], hz, bridge_s, skipped)
        if skipped:
            why = str(skipped[0]).rstrip(".")
            notes[car.vehicle_id] = [f"{len(skipped)} of its logs or trips cannot be read; the first error: {why}"]
    return found


def _rows_of(path: str, cars: Sequence[Car]) -> list[tuple[str, pl.DataFrame | EvbandError]]:
    """Of a file that several cars share, the rows of these."""
    if not cars:
        return []
    column, names = str(cars[0].column), [car.vehicle_id for car in cars]
    try:
        wanted = _scan(path).with_columns(pl.col(column).cast(pl.String)).filter(pl.col(column).is_in(names))
        rows = _collected(wanted, path)
    except (*DAMAGE, EvbandError) as problem:
        why = str(problem).strip().splitlines() or [type(problem).__name__]
        broken = LogError(f"{path}: the partition cannot be read ({why[0]}); write it again.")
        return [(name, broken) for name in names]
    return [(str(name), part) for (name,), part in rows.partition_by(column, as_dict=True, include_key=False).items()]


def _trips(
    car: Car, frames: list[pl.DataFrame] | EvbandError, hz: float, bridge_s: float, skipped: list[EvbandError]
) -> Trips | EvbandError:
    from evband.logs.reading import read_trips

    try:
        if isinstance(frames, EvbandError):
            return frames
        if car.vehicle_id == NOBODY:
            raise LogError(f"{car.rows} rows name no car; fill their {car.column or 'vehicle'} column.")
        if car.rows > MOST_ROWS:
            raise LogError(f"the car has {car.rows} rows, {MOST_ROWS} are the most in one run; give them in portions.")
        if any(_size_and_time(file)[0] > MOST_BYTES for file in car.own):
            raise LogError(f"a file of the car is larger than {MOST_BYTES >> 30} GB; cut it into portions.")
        own: list[Any] = [_scan(file).collect() if "://" in file else file for file in car.own]
        return read_trips([*frames, *own], hz=hz, bridge_s=bridge_s, dem=car.dem, skipped=skipped)
    except EvbandError as problem:
        return problem
    except DAMAGE as problem:
        return LogError(
            f"{(*car.own, *car.shared)[0]}: it cannot be read ({str(problem).splitlines()[0]}); check the file."
        )
