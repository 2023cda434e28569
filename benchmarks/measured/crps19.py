"""CRPS of the fitted fold models at the 19 levels that quantile methods have, so that both kinds meet on equal terms.

    python -m benchmarks.measured.crps19 --data DIR      # after folds.py score, which leaves the models in .bench/models/

Twice the mean pinball loss over levels 0.05..0.95 (a quantile method's CRPS) is a few per cent above the integral over all
levels (a mixture's CRPS): the outer levels, where the loss is small, are left out. Here the mixture is scored that way, too.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import polars as pl

import evband
from benchmarks.common.results_file import MODELS
from benchmarks.common.tasks import TASKS, split
from evband.bands.quantile_sets import LEVELS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/crps19.csv"))
    given = parser.parse_args()
    rows = []
    for task in TASKS.values():
        for fold in range(5):
            model = evband.load(given.models / f"{task.name}_{fold}.evband")
            bands = model.predict(split(task, given.data, fold)[1])
            bands = bands.rows(np.flatnonzero(np.isfinite(np.asarray(bands.power_kw)) & ~bands.warmup))
            y = np.asarray(bands.power_kw)
            loss = np.zeros(len(bands))
            for p in LEVELS:
                error = y - bands.quantile(float(p))
                loss += 2 * np.maximum(p * error, (p - 1) * error) / len(LEVELS)
            frame = pl.DataFrame({"task": task.name, "trip_id": bands.trip_id.astype(str), "crps19": loss})
            rows.append(
                frame.group_by("task", "trip_id", maintain_order=True).agg(pl.len().alias("n"), pl.sum("crps19"))
            )
            print(task.name, fold, flush=True)
    header = "# python -m benchmarks.measured.crps19 --data DIR; model t-anchor; one row a test trip: sums over its n rows after warm-up, kW\n"
    given.out.write_text(header + pl.concat(rows).sort("task", "trip_id").write_csv(float_precision=5))


if __name__ == "__main__":
    main()
