"""Held-out and out-of-bag predictions of whole trips on ten logs, computed once, so that error models can be studied in seconds.

    python -m benchmarks.measured.trip_drives prepare --data DIR                   # signals and plans as arrays -> .bench/trips/
    PYTHONPATH=src python -m benchmarks.measured.trip_drives train --processes 7   # GPU machine: torch, numpy, scipy, numba only

Random folds are those of splits.csv where it has the log, else dealt out with seed 0, legs of one drive together. `time` trains on
the first two thirds of a log's drives in time order. `base` has no cabin power among its inputs, `hvac` has. Default settings, 30
members, seed 0. A predicted file holds, of every row, the ensemble's mean and least squares, and of every 10 s the members' deviations.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from evband.energy.drives import Drive

HERE = Path(".bench/trips")
BLOCK_S = 10.0
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Log:
    files: str
    hz: float
    features: str
    folds: str | None = None  # its name in splits.csv
    cabin: bool = False
    plannable: bool = True


MOTION, HILLS = "speed_kmh,acceleration_ms2", "speed_kmh,acceleration_ms2,elevation_m"
I3 = ("bmw_i3_road/*.parquet", 1.0)
LOGS = {
    "i3_torque": Log(*I3, f"{MOTION},motor_torque_nm,elevation_m,ambient_temp_c", "bmw_i3_road", True, False),
    "i3_motion": Log(*I3, f"{HILLS},ambient_temp_c", "bmw_i3_road", True),
    "tesla_road": Log("tesla_model3_road/*.parquet", 1.0, f"{HILLS},ambient_temp_c", "tesla_model3_road"),
    "e208": Log("peugeot_e208_carscanner/raw/*.csv.gz", 0.5, f"{MOTION},ambient_temp_c", "peugeot_e208_carscanner"),
    "ved_10": Log("fleet/ved_leaf_10.parquet", 0.5, f"{MOTION},ambient_temp_c", None, True),
    "ved_455": Log("fleet/ved_leaf_455.parquet", 0.5, f"{MOTION},ambient_temp_c", None, True),
    **{
        f"cc_{place}": Log(f"fleet/chargecar_{place}.parquet", 0.5, HILLS)
        for place in ("pittsburgh", "georgia", "unknown", "belmont")
    },
}


def splits_of(log: str) -> list[str | int]:
    """The outer folds of a log, and `time`."""
    with np.load(HERE / f"{log}.npz") as file:
        return [*range(int(file["fold"].max()) + 1), "time"]


@lru_cache(None)
def arrays_of(name: str) -> Arrays:
    with np.load(HERE / f"{name}.npz") as file:
        return {k: file[k] for k in file.files}


def save(path: Path, arrays: Arrays) -> None:
    np.savez_compressed(path, allow_pickle=False, **arrays)


class Drives:
    """What one held-out fold predicted, as drives; fewer `members` are the first of them."""

    def __init__(self, log: str, split: str | int, variant: str, members: int = 30) -> None:
        with np.load(HERE / "predicted" / f"{log}@{split}@{variant}.npz") as file:
            self._found = {k: file[k] for k in file.files}
        self.log, self._arrays, self._members = log, arrays_of(log), members
        self.planned = "plan_test.trip" in self._found
        self.info: dict[str, Any] = json.loads(str(self._found["info"]))

    def of(self, part: str) -> list[Drive]:
        """`oob`: training trips by members that left them out; `test`: held-out trips by all members."""
        a, found = self._arrays, self._found
        trips, path = found[f"{part}.trip"].astype(int), found["ls.oob" if part == "oob" else "ls.test"].astype(float)
        of_path = found["ls.oob_trip"].astype(int) if part == "oob" else trips
        mean = found[f"{part}.mean"].astype(float)
        drives = []
        for trip, which in _each(trips):
            rows = a["trip"] == trip
            deviation = self._blocks(part, "dev", which, trips)
            drives.append(_drive(a, trip, rows, mean[which], deviation, self._blocks(part, "noise", which, trips), found[f"{part}.outside"][which], a["y"][rows].astype(float), path[of_path == trip]))  # fmt: skip
        return drives

    def plans(self, part: str) -> dict[str, Drive]:
        """The same trips as a router would have planned them, by trip."""
        a, found, name = arrays_of(f"{self.log}.plan") | {"hz": self._arrays["hz"]}, self._found, f"plan_{part}"
        trips = found[f"{name}.trip"].astype(int)
        drives = {}
        for trip, which in _each(trips):
            rows = a["trip"] == trip
            mean, noise, path, deviation = (self._blocks(name, key, which, trips) for key in ("mean", "noise", "ls", "dev"))  # fmt: skip
            drives[str(trip)] = _drive(a, trip, rows, mean, deviation, noise, found[f"{name}.outside"][which], np.full(len(mean), np.nan), path)  # fmt: skip
        return drives

    def _blocks(self, part: str, key: str, which: slice, trips: np.ndarray) -> np.ndarray:
        """Values of 10 s blocks at every row of one trip."""
        rows = round(BLOCK_S * float(self._arrays["hz"]))
        before = sum(-(-(s.stop - s.start) // rows) for _, s in _each(trips) if s.start < which.start)
        at = before + np.arange(which.stop - which.start) // rows
        values = self._found[f"{part}.{key}"].astype(np.float64)[..., at]
        few = max(1, self._members // 5) if part.endswith("oob") else self._members
        return np.asarray(values[:few] if key == "dev" else values)


def _each(trips: np.ndarray) -> list[tuple[int, slice]]:
    first = np.flatnonzero(np.append(True, np.diff(trips) != 0))
    return [(int(trips[a]), slice(int(a), int(b))) for a, b in zip(first, [*first[1:], len(trips)], strict=True)]


def _drive(a: Arrays, trip: int, rows: np.ndarray, mean: np.ndarray, deviation: np.ndarray, noise: np.ndarray, outside: np.ndarray, power: np.ndarray, path: np.ndarray) -> Drive:  # fmt: skip
    from evband.energy.drives import Drive  # its package needs tables, which a GPU machine may not have

    speed = np.maximum(np.nan_to_num(a["signal.speed_kmh"][rows].astype(float)), 0.0)
    grade = a.get("signal.elevation_m")
    climb = None if grade is None else np.nan_to_num(grade[rows].astype(float)) * speed / 3.6
    members = mean + deviation
    return Drive(str(trip), float(a["hz"]), members.mean(0), members, noise, outside, speed, power, path, climb)


def train_all(given: argparse.Namespace) -> None:
    """Fit every (log, split, variant) that has no file yet, the longest first."""
    from benchmarks.measured.trip_fits import work

    (HERE / "predicted").mkdir(parents=True, exist_ok=True)
    order = ["tesla_road", "ved_455", "i3_motion", "i3_torque", "ved_10", *(n for n in LOGS if n.startswith("cc_")), "e208"]  # fmt: skip
    todo = [
        (log, split, variant)
        for variant in given.variants
        for log in order
        if log in given.logs and (variant == "base" or LOGS[log].cabin)
        for split in splits_of(log)
        if str(split) in given.splits or not given.splits
    ]
    items = [(*item, given.members, time.time() + given.seconds) for item in todo]
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for line in pool.imap_unordered(work, items):
            print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    preparing = verbs.add_parser("prepare")
    preparing.add_argument("--data", type=Path, required=True)
    training = verbs.add_parser("train")
    training.add_argument("--logs", nargs="+", default=list(LOGS))
    training.add_argument("--splits", nargs="*", default=[], help="all unless given: time, 0, 1, ...")
    training.add_argument("--variants", nargs="+", default=["base", "hvac"])
    training.add_argument("--members", type=int, default=30)
    training.add_argument("--processes", type=int, default=1)
    training.add_argument("--seconds", type=float, default=36000.0)
    given = parser.parse_args()
    if given.verb == "train":
        train_all(given)
    else:
        from benchmarks.measured.trip_signals import prepare  # needs tables

        prepare(given.data)


if __name__ == "__main__":
    main()
