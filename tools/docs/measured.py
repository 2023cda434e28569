"""Scores of measured logs from per-trip sums: one row per trip in folds.csv and rivals.csv."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from evband.scores.intervals import mean_interval

SUMS = ("sse", "sae", "crps", "log_score", "covered", "width")


def measured(
    folds: pl.DataFrame | None, rivals: pl.DataFrame | None, nineteen: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Per-trip sums of every model, on the rows all of a task's models share: rivals whose rows differ are left out."""
    empty = pl.DataFrame(schema={"task": pl.String, "model": pl.String, "trip_id": pl.String, "n": pl.Int64})
    keep = ["task", "model", "trip_id", "n", *SUMS]
    parts = []
    if folds is not None:
        parts.append(over_seeds(folds).select(keep))
    if rivals is not None:
        named = rivals.rename({"rival": "model", "squared_error": "sse", "absolute_error": "sae"})
        named = named.with_columns(
            pl.col(SUMS).cast(pl.Float64).fill_null(float("nan")), pl.col("trip_id").cast(pl.String)
        )
        ours = parts[0].filter(pl.col("model") == "t-anchor") if parts else None
        for (task, _, _), part in named.group_by(["task", "model", "rows"], maintain_order=True):
            if ours is None:
                same = part["rows"][0] == "after_warmup"
            else:
                mine = ours.filter(pl.col("task") == task)
                joined = part.join(mine.select("trip_id", "n"), on="trip_id", suffix="_ours")
                same = len(joined) == len(mine) == len(part) and bool((joined["n"] == joined["n_ours"]).all())
            known = [] if not parts else parts[0].filter(pl.col("task") == task)["model"].to_list()
            if same and part["model"][0] not in known:
                parts.append(part.select(keep))
    if not parts:
        return empty
    trips = pl.concat(parts, how="vertical_relaxed")
    return trips if folds is None or nineteen is None else on_equal_terms(trips, folds, nineteen)


def over_seeds(folds: pl.DataFrame) -> pl.DataFrame:
    """Each trip's sums, averaged over the runs that a method has, one a seed."""
    sums = [name for name in (*SUMS, "interval_score") if name in folds.columns]
    typed = folds.with_columns(pl.col(sums).cast(pl.Float64).fill_null(float("nan")), pl.col("trip_id").cast(pl.String))
    return typed.group_by("task", "model", "trip_id", maintain_order=True).agg(pl.first("n"), pl.mean(*sums))


def on_equal_terms(trips: pl.DataFrame, folds: pl.DataFrame, nineteen: pl.DataFrame) -> pl.DataFrame:
    """CRPS of methods without a density brought from 19 levels to all levels.

    Twice the mean loss over levels 0.05..0.95 leaves out the outer levels, where the loss is small, and so lies some per
    cent above the integral over all levels that a mixture has. Both are known of t-anchor with seed 0; their ratio on
    the same log is what the others' CRPS is multiplied by.
    """
    first = over_seeds(folds.filter((pl.col("seed") == 0) & (pl.col("model") == "t-anchor")))
    factor = {}
    for task in trips["task"].unique():
        ours = first.filter(pl.col("task") == task)
        both = ours.join(nineteen.with_columns(pl.col("trip_id").cast(pl.String)), on=["task", "trip_id", "n"])
        if len(both) == len(ours) > 0:
            factor[task] = float(both["crps"].sum()) / float(both["crps19"].sum())
    ratio = pl.col("task").replace_strict(factor, default=1.0, return_dtype=pl.Float64)
    return trips.with_columns(
        crps=pl.when(pl.col("log_score").is_finite()).then(pl.col("crps")).otherwise(pl.col("crps") * ratio)
    )


def summary(trips: pl.DataFrame) -> dict[str, float]:
    """Scores of one model on one task from its trips' sums."""
    n = int(trips["n"].sum())
    mean = {name: float(trips[name].fill_nan(None).sum()) / n for name in SUMS}
    density = trips["log_score"].is_finite().all()
    low, high = _interval(trips["covered"], trips["n"])
    return {
        "rmse": mean["sse"] ** 0.5, "mae": mean["sae"], "crps": mean["crps"], "width": mean["width"],
        "log_score": mean["log_score"] if density else float("nan"), "coverage": mean["covered"],
        "low": max(low, 0.0), "high": min(high, 1.0), "trips": len(trips), "n": n,
    }  # fmt: skip


def difference(a: pl.DataFrame, b: pl.DataFrame, score: str = "crps") -> tuple[float, float, float]:
    """a - b of a mean score, with its trip-paired 95 % interval."""
    both = a.join(b, on="trip_id", suffix="_b")
    gap = both[score] - both[f"{score}_b"]
    return float(gap.sum()) / int(both["n"].sum()), *_interval(gap, both["n"])


def _interval(sums: pl.Series, n: pl.Series) -> tuple[float, float]:
    """Of a mean over rows from trips' sums: whatever happens inside a trip, only its mean and length count."""
    count = n.to_numpy()
    rows = np.repeat(sums.to_numpy().astype(float) / count, count)
    low, high = mean_interval(rows, np.repeat(np.arange(len(count)), count))
    return float(low), float(high)


def by_model(trips: pl.DataFrame, task: str, first: Sequence[str]) -> dict[str, pl.DataFrame]:
    found = trips.filter(pl.col("task") == task).partition_by("model", as_dict=True)
    order = [*first, *sorted({str(k[0]) for k in found} - set(first))]
    return {name: found[(name,)] for name in order if (name,) in found}
