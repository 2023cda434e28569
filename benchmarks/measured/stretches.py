"""What the calibration's two refinements are worth: a stretch of its own at a standstill, and stretches for all members at once.

    python -m benchmarks.measured.stretches --data DIR      # after folds.py score, which leaves the models in .bench/models/

Every factor is fitted on training trips, each predicted by the six members that never saw it, and judged on the test trips of every
fold, rows after warm-up. `none`: as trained; `one`: one factor; `apart`: one on the move, one at a standstill; `all members`: those
two, extrapolated from six members to the thirty that speak (the default).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import evband
from benchmarks.common.results_file import MODELS, write
from benchmarks.common.tasks import TASKS, split
from evband.bands import Bands
from evband.calibration import fit_stretch, fit_stretches
from evband.preparing import prepare


def sums(bands: Bands) -> dict[str, float]:
    """Of the rows after warm-up: their number, scores, and how many are covered, at a standstill apart."""
    bands = bands.rows(np.isfinite(np.asarray(bands.power_kw)) & ~bands.warmup)
    y = np.asarray(bands.power_kw)
    lower, upper = bands.interval(0.9)
    covered, standing = (lower <= y) & (y <= upper), bands.standing
    return {
        "n": len(y),
        "covered": int(covered.sum()),
        "standing": int(standing.sum()),
        "standing_covered": int((covered & standing).sum()),
        "width": float((upper - lower).sum()),
        "crps": float(bands.crps(y).sum()),
        "log_score": float(-bands.logpdf(y).sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--models", type=Path, default=MODELS)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/stretches.csv"))
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for task in TASKS.values():
        for fold in range(5):
            model = evband.load(given.models / f"{task.name}_{fold}.evband")
            train, test = split(task, given.data, fold)
            left_out = model.out_of_bag(prepare(train, model.settings_))
            assert left_out is not None
            bands = model.predict(test)
            bands = bands.stretched(1 / np.asarray(bands.stretch))
            for how, (moving, standing) in {
                "none": (1.0, 1.0),
                "one": (fit_stretch(left_out),) * 2,
                "apart": fit_stretches(left_out),
                "all members": fit_stretches(left_out, members=len(model.theta_)),
            }.items():
                scored = sums(bands.stretched(np.where(bands.standing, standing, moving)))
                rows.append({"task": task.name, "fold": fold, "how": how, "moving": moving, "still": standing} | scored)
            print(task.name, fold, flush=True)
    rounded = [{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    write(given.out, rounded, "model t-anchor, 90 % bands; sums over n rows, kW")


if __name__ == "__main__":
    main()
