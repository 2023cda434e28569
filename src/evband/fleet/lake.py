"""Which cars there are in a folder of logs, and how to read one: hive-style folders, a column, or a file or folder per car."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import polars as pl

from evband.errors import EvbandError, LogError
from evband.trips import Trips

KINDS = (".parquet", ".csv", ".gz", ".txt", ".xlsx", ".mf4", ".dat")
TABLES = KINDS[:2]  # may hold several cars
MOST_CARS = 1_000_000


@dataclass(frozen=True)
class Car:
    """One car and where its rows are; `column` names the vehicles in files that several cars share."""

    vehicle_id: str
    files: tuple[str, ...]
    column: str | None = None

    @property
    def file_name(self) -> str:
        """Safe whatever the id is."""
        return quote(self.vehicle_id, safe=" ").replace("~", "%7E").removeprefix(".") + ".evband"

    @property
    def seed(self) -> int:
        """Members of different cars are different draws."""
        return int.from_bytes(hashlib.sha256(self.vehicle_id.encode()).digest()[:4], "little")

    @property
    def stamp(self) -> str:
        """Changes when a file of the car does."""
        facts = [(name, os.stat(name).st_size, os.stat(name).st_mtime_ns) for name in self.files]
        return hashlib.sha256(repr((self.column, facts)).encode()).hexdigest()[:16]


def find_cars(logs: Iterable[str], by: str, own: str = "file") -> list[Car]:
    """All cars of these files, folders or globs, in the order of their ids; a table that names none is that of a car with
    a file or a folder of its `own`."""
    owned: dict[str, list[str]] = {}
    shared: dict[str, list[str]] = {}
    for path in _files(logs):
        hive = [piece.partition("=")[2] for piece in path.parts if piece.startswith(f"{by}=")]
        if hive:
            owned.setdefault(hive[-1], []).append(str(path))
            continue
        ids = _ids(path, by)
        if ids is None:
            name = path.stem if own == "file" else path.absolute().parent.name
            owned.setdefault(name, []).append(str(path))
        for name in ids or ():
            shared.setdefault(name, []).append(str(path))
    cars = [Car(name, tuple(files)) for name, files in owned.items() if name not in shared]
    cars += [Car(name, tuple(files), by) for name, files in shared.items()]
    if not 0 < len(cars) <= MOST_CARS:
        raise LogError(f"there are {len(cars)} cars in these logs; give 1 to {MOST_CARS}.")
    return sorted(cars, key=lambda car: car.vehicle_id)


def _files(logs: Iterable[str]) -> list[Path]:
    found: list[Path] = []
    for name in logs:
        path = Path(name)
        if path.is_dir():
            files = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in KINDS and file.is_file()]
        else:
            files = [path] if path.exists() else [Path(f) for f in sorted(glob.glob(name, recursive=True))]
        if not files:
            raise LogError(f"{name}: no log is there; check the path.")
        found += files
    return found


def _scan(path: str | Path) -> pl.LazyFrame:
    return pl.scan_parquet(path) if Path(path).suffix.lower() == ".parquet" else pl.scan_csv(path)


def _ids(path: Path, by: str) -> list[str] | None:
    """Vehicles that a table names; None where it names none, or cannot be read as one (the car's own turn tells why)."""
    if path.suffix.lower() not in TABLES:
        return None
    try:
        frame = _scan(path)
        if by not in frame.collect_schema().names():
            return None
        found = frame.select(pl.col(by).cast(pl.String).unique()).collect()[by].drop_nulls()
    except (pl.exceptions.PolarsError, OSError):
        return None
    return sorted(found.to_list())


def read_cars(cars: list[Car], hz: float, bridge_s: float) -> dict[str, Trips | EvbandError]:
    """Trips of each car, or why there are none; a file that several cars share is read once."""
    from evband.logs.reading import read_trips

    frames: dict[str, list[pl.DataFrame]] = {car.vehicle_id: [] for car in cars}
    for path in sorted({path for car in cars if car.column for path in car.files}):
        column = next(car.column for car in cars if car.column and path in car.files)
        names = [car.vehicle_id for car in cars if path in car.files]
        rows = _scan(path).with_columns(pl.col(column).cast(pl.String)).filter(pl.col(column).is_in(names)).collect()
        for (name,), part in rows.partition_by(column, as_dict=True, include_key=False).items():
            frames[str(name)].append(part)
    found: dict[str, Trips | EvbandError] = {}
    for car in cars:
        try:
            source = frames[car.vehicle_id] if car.column else list(car.files)
            found[car.vehicle_id] = read_trips(source, hz=hz, bridge_s=bridge_s, skipped=[])
        except EvbandError as problem:
            found[car.vehicle_id] = problem
    return found
