"""The table of feeds with a reading every few seconds, of gaps.csv."""

from __future__ import annotations

import polars as pl

Table = tuple[list[str], list[list[str]]]

LOGS = {"i3": "BMW i3", "road": "Tesla", "ved_leaf_10": "Leaf 10", "ved_leaf_455": "Leaf 455"}


def slow_feeds(frame: pl.DataFrame) -> Table:
    """CRPS of the one model and of those of one thinning, as many members each; coverage of the one model."""
    few = frame.filter(pl.col("model") != "boosting")["members"].min()
    found = {
        (r["log"], r["period_s"], r["model"]): r for r in frame.filter(pl.col("members") == few).iter_rows(named=True)
    }
    rows = []
    for log, title in LOGS.items():
        for period in sorted({p for name, p, _ in found if name == log}):
            one, alone = (found[log, period, m] for m in ("one", "bridged" if period == 1 else f"alone {period}"))
            change = 100 * (one["crps_kw"] / alone["crps_kw"] - 1)
            rows.append([f"{title}, {period} s", f"{change:+.1f} %", f"{one['coverage']:.2f}"])
    return ["feed", "CRPS", "held"], rows


def lead(frame: pl.DataFrame) -> Table:
    """Of the one model with all its members over least squares + boosting, on logs as they are."""
    now = frame.filter(pl.col("period_s") == 1)
    rows = []
    for rival in now.filter(pl.col("model") == "boosting").iter_rows(named=True):
        ours = (
            now.filter((pl.col("log") == rival["log"]) & (pl.col("model") == "one")).sort("members").row(-1, named=True)
        )
        leads = [f"{100 * (1 - ours[k] / rival[k]):.1f} %" for k in ("crps_kw", "mae_kw")]
        rows.append([LOGS[rival["log"]], *leads])
    return ["log", "CRPS", "MAE"], rows
