"""Fill the tables and numbers of README.md and docs/ from the committed result files.

    python -m tools.docs.tables            # rewrite what stands between the marks; `make docs`
    python -m tools.docs.tables --check    # status 1 if anything differs; tests/test_docs.py does the same

A mark is `<!-- table: NAME -->` or, inside a sentence, `<!-- value: NAME -->`, and ends with `<!-- end -->`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evband.rivals import NAMES as RIVALS
from tools.docs.beside import bench, bench_bound, energy, profile, sizes
from tools.docs.cold import cold_start, learning_curves, wrong_mass
from tools.docs.compared import MODELS, TASKS, ahead, cells, claim_measured, comparison, diversity, every_model, seeds
from tools.docs.goals import goals, values
from tools.docs.measured import measured, over_seeds
from tools.docs.shifts import averaged, distilled, epistemic, noise, season, stretches, trip_effect, tuning
from tools.docs.slow import lead, slow_feeds
from tools.docs.trips import (
    arrivals,
    cabin,
    energy_over_trips,
    later,
    over_stretches,
    planned,
    ranges,
    routers,
    so_far,
    so_far_bound,
    started_plans,
)
from tools.docs.written import PENDING, markdown, number

ROOT = Path(__file__).resolve().parents[2]
RESULTS, PAPER = ROOT / "benchmarks" / "results", ROOT / "docs" / "paper"
MARK = re.compile(r"(<!-- (table|value): ([\w.-]+) -->)(.*?)(<!-- end -->)", re.DOTALL)

VEHICLES = {
    "sedan_1": "Sedan 1",
    "sedan_2": "Sedan 2",
    "truck": "Truck",
    "hatchback": "Hatchback",
    "highway": "Highway",
}
THEIRS = {"highway": "ioniq5"}  # our name -> the paper's
METHODS = ("t-anchor", "t-dropout", "quantile-anchor", "quantile-dropout")


def read(name: str, folder: Path = RESULTS) -> pl.DataFrame | None:
    """A result file, or None where it has not been made yet."""
    path = folder / f"{name}.csv"
    return pl.read_csv(path, comment_prefix="#", infer_schema_length=None) if path.exists() else None


def of_trips(make: Callable[[pl.DataFrame], tuple[list[str], list[list[str]]]], frame: pl.DataFrame | None) -> str:
    return PENDING if frame is None else markdown(*make(frame))


# Simulated vehicles: one row a fit ----------------------------------------------------------------------------------


def one(frame: pl.DataFrame | None, **where: Any) -> dict[str, Any] | None:
    """The row (of the most members and epochs) that answers to these values."""
    if frame is None:
        return None
    found = frame.filter(pl.all_horizontal(pl.col(k) == v for k, v in where.items())).sort("members", "epochs")
    return found.row(-1, named=True) if len(found) else None


def table_2(ours: pl.DataFrame | None, paper: pl.DataFrame, prior: str = "flat 0.1") -> str:
    """Accuracy and uncertainty: the paper's row, then ours, per method and vehicle."""
    columns = ("rmse_kw", "mae_kw", "au_kw", "eu_kw", "r2", "explained_variance")
    rows = []
    for method in METHODS:
        for vehicle, title in VEHICLES.items():
            theirs = one_of(paper, method=method, vehicle=THEIRS.get(vehicle, vehicle))
            mine = one(ours, method=method, vehicle=vehicle, preset="paper", prior=prior) or {}
            pairs = [f"{number(theirs[c])} / {number(mine.get(c))}" for c in columns]
            rows.append([method, title, *pairs])
    return markdown(["method", "vehicle", "RMSE", "MAE", "AU", "EU", "R2", "explained variance"], rows, left=2)


def table_3(ours: pl.DataFrame | None, paper: pl.DataFrame, prior: str = "flat 0.1") -> str:
    """Calibration: coverage with the binomial interval, ours with the honest one beside it."""
    rows = []
    for vehicle in ("sedan_1", "highway"):
        for method in METHODS:
            p = one_of(paper, method=method, vehicle={"sedan_1": "sedan", "highway": "ioniq5"}[vehicle])
            m = one(ours, method=method, vehicle=vehicle, preset="paper", prior=prior)
            theirs = [f"{p['coverage']:.3f} ({p['ci_low']:.3f}-{p['ci_high']:.3f})", number(p["width_kw"]), number(p["standardized_variance"])]  # fmt: skip
            mine = ["-"] * 4
            if m is not None:
                mine = [
                    f"{m['coverage']:.3f} ({m['ci_low']:.3f}-{m['ci_high']:.3f})",
                    f"{number(m['honest_low'])}-{number(m['honest_high'])}",
                    number(m["width_kw"]), number(m["standardized_variance"]),
                ]  # fmt: skip
            rows.append([VEHICLES[vehicle], method, *theirs, *mine])
    head = ["vehicle", "method", "paper: coverage", "width", "st. var.", "ours: coverage", "honest interval", "width", "st. var."]  # fmt: skip
    return markdown(head, rows, left=2)


def priors(ours: pl.DataFrame | None) -> str:
    """What the prior does to one short run: R2, RMSE and CRPS with each."""
    rows = []
    for vehicle, title in VEHICLES.items():
        found = [
            one(ours, method="t-anchor", vehicle=vehicle, preset=preset, prior=prior)
            for preset, prior in (("paper", "flat 0.01"), ("paper", "flat 0.1"), ("default", "fan_in"))
        ]
        cells = ["-" if r is None else f"{r['r2']:.2f} / {r['rmse_kw']:.2f} / {r['crps_kw']:.2f} / {r['coverage']:.2f}" for r in found]  # fmt: skip
        rows.append([title, *cells])
    return markdown(
        ["R2 / RMSE / CRPS / coverage", "paper, variance 0.01", "paper, variance 0.1", "evband default"], rows
    )


def rivals(ours: pl.DataFrame | None) -> str:
    """RMSE, CRPS and coverage of the default model and of the rivals, one run a vehicle."""
    named = {"t-anchor": "evband default"} | {m: MODELS[m] for m in RIVALS}
    rows = []
    for vehicle, title in VEHICLES.items():
        found = [one(ours, method=m, vehicle=vehicle, preset="default" if m == "t-anchor" else "rival") for m in named]
        rows.append([title, *("-" if r is None else f"{r['rmse_kw']:.2f} / {r['crps_kw']:.2f} / {r['coverage']:.2f}" for r in found)])  # fmt: skip
    return markdown(["RMSE / CRPS / coverage", *named.values()], rows)


def literal(frame: pl.DataFrame | None) -> str:
    """The printed objective and the derived one."""
    if frame is None:
        return PENDING
    names = {"sedan_1": "simulated sedan 1, one run", "bmw_i3": "BMW i3, fold 0"}
    rows = [
        [names[r["vehicle"]], {"literal": "printed", "posterior": "divided by N"}[r["prior_scale"]],
         r["prior"].removeprefix("flat "), number(r["r2"], 3), number(r["rmse_kw"]), number(r["eu_kw"], 3)]
        for r in frame.sort("vehicle", "prior", "prior_scale", descending=[True, False, False]).iter_rows(named=True)
    ]  # fmt: skip
    return markdown(["data", "prior term", "variance", "R2", "RMSE in kW", "EU in kW"], rows, left=2)


def table_1(ours: pl.DataFrame | None, paper: pl.DataFrame) -> str:
    """Feature sets."""
    rows = []
    for p in paper.iter_rows(named=True):
        m = one(ours, features=p["set"], vehicle="sedan_1") or {}
        rows.append([p["set"], p["channels"], number(p["rmse_kw"], 1), number(p["mae_kw"], 1),
                     number(m.get("rmse_kw")), number(m.get("mae_kw"))])  # fmt: skip
    return markdown(["set", "channels", "paper: RMSE", "MAE", "ours: RMSE", "MAE"], rows, left=2)


# Sentences of the claims table -------------------------------------------------------------------------------------


def _fits(ours: pl.DataFrame | None, method: str, prior: str = "flat 0.1") -> dict[str, dict[str, Any]]:
    """The paper's recipe with one method, by vehicle."""
    found = {v: one(ours, method=method, vehicle=v, preset="paper", prior=prior) for v in VEHICLES}
    return {v: row for v, row in found.items() if row is not None}


def claim_accuracy(ours: pl.DataFrame | None) -> str:
    rows = list(_fits(ours, "t-anchor").values())
    if not rows:
        return PENDING
    rmse, r2 = ([r[c] for r in rows] for c in ("rmse_kw", "r2"))
    spread = [f"{np.mean(x):.2f} ± {np.std(x, ddof=1):.2f}" if len(x) > 1 else f"{x[0]:.2f}" for x in (rmse, r2)]
    return f"RMSE {spread[0]} kW, R2 {spread[1]} over {len(rows)} simulated vehicles"


def claim_coverage(ours: pl.DataFrame | None) -> str:
    rows = list(_fits(ours, "t-anchor").values())
    if not rows:
        return PENDING
    wider = np.mean([(r["honest_high"] - r["honest_low"]) / (r["ci_high"] - r["ci_low"]) for r in rows])
    held = [r["coverage"] for r in rows]
    inside = sum(r["ci_low"] <= 0.9 <= r["ci_high"] for r in rows)
    return (
        f"coverage {min(held):.2f} to {max(held):.2f}, the binomial interval holds 0.90 in {inside} of {len(rows)} vehicles; "
        f"the honest interval is {wider:.1f} times as wide"
    )


def claim_against(ours: pl.DataFrame | None, other: str, score: str, words: str) -> str:
    """In how many vehicles the t-anchor is ahead of another method, and by how much."""
    mine, theirs = _fits(ours, "t-anchor"), _fits(ours, other)
    both = [v for v in mine if v in theirs]
    if not both:
        return PENDING
    ratio = np.exp(np.mean([np.log(mine[v][score] / theirs[v][score]) for v in both]))
    ahead = sum(mine[v][score] < theirs[v][score] for v in both)
    return f"{words} lower in {ahead} of {len(both)} simulated vehicles, {ratio:.2f} times {other}'s on average"


def claim_features(ours: pl.DataFrame | None) -> str:
    s1, s3, s5 = (one(ours, features=f, vehicle="sedan_1") for f in ("S1", "S3", "S5"))
    if s1 is None or s3 is None or s5 is None:
        return PENDING
    return f"S1 {s1['rmse_kw']:.2f}, S3 {s3['rmse_kw']:.2f}, S5 {s5['rmse_kw']:.2f} kW"


def claim_prior(ours: pl.DataFrame | None, prior: str) -> str:
    r2 = [row["r2"] for row in _fits(ours, "t-anchor", prior).values()]
    return f"R2 {min(r2):.2f} to {max(r2):.2f}" if len(r2) > 1 else f"R2 {r2[0]:.2f}" if r2 else PENDING


def one_of(frame: pl.DataFrame, **where: Any) -> dict[str, Any]:
    return frame.filter(pl.all_horizontal(pl.col(k) == v for k, v in where.items())).row(0, named=True)


def tables() -> dict[str, Callable[[], str]]:
    """Every name that a mark can have."""
    folds = read("folds")
    trips = measured(folds, read("rivals"), read("crps19"))
    by_run = trips if folds is None else over_seeds(folds)
    sims, lit, ablation = read("simulated"), read("literal"), read("ablation")
    winter, unknown, effects, factors = (read(name) for name in ("season", "epistemic", "trip_effect", "stretches"))
    told, ones, tried = read("simulated_noise"), read("collapse"), read("folds_tuning")
    kwh, speed, steps, parts = read("energy"), read("bench"), read("training_step"), read("profile_fit")
    paper = {n: read(n, PAPER) for n in ("table1_features", "table2_accuracy", "table3_calibration")}
    one_, two, three = (frame for frame in paper.values() if frame is not None)
    return {
        "goals": lambda: goals(read),
        **values(read),
        "comparison": lambda: comparison(trips),
        "every_model": lambda: every_model(trips),
        "table1": lambda: table_1(ablation, one_),
        "table2": lambda: table_2(sims, two),
        "table3": lambda: table_3(sims, three),
        "priors": lambda: priors(sims),
        "simulated_rivals": lambda: rivals(sims),
        "literal": lambda: literal(lit),
        "cold.start": lambda: of_trips(cold_start, read("cold_start")),
        "cold.mass": lambda: of_trips(wrong_mass, read("mass")),
        "cold.cars": lambda: of_trips(learning_curves, read("cold_start_cars")),
        "trips.energy": lambda: of_trips(energy_over_trips, read("trips")),
        "trips.stretches": lambda: of_trips(over_stretches, read("trips")),
        "trips.range": lambda: of_trips(ranges, read("trips_range")),
        "trips.so_far": lambda: of_trips(so_far, read("trips_range")),
        "gaps.slow": lambda: of_trips(slow_feeds, read("gaps")),
        "gaps.lead": lambda: of_trips(lead, read("gaps")),
        "trips.bound": lambda: of_trips(so_far_bound, read("trips_so_far")),
        "sizes": lambda: of_trips(sizes, read("sizes")),
        "routers": lambda: of_trips(routers, read("routers")),
        "trips.cabin": lambda: of_trips(cabin, read("trips")),
        "trips.planned": lambda: of_trips(planned, read("trips")),
        "trips.later": lambda: of_trips(later, read("trips")),
        "started_plans": lambda: of_trips(started_plans, read("started_plans")),
        "trips.arrivals": lambda: of_trips(arrivals, read("trips_arrivals")),
        "energy": lambda: PENDING if kwh is None else markdown(*energy(kwh, TASKS), left=2),
        "bench": lambda: PENDING if speed is None else markdown(*bench(speed)),
        "profile": lambda: PENDING if parts is None else markdown(*profile(parts)),
        **{f"bench_{w}": partial(bench_bound, steps, w) for w in ("gflop", "share", "keras")},
        "season": lambda: PENDING if winter is None else markdown(*season(winter), left=2),
        "epistemic": lambda: PENDING if unknown is None else markdown(*epistemic(unknown, TASKS), left=3),
        "trip_effect": lambda: PENDING if effects is None else markdown(*trip_effect(effects, TASKS)),
        "stretches": lambda: PENDING if factors is None else markdown(*stretches(factors, TASKS)),
        "tuning": lambda: PENDING if tried is None else markdown(*tuning(tried, TASKS)),
        "noise": lambda: PENDING if told is None else markdown(*noise(told)),
        "accuracy": lambda: claim_accuracy(sims),
        "coverage": lambda: claim_coverage(sims),
        "sharper": lambda: claim_against(sims, "quantile-anchor", "width_at_90_kw", "width at 90 % coverage"),
        "dropout": lambda: claim_against(sims, "t-dropout", "crps_kw", "CRPS"),
        "features": lambda: claim_features(ablation),
        "flat_0.01": lambda: claim_prior(sims, "flat 0.01"),
        "flat_0.1": lambda: claim_prior(sims, "flat 0.1"),
        "distilled": lambda: PENDING if ones is None else distilled(ones),
        "averaged": lambda: PENDING if ones is None else averaged(ones),
        "seeds": lambda: seeds(folds),
        "cells": lambda: cells(folds),
        "diversity": lambda: diversity(folds),
        "ahead": lambda: ahead(trips),
        "measured_interval": partial(claim_measured, by_run, "quantile-anchor", "interval_score"),
        **{f"measured_{m}": partial(claim_measured, trips, m) for m in MODELS if m != "t-anchor"},
    }


def filled(text: str, made: dict[str, Callable[[], str]]) -> str:
    """The text with everything between marks made anew."""

    def fill(match: re.Match[str]) -> str:
        start, kind, name, _, end = match.groups()
        space = "\n" if kind == "table" else ""
        return f"{start}{space}{made[name]()}{space}{end}"

    return MARK.sub(fill, text)


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def main() -> None:
    parser = argparse.ArgumentParser(description="Fill tables of README.md and docs/ from benchmarks/results.")
    parser.add_argument("--check", action="store_true")
    check, made, stale = parser.parse_args().check, tables(), []
    for page in pages():
        text = page.read_text()
        new = filled(text, made)
        if new != text:
            stale.append(page.name)
            if not check:
                page.write_text(new)
    print(f"{'differ' if check else 'rewritten'}: {', '.join(stale) or 'none'}")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
