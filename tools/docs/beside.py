"""Tables of what stands beside evband in energy and in speed."""

from __future__ import annotations

from typing import Any

import polars as pl

Table = tuple[list[str], list[list[str]]]  # head, rows

ENERGY = {
    "average": "average consumption",
    "least-squares": "least squares",
    "least-squares-ours": "least squares, our features and hinges",
    "fastsim": "FASTSim fitted",
}


def _three(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


# Energy: one row a log, contender and kind of stretch ---------------------------------------------------------------


def energy(frame: pl.DataFrame, logs: dict[str, str]) -> Table:
    """Coverage of evband's 90 % bands and of summed rows, and every contender's width once 90 % are covered."""
    others = [c for c in ENERGY if c in frame["contender"].to_list()]
    rows = []
    for task in frame["task"].unique(maintain_order=True):
        for what in ("trip", "10 km", "range", "range_so_far"):
            found = {
                r["contender"]: r
                for r in frame.filter((pl.col("task") == task) & (pl.col("what") == what)).iter_rows(named=True)
            }
            if "evband" not in found:
                continue
            ours = found["evband"]
            cells = [_beside(found.get(c)) for c in others]
            summed = found.get("independent", {}).get("cover90")
            title = logs.get(task, "i3 with torque and Tesla road, pooled")
            kind = what.replace("_so_far", ", drive so far known")
            rows.append([title, kind, str(ours["trips"]), _three(ours["cover90"]), _three(summed), _three(ours["width_at_90_covered"]), *cells])  # fmt: skip
    head = ["log", "what", "trips", "coverage", "coverage if summed", "evband's width", *(ENERGY[c] for c in others)]
    return head, rows


def _beside(row: dict[str, Any] | None) -> str:
    """A contender's width at 90 % coverage, and evband's over it with its interval."""
    if row is None:
        return "-"
    return f"{row['width_at_90_covered']:.3f} ({row['evband_is']:.2f}: {row['evband_is_low']:.2f}-{row['evband_is_high']:.2f})"


# Speed --------------------------------------------------------------------------------------------------------------


def bench(frame: pl.DataFrame) -> Table:
    """The main figures beside what was asked for."""
    words = {"no": "**missed**", "yes": "met", "goal": "goal met"}
    rows = [
        [
            r["figure"],
            f"{r['measured']:g} {r['unit']}",
            _plain(r["required"]),
            _plain(r["goal"]),
            words.get(r["met"], ""),
        ]
        for r in frame.iter_rows(named=True)
    ]
    return ["figure", "measured", "required", "goal", ""], rows


def _plain(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def bench_bound(steps: pl.DataFrame | None, what: str) -> str:
    """The step's operations, our share of the machine's rate, and what twelve times Keras would take."""
    rows = {} if steps is None else {r["contender"]: r for r in steps.iter_rows(named=True)}
    ours, bound, keras = (rows.get(k) for k in ("evband cpu kernel", "as many operations in torch's matmul", "Keras/TensorFlow in a loop"))  # fmt: skip
    if ours is None or bound is None or keras is None:
        return "not measured yet"
    gflop = ours["gflops"] * ours["median_s"]
    if what == "gflop":
        return f"{gflop:.1f}"
    if what == "share":
        return f"{ours['gflops'] / bound['gflops']:.0%} ({ours['gflops']} of {bound['gflops']} GFLOP/s)"
    return f"{12 * gflop / keras['median_s']:.0f} GFLOP/s"


def profile(frame: pl.DataFrame) -> Table:
    """Where a step of the paper's fit goes."""
    rows = [[r["part"], f"{1e3 * r['median_s']:.1f} ms", f"{r['share']:.0%}", f"{r['times_600_s']} s"] for r in frame.iter_rows(named=True)]  # fmt: skip
    return ["part", "one step", "share", "in the fit"], rows


# Hostile sizes: one row an input --------------------------------------------------------------------------------------


def sizes(frame: pl.DataFrame) -> Table:
    """Seconds, memory and end of each input."""
    rows = [
        [r["input"], f"{r['seconds']:.1f}", str(r["memory_mb"]), "read" if r["ended"] == "read" else "refused"]
        for r in frame.iter_rows(named=True)
    ]
    return ["input", "seconds", "MB", "ends"], rows
