"""Tables of `benchmarks.measured.cold_start`."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.measured.cold_start import CARS, SCORES


def kept(path: Path, run: set[str]) -> list[dict[str, Any]]:
    """Rows of the results as they are, of methods that were not run again: fits of hours do not depend on the base."""
    with path.open() as file:
        rows = csv.DictReader(line for line in file if not line.startswith("#"))
        found = [row for row in rows if row["method"] not in run]
    words = {"car": str, "method": str, "minutes": int, "seeds": int}
    return [{k: words.get(k, float)(v or "nan") for k, v in row.items()} for row in found]


def ratios(rows: list[dict[str, Any]], own: dict[str, float]) -> list[dict[str, Any]]:
    """Means over seeds of each car, method and budget; CRPS also over that of the car's own fit."""
    table = []
    for car in CARS:
        for method, minutes in dict.fromkeys((r["method"], r["minutes"]) for r in rows if r["car"] == car):
            same = [r for r in rows if (r["car"], r["method"], r["minutes"]) == (car, method, minutes)]
            mean = {k: float(np.mean([r[k] for r in same])) for k in same[0] if isinstance(same[0][k], float)}
            table.append(
                {
                    "car": car,
                    "method": method,
                    "minutes": minutes,
                    "seeds": len(same),
                    "ratio": mean["crps_kw"] / own[car],
                    "ratio_low": min(r["crps_kw"] for r in same) / own[car],
                    "ratio_high": max(r["crps_kw"] for r in same) / own[car],
                }
                | {k: mean.get(k, float("nan")) for k in SCORES}
            )
    return table


def table(out: Path) -> None:
    rows = [row for path in sorted(out.glob("cold_*.json")) for row in json.loads(path.read_text())]
    before = kept(RESULTS / "cold_start_cars.csv", {row["method"] for row in rows})
    own = {row["car"]: row["crps_kw"] for row in before if row["method"] == "own"}
    own |= {c: float(np.mean([r["crps_kw"] for r in rows if (r["car"], r["method"]) == (c, "own")])) for c in CARS if c not in own}  # fmt: skip
    for row in before:
        again = row["crps_kw"] / own[row["car"]] / row["ratio"]  # the own fit may be another
        row |= {name: round(again * row[name], 4) for name in ("ratio", "ratio_low", "ratio_high")}
    cars = before + [
        {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in ratios(rows, own)
    ]
    summary = []
    for method, minutes in dict.fromkeys((r["method"], r["minutes"]) for r in cars):
        same = [r for r in cars if (r["method"], r["minutes"]) == (method, minutes)]

        def mean(name: str, digits: int, same: list[dict[str, Any]] = same) -> float:
            return round(float(np.mean([r[name] for r in same])), digits)

        summary.append({
            "method": method, "minutes": minutes, "cars": len(same), "ratio": mean("ratio", 3),
            "worst": round(max(r["ratio"] for r in same), 2), "coverage": mean("coverage", 3),
            "lowest": round(min(r["coverage"] for r in same), 3), "highest": round(max(r["coverage"] for r in same), 3),
            "epistemic_kw": mean("epistemic_kw", 2), "trip_error": round(float(np.median([r["trip_error"] for r in same])), 3),
            "energy_coverage": mean("energy_coverage", 3),
        })  # fmt: skip
    notes = (
        "ratio: CRPS over that of evband fit on the first 70 % of the car's own drives, cars weighing alike",
        f"run for this table: {', '.join(sorted({row['method'] for row in rows}))}; the others are kept from an earlier run "
        "on a machine with an NVIDIA H200 and 16 cores",
        "each make with noise constants of the other makes; own: evband fit, which starts from the base; alone: from scratch; linear: "
        "6000 steps on the same 2,377 simulated vehicles, its constants found as the base's",
    )
    for name, rows in (("cold_start_cars", cars), ("cold_start", summary)):
        known = [{k: None if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()} for row in rows]
        write(RESULTS / f"{name}.csv", known, *notes)
    show("cold start", summary)
