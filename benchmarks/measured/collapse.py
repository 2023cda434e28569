"""What one network in place of thirty costs: distillation and weight averaging, on held-out trips and away from them.

    python -m benchmarks.measured.collapse --data ../shared/data [--folds 0 1 2 3 4] [--members 30]

BMW i3 with torque, folds of splits.csv. A model of `.bench/models` (benchmarks/measured/folds.py) is taken where there is one, else
one is fitted. `times` scales every input channel of the test trips: 1 = as driven, others lie off the training
distribution, where an ensemble's epistemic part grows and a distilled one need not.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

import evband
from benchmarks.common.results_file import MODELS, Row, write
from benchmarks.common.tasks import TASKS, split
from evband.channels import EDGES
from evband.export.collapse import average, cost, distill
from evband.model import PowerModel
from evband.trips import Trips

TIMES = (1.0, 1.25, 1.5, 2.0, 3.0)


def ensemble(data: Path, fold: int, members: int) -> PowerModel:
    ready = MODELS / f"i3_torque_{fold}.evband"
    if ready.exists():
        return evband.load(ready)
    train, _ = split(TASKS["i3_torque"], data, fold)
    return PowerModel(members=members).fit(train)


def scaled(model: PowerModel, trips: Trips, times: float) -> Trips:
    """The trips with every input channel (and the speeds at the bins' edges) multiplied."""
    names = {*model.feature_map_.channels, *EDGES}
    return Trips(
        replace(trip, table=trip.table.with_columns(pl.col(c) * times for c in names if c in trip.table.columns))
        for trip in trips
    )


def rows_of(data: Path, fold: int, members: int) -> list[dict[str, Any]]:
    train, test = split(TASKS["i3_torque"], data, fold)
    model = ensemble(data, fold, members)
    began = time.perf_counter()
    student = distill(model, train)
    seconds = time.perf_counter() - began
    rows = []
    for how, one in (("distill", student), ("average", average(model))):
        for times in TIMES:
            trips = scaled(model, test, times)
            before, after = model.predict(trips), one.predict(trips)
            price = cost(before, after)
            assert price.crps_kw is not None
            rows.append(
                {
                    "fold": fold,
                    "members": len(model.theta_),
                    "how": how,
                    "times": times,
                    "crps_ensemble_kw": price.crps_kw[0] if times == 1 else None,
                    "crps_collapsed_kw": price.crps_kw[1] if times == 1 else None,
                    "crps_change_pct": 100 * (price.crps_kw[1] / price.crps_kw[0] - 1) if times == 1 else None,
                    "mean_difference_kw": price.mean_kw,
                    "epistemic_rank": price.epistemic_rank,
                    "epistemic_ensemble_kw": float(before.epistemic.mean()),
                    "epistemic_collapsed_kw": float(after.epistemic.mean()),
                    "seconds": seconds if how == "distill" else 0.0,
                }
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--folds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/collapse.csv"))
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for fold in given.folds:
        rows += rows_of(given.data, fold, given.members)
        print(f"fold {fold}: {rows[-len(TIMES) * 2]}", file=sys.stderr, flush=True)
    rounded: list[Row] = [
        {k: "" if v is None else f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows
    ]
    write(given.out, rounded, "BMW i3 with torque, held-out trips")


if __name__ == "__main__":
    main()
