"""How far another seed moves a comparison: t-anchor and the same ensemble without anchors, trained again with other seeds.

    python benchmarks/folds.py prepare --data DIR          # first
    python benchmarks/seeds.py --data DIR                  # the e-208 with seeds 1 and 2 -> benchmarks/results/seeds.csv

Each fold's settings are those that seed 0 chose (`folds_settings.csv`). A trip-paired interval of one training run knows of other
trips, not of other draws of the members; beside folds.csv (seed 0) these rows show both.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

from evband.job import members_of
from evband.training.loop import Trainer, run
from folds import load_fold, score
from results_file import write
from tasks import TASKS, trips_of

RESULTS = Path("benchmarks/results")


def chosen(task: str, fold: int) -> dict[str, float]:
    """What the inner folds chose for t-anchor."""
    with (RESULTS / "folds_settings.csv").open() as file:
        for row in csv.DictReader(file):
            if (row["task"], row["fold"], row["model"]) == (task, str(fold), "t-anchor"):
                return {name: float(row[name]) for name in ("beta", "trip_effect", "temperature")}
    raise SystemExit(f"folds_settings.csv has no fold {fold} of {task}; run benchmarks/folds.py first")


def both(task: str, number: int, seed: int) -> list[dict[str, Any]]:
    """Both methods of one fold, trained as one stack; rows of its test trips."""
    fold = load_fold(task, number, seed=seed, **chosen(task, number))
    members = members_of(fold.job, fold.settings)
    stack = members + [replace(member, temperature=0.0) for member in members]
    theta = run(Trainer(fold.job.architecture(fold.settings), fold.job.data, stack, fold.settings.training()))
    anchored, plain = theta.half().float().split(len(members))
    rows = score(fold, "t-anchor", fold.settings, anchored)
    rows += score(fold, "t-ensemble", replace(fold.settings, method="t-ensemble"), plain)
    return [{"seed": seed} | row for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--task", default="e208")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS / "seeds.csv")
    given = parser.parse_args()
    ids, rows = trips_of(TASKS[given.task], given.data).ids, []
    for seed in given.seeds:
        for number in range(5):
            rows += [row | {"trip_id": ids[int(row["trip_id"])]} for row in both(given.task, number, seed)]
            print(seed, number, flush=True)
    rounded = [{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    write(given.out, rounded, "one row a test trip, sums as in folds.csv")


if __name__ == "__main__":
    main()
