"""What fitting the location apart from trip effects is worth, judged inside training trips.

    PYTHONPATH=src python -m benchmarks.measured.trip_effect [--members 30] [--processes 8]   # after folds.py prepare; GPU or CPU

The training trips of outer folds 0 and 3 are cut into five again; three of the five are tested in turn. Default settings
(beta 0.5, temperature 0.1, no search), calibrated, rows after warm-up. One row per log, effect and cut: sums over its n rows.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measured import folds
from evband.training.plan import assign_folds, repeats, train

EFFECTS = (0.0, 0.5, 0.8)
OUTER, INNER = (0, 3), (0, 1, 2)
KEY = ("task", "trip_effect", "outer", "inner")
SUMS = ("n", "sse", "sae", "crps", "log_score", "covered", "width")
HEADER = "# PYTHONPATH=src python -m benchmarks.measured.trip_effect; seed 0, 30 members; kW"


def inside(arrays: folds.Arrays, outer: int) -> folds.Arrays:
    """The arrays of an outer fold's training trips alone, with five folds of their own."""
    kept = np.flatnonzero(arrays["fold"] != outer)
    rows = np.isin(arrays["trip"], kept)
    part = {k: v[rows] if v.ndim and len(v) == len(rows) else v for k, v in arrays.items()}
    part["trip"] = np.searchsorted(kept, part["trip"])
    speed = [part["signal.speed_kmh"][part["trip"] == trip] for trip in range(len(kept))]
    part["fold"] = assign_folds(np.bincount(part["trip"]), repeats(speed))
    return part


def work(item: tuple[str, float, int, int, dict[str, int]]) -> list[dict[str, Any]]:
    name, effect, outer, inner, chosen = item
    torch.set_num_threads(2)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    fold = folds.make_fold(name, inner, inside(folds.load_arrays(name), outer), trip_effect=effect, **chosen)
    theta, _ = train(fold.job, fold.settings, device)
    scored = folds.score(fold, "t-anchor", fold.settings, theta.half().float().to(device))
    return [summed(dict(zip(KEY, item, strict=False)), scored)]


def summed(head: dict[str, Any], trips: Iterable[dict[str, Any]]) -> dict[str, Any]:
    trips = list(trips)
    return head | {name: sum(float(trip[name]) for trip in trips) for name in SUMS}


def write(rows: Iterable[dict[str, Any]], out: Path) -> None:
    with out.open("w", newline="") as file:
        file.write(HEADER + "\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*KEY, *SUMS])
        for row in sorted(rows, key=lambda r: tuple(r[k] for k in KEY)):
            writer.writerow([*(row[k] for k in KEY), int(row["n"]), *(f"{row[k]:.6g}" for k in SUMS[1:])])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = Path(os.environ.get("OUT", "benchmarks/results"))
    parser.add_argument("--out", type=Path, default=where / "trip_effect.csv")
    parser.add_argument("--tasks", nargs="+", default=folds.NAMES)
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    chosen = {"members": given.members}
    items = [(t, e, o, i, chosen) for t in given.tasks for e in EFFECTS for o in OUTER for i in INNER]
    rows: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(given.processes) as pool:
        for done in pool.imap_unordered(work, items):
            rows += done
            write(rows, given.out)
            print(done[0], flush=True)


if __name__ == "__main__":
    main()
