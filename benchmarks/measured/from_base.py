"""Fits that start from the base against fits from random weights, on every log and fold.

    python -m benchmarks.measured.folds prepare --data DIR          # tesla_dyno -> .bench/folds/
    python -m benchmarks.measured.trip_drives prepare --data DIR    # the other logs -> .bench/trips/
    PYTHONPATH=src python -m benchmarks.measured.from_base run --out O   # on a GPU machine with torch, numpy, scipy and numba only
    python -m benchmarks.measured.from_base table --out O           # -> results/from_base.csv
    python -m benchmarks.measured.from_base time --data DIR         # the i3's 42 trips -> results/from_base_time.csv

Default settings, 30 members. `scratch`: 60 epochs; `base`: the default from the base. Each outer fold's test trips are
scored after warm-up, with bands calibrated as `evband fit` does it.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.measured import folds
from evband.channels import READINGS, SENSED
from evband.features import FeatureMap
from evband.settings import FROM_BASE, Settings
from evband.training.plan import Job

LOGS = {  # -> (where its arrays are, outer folds)
    "i3_torque": ("trips", 5), "i3_motion": ("trips", 5), "tesla_road": ("trips", 5), "tesla_dyno": ("folds", 5),
    "e208": ("trips", 5), "ved_10": ("trips", 2), "ved_455": ("trips", 2), "cc_pittsburgh": ("trips", 2),
    "cc_georgia": ("trips", 2), "cc_unknown": ("trips", 2),
}  # fmt: skip
WAYS: dict[str, dict[str, Any]] = {"scratch": {"from_base": False}, "base": {"from_base": True, **FROM_BASE}}


def started(features: FeatureMap, job: Job, settings: Settings, signals: dict[str, np.ndarray]) -> np.ndarray | None:
    """Where the members of `evband fit` start, given the signals of the job's rows; None: from random weights."""
    from evband.adaptation import Base
    from evband.adaptation.transfer import start_weights, suits

    ground, unknown = Base.load(), np.full(len(signals["speed_kmh"]), np.nan)
    if not suits(features, settings, ground):
        return None
    names = ("speed_kmh", "acceleration_ms2", "elevation_m", "ambient_temp_c", "kinetic", "speed_change", "fade")
    known = {name: signals[name].astype(float) if name in signals else unknown for name in names}
    known |= {READINGS: features.hz * signals[READINGS].astype(float)} if READINGS in signals else {}
    known |= {SENSED: signals[SENSED].astype(float)} if SENSED in signals else {}
    return start_weights(ground, features, known, job, settings)


def work(item: tuple[str, int, str, int, float]) -> dict[str, Any] | None:
    name, number, way, members, deadline = item
    if time.time() > deadline:
        return None
    from evband.training.plan import train

    try:
        torch.set_num_threads(1)
        folds.HERE = Path(".bench") / LOGS[name][0]
        fold, began = folds.load_fold(name, number, members=members, **WAYS[way]), time.time()
        rows = fold.rows(test=False)
        own = {name: signal[rows] for name, signal in fold.signals.items()}
        start = started(fold.features, fold.job, fold.settings, own) if fold.settings.from_base else None
        if fold.settings.from_base and start is None:
            return {"log": name, "fold": number, "way": way, "members": members, "started": False}
        device = "cuda" if torch.cuda.is_available() else "cpu"
        theta, summary = train(fold.job, fold.settings, device, start=start)
        scored = folds.score(fold, way, fold.settings, theta)
        sums = {k: sum(row[k] for row in scored) for k in ("n", "crps", "sse", "covered", "width", "epistemic2")}
        about = {"log": name, "fold": number, "way": way, "members": members, "started": start is not None}
        return about | sums | {"held_out": summary["held_out_log_score"], "seconds": time.time() - began}
    except Exception:
        print(item, traceback.format_exc(), flush=True)
        return None


def run(out: Path, logs: list[str], members: int, processes: int, seconds: float, most: int, ways: list[str]) -> None:
    deadline = time.time() + seconds
    out.mkdir(parents=True, exist_ok=True)
    items = [
        (name, k, way, members, deadline) for name in logs for k in range(min(most, LOGS[name][1])) for way in ways
    ]
    rows: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for row in pool.imap_unordered(work, items):
            rows += [] if row is None else [row]
            (out / f"from_base_{members}_{'_'.join([*logs, *ways])}.json").write_text(json.dumps(rows))
    print(f"{len(rows)} of {len(items)} fits", flush=True)


def table(out: Path) -> None:
    from benchmarks.common.results_file import RESULTS, show, write

    found = [row for path in sorted(out.glob("from_base_*.json")) for row in json.loads(path.read_text())]
    scratch = {(row["log"], row["fold"]): row for row in found if row["way"] == "scratch"}
    found = [  # where the base does not suit, fit trains from scratch: the same fit
        row if row["started"] or row["way"] == "scratch" else scratch[row["log"], row["fold"]] | {"way": row["way"]}
        for row in found
    ]
    rows = []
    with (RESULTS / "from_base.csv").open() as file:  # logs that were not run again
        last = list(csv.DictReader(line for line in file if not line.startswith("#")))
    for name in LOGS:
        sums: dict[str, Any] = {}
        if not any(row["log"] == name for row in found):
            rows += [row | {"over_scratch": float(row["over_scratch"])} for row in last if row["log"] == name]
        for way in dict.fromkeys(row["way"] for row in found):
            same = [row for row in found if (row["log"], row["way"]) == (name, way)]
            if same:
                sums[way] = {k: sum(r[k] for r in same) for k in ("n", "crps", "sse", "covered", "width", "epistemic2")}
                sums[way] |= {"folds": len(same), "members": same[0]["members"]}
        for way, s in sums.items():
            n, crps = s["n"], s["crps"] / s["n"]
            rows.append({
                "log": name, "folds": s["folds"], "members": s["members"], "way": way, "crps_kw": round(crps, 4),
                "over_scratch": round(crps / (sums["scratch"]["crps"] / sums["scratch"]["n"]), 4),
                "rmse_kw": round((s["sse"] / n) ** 0.5, 4), "coverage": round(s["covered"] / n, 4),
                "width_kw": round(s["width"] / n, 3), "epistemic_kw": round((s["epistemic2"] / n) ** 0.5, 3),
            })  # fmt: skip
    for way in dict.fromkeys(row["way"] for row in rows):
        mean = np.exp(np.mean([np.log(row["over_scratch"]) for row in rows if row["way"] == way]))
        rows.append(
            dict.fromkeys(rows[0], "") | {"log": "geometric mean", "way": way, "over_scratch": round(float(mean), 4)}
        )
    write(
        RESULTS / "from_base.csv",
        rows,
        "sums over the test trips of the folds, after warm-up",
        "fitted on one NVIDIA H200; seed 0; where the base does not suit (a log that is told too closely at once: the dynamometer's) both ways are one fit",
    )
    show("fits from the base", rows)


def timed(data: Path) -> None:
    """Whole fits of the i3's trips, from reading to the calibrated model, in this process; compiled before."""
    import evband
    from benchmarks.common.results_file import RESULTS, show, write

    log, rows = data / "bmw_i3_road" / "bmw_i3_road_10hz.parquet", []
    evband.PowerModel(members=5, epochs=1, device="cpu").fit(evband.read_trips(log))
    for way, from_base in (("base", True), ("scratch", False)):
        began = time.perf_counter()
        trips = evband.read_trips(log)
        model = evband.PowerModel(device="cpu", from_base=from_base).fit(trips)
        seconds, s = time.perf_counter() - began, model.settings_
        rows.append({
            "log": "BMW i3", "trips": len(trips), "members": s.members, "way": way, "from_base": s.from_base, "epochs": s.epochs,
            "seconds": round(seconds, 1), "out_of_bag_crps_kw": round(model.summary_["out_of_bag"]["crps_kw"], 4),
        })  # fmt: skip
        print(rows[-1], flush=True)
    write(RESULTS / "from_base_time.csv", rows, "out of bag: each trip by the six members that left it out")
    show("seconds of a fit", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    running = verbs.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--logs", nargs="+", default=list(LOGS))
    running.add_argument("--members", type=int, default=30)
    running.add_argument("--folds", type=int, default=5, help="of each log, at most")
    running.add_argument("--ways", nargs="+", default=list(WAYS))
    running.add_argument("--processes", type=int, default=4)
    running.add_argument("--seconds", type=float, default=36000.0)
    verbs.add_parser("table").add_argument("--out", type=Path, required=True)
    verbs.add_parser("time").add_argument("--data", type=Path, required=True)
    args = parser.parse_args()
    if args.verb == "run":
        run(args.out, args.logs, args.members, args.processes, args.seconds, args.folds, args.ways)
    elif args.verb == "time":
        timed(args.data)
    else:
        table(args.out)


if __name__ == "__main__":
    main()
