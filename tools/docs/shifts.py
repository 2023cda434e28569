"""Head and rows of the tables on trips that differ: season.csv, epistemic.csv, trip_effect.csv and stretches.csv."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Table = tuple[list[str], list[list[str]]]


def season(frame: pl.DataFrame) -> Table:
    """Winter trips after a summer's training; with online calibration, what it learned is carried from trip to trip."""
    head = ["model", "online", "coverage, first 10 min", "coverage", "width", "interval score", "RMSE", "bias", "EU"]
    shown = frame.filter(pl.col("state") != "each trip")
    return head, [
        [
            row["model"] + (", summer" if row["season"] == "summer" else ""),
            row["online"],
            _covered(row, "first_coverage", "first_"),
            _covered(row, "coverage"),
            *(f"{row[k]:.2f}" for k in ("width_kw", "interval_score", "rmse_kw")),
            f"{row['bias_kw']:+.2f}",
            f"{row['epistemic_kw']:.2f}" if row["epistemic_kw"] else "-",
        ]
        for row in shown.iter_rows(named=True)
    ]


def epistemic(frame: pl.DataFrame, logs: dict[str, str]) -> Table:
    """The epistemic part against the amount of data, and on the motorway after training in the city."""
    head = ["log", "trained on", "asked", "EU", "median EU", "AU", "RMSE", "coverage"]
    rows = []
    for row in frame.iter_rows(named=True):
        trained = f"{row['train_trips']} {'city ' if row['study'] == 'city' else ''}trips"
        if row["resample"] == "trips":
            trained += ", trip bootstrap"
        kw = [f"{row[k]:.2f}" for k in ("epistemic_kw", "epistemic_median_kw", "aleatoric_kw", "rmse_kw")]
        rows.append([logs[row["log"]], trained, row["asked"], *kw, _covered(row, "coverage")])
    return head, rows


def trip_effect(frame: pl.DataFrame, logs: dict[str, str]) -> Table:
    """RMSE, CRPS and log score of each log as a larger part of a window's mean error is left out of the location's fit."""
    n = pl.col("n").sum()
    scores = frame.group_by("task", "trip_effect").agg(
        rmse=(pl.col("sse").sum() / n).sqrt(), crps=pl.col("crps").sum() / n, log_score=pl.col("log_score").sum() / n
    )
    effects = sorted(frame["trip_effect"].unique().to_list())
    cells = {
        (task, effect): f"{rmse:.3f} / {crps:.3f} / {log_score:.3f}"
        for task, effect, rmse, crps, log_score in scores.iter_rows()
    }
    head = ["RMSE / CRPS / log score", *(f"trip effect {effect:g}" for effect in effects)]
    return head, [[title, *(cells[task, effect] for effect in effects)] for task, title in logs.items()]


def tuning(frame: pl.DataFrame, logs: dict[str, str]) -> Table:
    """What each step of the search changed: a candidate's CRPS over that of the best before it, mean and range over folds."""
    columns = ("beta", "trip_effect", "temperature")
    found: dict[tuple[str, str, float], list[float]] = {}
    for (task, _), part in frame.group_by("task", "fold", maintain_order=True):
        rows = part.to_dicts()
        best = rows.pop(0)  # the first candidate is the default
        for name in columns:
            step = [row for row in rows if all(row[c] == best[c] for c in columns if c != name)]
            for row in step:
                found.setdefault((str(task), name, row[name]), []).append(100 * (row["score"] / best["score"] - 1))
            rows = [row for row in rows if row not in step]
            best = min([best, *step], key=lambda row: row["score"])
    steps = sorted({key[1:] for key in found}, key=lambda step: (columns.index(step[0]), step[1]))
    head = ["CRPS in %", *(f"{name.replace('_', ' ')} {value:g}" for name, value in steps)]
    cells = {k: f"{np.mean(v):+.1f} ({min(v):+.1f} to {max(v):+.1f})" for k, v in found.items()}
    return head, [[title, *(cells.get((task, *step), "-") for step in steps)] for task, title in logs.items()]


def noise(frame: pl.DataFrame) -> Table:
    """What a model says of noise that the simulator knows."""
    head = ["simulated car", "rank correlation of AU", "AU over the truth", "degrees of freedom", "true"]
    return head, [
        [
            str(row["vehicle"]).replace("_", " "),
            *(f"{row[k]:.2f}" for k in ("rank_correlation", "ratio", "nu")),
            f"{row['true_nu']:g}",
        ]
        for row in frame.iter_rows(named=True)
    ]


def distilled(frame: pl.DataFrame) -> str:
    """What distillation costs as driven, and what is left of the ensemble's doubt far from any training trip."""
    taught = frame.filter(pl.col("how") == "distill")
    near, far = taught.filter(pl.col("times") == 1), taught.filter(pl.col("times") == taught["times"].max())
    cost, rank = _numbers(near, "crps_change_pct"), _numbers(near, "epistemic_rank")
    doubt, grown = (_numbers(part, "epistemic_ensemble_kw") for part in (near, far))
    share = _numbers(far, "epistemic_collapsed_kw") / grown
    return (
        f"CRPS {cost.min():+.1f} to {cost.max():+.1f} %, rank correlation of the epistemic parts {rank.min():.2f} to "
        f"{rank.max():.2f}; with every input {far['times'][0]:g} times as large it has {share.min():.2f} to {share.max():.2f} "
        f"of the ensemble's doubt, which has grown {grown.mean() / doubt.mean():.0f}-fold"
    )


def averaged(frame: pl.DataFrame) -> str:
    cost = _numbers(frame.filter((pl.col("how") == "average") & (pl.col("times") == 1)), "crps_change_pct")
    return f"CRPS {cost.min():+.0f} to {cost.max():+.0f} %"


def _numbers(frame: pl.DataFrame, name: str) -> NDArray[np.float64]:
    return frame[name].cast(pl.Float64).to_numpy()


def stretches(frame: pl.DataFrame, logs: dict[str, str]) -> Table:
    """Coverage (at a standstill), CRPS and log score of each log as the calibration is refined."""
    n = pl.col("n").sum()
    scores = frame.group_by("task", "how").agg(
        coverage=pl.col("covered").sum() / n,
        still=pl.col("standing_covered").sum() / pl.col("standing").sum(),
        crps=pl.col("crps").sum() / n,
        log_score=pl.col("log_score").sum() / n,
    )
    cells = {
        (task, how): f"{coverage:.3f} ({still:.2f}) / {crps:.3f} / {log_score:.3f}"
        for task, how, coverage, still, crps, log_score in scores.iter_rows()
    }
    ways = {
        "none": "as trained",
        "one": "one factor",
        "apart": "standstill apart",
        "all members": "and for all members",
    }
    head = ["coverage (at a standstill) / CRPS / log score", *ways.values()]
    return head, [[title, *(cells[task, how] for how in ways)] for task, title in logs.items()]


def _covered(row: dict[str, Any], name: str, prefix: str = "") -> str:
    return f"{row[name]:.3f} ({row[prefix + 'low']:.2f}-{row[prefix + 'high']:.2f})"
