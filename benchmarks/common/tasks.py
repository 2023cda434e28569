"""The five measured tasks: which log, which features, which grid, and the folds of splits.csv."""

from __future__ import annotations

import csv
import functools
from dataclasses import dataclass
from pathlib import Path

import evband
from evband.trips import Trips


@dataclass(frozen=True)
class Task:
    name: str
    log: str  # as named in splits.csv
    files: str  # under the data folder
    hz: float
    features: str  # of PowerModel and the rivals


TASKS = {
    task.name: task
    for task in (
        Task("i3_torque", "bmw_i3_road", "bmw_i3_road/*.parquet", 1.0, "auto"),
        Task(
            "i3_motion",
            "bmw_i3_road",
            "bmw_i3_road/*.parquet",
            1.0,
            "speed_kmh,acceleration_ms2,elevation_m,ambient_temp_c",
        ),
        Task("tesla_road", "tesla_model3_road", "tesla_model3_road/*.parquet", 1.0, "auto"),
        Task("tesla_dyno", "tesla_model3_dyno", "tesla_model3_dyno/*.parquet", 1.0, "auto"),
        Task("e208", "peugeot_e208_carscanner", "peugeot_e208_carscanner/raw/*.csv.gz", 0.5, "auto"),
    )
}


@functools.lru_cache(maxsize=2)
def load(data: Path, log_files: str, hz: float) -> Trips:
    return evband.read_trips(str(data / log_files)).on_grid(hz)


def trips_of(task: Task, data: Path) -> Trips:
    """All trips of a task on its grid."""
    return load(data, task.files, task.hz)


def folds_of(task: Task, data: Path) -> dict[str, int]:
    """trip_id -> fold 0-4."""
    with (data / "splits.csv").open() as file:
        return {row["trip_id"]: int(row["fold"]) for row in csv.DictReader(file) if row["log"] == task.log}


def split(task: Task, data: Path, fold: int) -> tuple[Trips, Trips]:
    """(train, test) of one outer fold."""
    trips, folds = trips_of(task, data), folds_of(task, data)
    missing = [t for t in trips.ids if t not in folds]
    assert not missing, f"{task.name}: trips without a fold: {missing[:3]}"
    return (
        trips.subset(t for t in trips.ids if folds[t] != fold),
        trips.subset(t for t in trips.ids if folds[t] == fold),
    )
