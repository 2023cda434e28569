"""Every rival on every real log, all five folds: per-trip sums (for trip-paired comparisons) and per-row predictions.

    python -m benchmarks.measured.rivals --data ../shared/data --out benchmarks/results/rivals.csv [--tasks i3_torque ...] [--rivals ...]

Rows already in the result file are kept, so a run can be stopped and continued. Predictions go to `.bench/rivals/`.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # one core, and timings that others' jobs disturb less

import numpy as np
import polars as pl

import evband
from benchmarks.common.tasks import TASKS, Task, folds_of, trips_of
from evband import rivals
from evband.bands import Bands, QuantileSet
from evband.bands.quantile_sets import LEVELS
from evband.features import WARMUP_S

LEVEL = 0.9
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "least-squares": ("least-squares", {"ours": False}),  # the plain road-load features
    "least-squares-ours": ("least-squares", {}),  # given our edge speeds and fading start, too
    "least-squares-hinges": ("least-squares", {"hinges": True}),  # and our hinges
    **{name: (name, {"ours": False}) for name in rivals.NAMES if name != "least-squares"},
    "residual-boosting-ours": ("residual-boosting", {}),
}


def sums(bands: Bands, rows: np.ndarray) -> dict[str, float]:
    """Sums of scores over some rows of one trip; `crps19` integrates every method's pinball loss at the
    same 19 levels with their step of 0.05 (the mean over levels, as a quantile set's `crps` and crps19.csv have it, is 20/19 of it)."""
    part = bands.rows(np.flatnonzero(rows))
    y = part.power_kw
    assert y is not None
    lower, upper = part.interval(LEVEL)
    error = y - part.mean
    pinball = np.zeros(len(y))
    for p in LEVELS:
        e = y - part.quantile(float(p))
        pinball += np.maximum(p * e, (p - 1) * e)
    log_score = np.nan if isinstance(part.members, QuantileSet) else float(-part.logpdf(y).sum())
    return {
        "n": len(y),
        "squared_error": float(error @ error),
        "absolute_error": float(np.abs(error).sum()),
        "crps": float(part.crps(y).sum()),
        "crps19": float(pinball.sum() * 2 * (LEVELS[1] - LEVELS[0])),
        "log_score": log_score,
        "covered": int(((y >= lower) & (y <= upper)).sum()),
        "width": float((upper - lower).sum()),
    }


def score(bands: Bands, head: dict[str, Any]) -> list[dict[str, Any]]:
    """One line per trip and set of rows: all, and those after warm-up."""
    measured = np.isfinite(bands.power_kw) if bands.power_kw is not None else np.zeros(len(bands), bool)
    lines = []
    for trip in dict.fromkeys(bands.trip_id.tolist()):
        here = measured & (bands.trip_id == trip)
        for name, mask in (("all", here), ("after_warmup", here & ~bands.warmup)):
            if mask.any():
                lines.append(head | {"trip_id": trip, "rows": name} | sums(bands, mask))
    return lines


def make(variant: str, task: Task) -> rivals.Rival:
    name, settings = VARIANTS[variant]
    return rivals.make(name, features=task.features, hz=task.hz, **settings)


def keep_predictions(bands: Bands, folder: Path, name: str) -> None:
    """Per-row bands and member parameters."""
    folder.mkdir(parents=True, exist_ok=True)
    bands.to_frame(LEVEL, members=True).write_parquet(folder / f"{name}.parquet")


def write(table: pl.DataFrame, out: Path) -> None:
    """The CSV with command and machine in its header."""
    out.parent.mkdir(parents=True, exist_ok=True)
    header = [
        "# python -m benchmarks.measured.rivals --data ../shared/data --out benchmarks/results/rivals.csv",
        f"# evband {evband.__version__}, Python {platform.python_version()}, {platform.machine()}, 2 cores; sums per trip;",
        f"# rows = all, or after_warmup (without the first {WARMUP_S:g} s of each segment); 90 % bands",
    ]
    body = table.sort("task", "rival", "fold", "trip_id", "rows").write_csv(float_precision=6)
    out.write_text("\n".join(header) + "\n" + body)


def read(out: Path) -> pl.DataFrame | None:
    return pl.read_csv(out, comment_prefix="#") if out.exists() else None


def summary(table: pl.DataFrame) -> pl.DataFrame:
    """RMSE, MAE, CRPS, coverage, width over all folds, and RMSE/MAE of fold 0 alone."""
    n = pl.col("n").sum()
    fold0 = pl.col("fold") == 0
    n0 = pl.col("n").filter(fold0).sum()
    return (
        table.group_by("task", "rival", "rows")
        .agg(
            rmse=(pl.col("squared_error").sum() / n).sqrt(),
            mae=pl.col("absolute_error").sum() / n,
            crps=pl.col("crps").sum() / n,
            crps19=pl.col("crps19").sum() / n,
            log_score=pl.col("log_score").sum() / n,
            coverage=pl.col("covered").sum() / n,
            width=pl.col("width").sum() / n,
            rmse_fold0=(pl.col("squared_error").filter(fold0).sum() / n0).sqrt(),
            mae_fold0=pl.col("absolute_error").filter(fold0).sum() / n0,
            n=n,
            folds=pl.col("fold").n_unique(),
        )
        .sort("rows", "task", "rival")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/rivals.csv"))
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--rivals", nargs="+", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--folds", nargs="+", type=int, default=list(range(5)))
    parser.add_argument("--predictions", type=Path, default=Path(".bench/rivals"))
    parser.add_argument("--again", action="store_true", help="run also what the result file already has")
    given = parser.parse_args()
    for name in given.tasks:
        trips, folds = trips_of(TASKS[name], given.data), folds_of(TASKS[name], given.data)
        for variant in given.rivals:
            for fold in given.folds:
                head = {"task": name, "rival": variant, "fold": fold}
                this = pl.all_horizontal(pl.col(key) == value for key, value in head.items())
                table = read(given.out)
                if table is not None and not given.again and not table.filter(this).is_empty():
                    continue
                began = time.perf_counter()
                rival = make(variant, TASKS[name]).fit(trips.subset(t for t, f in folds.items() if f != fold))
                fitted = time.perf_counter() - began
                bands = rival.predict(trips.subset(t for t, f in folds.items() if f == fold))
                keep_predictions(bands, given.predictions, f"{name}-{variant}-{fold}")
                lines = pl.DataFrame(score(bands, head))
                table = read(given.out)  # another run may have written meanwhile
                write(
                    lines if table is None else pl.concat([table.filter(~this), lines], how="vertical_relaxed"),
                    given.out,
                )
                print(f"{name} {variant} fold {fold}: {fitted:.0f} s", file=sys.stderr, flush=True)
    table = read(given.out)
    if table is not None:
        with pl.Config(tbl_rows=-1, tbl_cols=-1, float_precision=3, tbl_width_chars=200):
            print(summary(table))


if __name__ == "__main__":
    main()
