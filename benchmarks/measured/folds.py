"""All five folds of every real log: our methods, trained where a GPU is, scored trip by trip.

    python -m benchmarks.measured.folds prepare --data DIR            # signals of every task as arrays -> .bench/folds/
    PYTHONPATH=src python -m benchmarks.measured.folds train --out O  # on a GPU machine with torch, numpy, scipy and numba only
    ... train --main O --stages main --seed 1 --out O1       # again with other draws: settings as O chose them
    python -m benchmarks.measured.folds score --data DIR --trained O O1 O2  # O's models -> .bench/models/, rows -> results/folds.csv

Settings are chosen on inner folds of each outer fold's training trips (`evband.training.tuning`); the test trips of a fold are
predicted once, at the end. Weights are rounded to half precision before anything is scored, so that they travel.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import tempfile
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evband.bands import Bands, StudentMixture
from evband.bands.from_network import distribution
from evband.calibration import fit_stretches
from evband.features import FeatureMap
from evband.features.physics import limits_of
from evband.network.predict import predict
from evband.network.streams import BOOTSTRAP, DROPOUT, stream
from evband.settings import Settings, completed
from evband.training.loop import Data, Trainer, run
from evband.training.plan import Job, assign_folds, members_of, repeats, train
from evband.training.tuning import tune

HERE = Path(".bench/folds")
BEFORE = "before"  # where a run keeps the settings of an earlier one
WARMUP_S = 30.0
NAMES = ("i3_torque", "i3_motion", "tesla_road", "tesla_dyno", "e208")
EXTRA = ("gaussian-anchor", "quantile-anchor", "t-dropout", "quantile-dropout")
Arrays = dict[str, np.ndarray]
Item = tuple[str, int, str, str, str, float, dict[str, int]]  # task, fold, stage, device, folder, deadline, settings


@dataclass(frozen=True)
class Fold:
    """One outer fold of a task: its training job and its test rows."""

    name: str
    number: int
    settings: Settings
    job: Job
    features: FeatureMap
    arrays: Arrays
    signals: Arrays

    def rows(self, test: bool) -> np.ndarray:
        return rows_of(self.arrays, self.number, test)


def rows_of(arrays: Arrays, number: int, test: bool) -> np.ndarray:
    return np.isin(arrays["trip"], np.flatnonzero((arrays["fold"] == number) == test))


def load_arrays(name: str) -> Arrays:
    with np.load(HERE / f"{name}.npz", allow_pickle=False) as file:
        return {k: file[k] for k in file.files}


def load_fold(name: str, number: int, **chosen: Any) -> Fold:
    return make_fold(name, number, load_arrays(name), **chosen)


def make_fold(name: str, number: int, arrays: Arrays, **chosen: Any) -> Fold:
    """The outer fold `number` of a task's arrays: training job, features learned from it, test rows."""
    signals = {k.removeprefix("signal."): v for k, v in arrays.items() if k.startswith("signal.")}
    hz = float(arrays["hz"])
    rows = rows_of(arrays, number, test=False)
    trips, trip = np.unique(arrays["trip"][rows], return_inverse=True)
    features = FeatureMap(channels=tuple(map(str, arrays["channels"])), hz=hz, edges=True, fade=True, products=True)
    known = rows & np.isfinite(arrays["y"]) & np.all([np.isfinite(s) for s in signals.values()], axis=0)
    features.learn({c: s[known] for c, s in signals.items()}, arrays["y"][known], hinges=True)
    x, r, _ = features.arrays({c: s[rows] for c, s in signals.items()})
    y = (arrays["y"][rows] - features.y_mean) / features.y_std
    speed = signals["speed_kmh"][rows]
    group = repeats([speed[trip == t] for t in range(len(trips))])
    job = Job(Data(x, r, y, arrays["start"][rows], trip), assign_folds(np.bincount(trip), group), limits_of(features))
    settings = Settings(hz=hz, features=",".join(arrays["channels"]), **chosen)
    return Fold(name, number, settings, job, features, arrays, signals)


def bands_of(fold: Fold, settings: Settings, theta: torch.Tensor, rows: np.ndarray) -> Bands:
    """Uncalibrated bands of some rows."""
    features, a = fold.features, fold.arrays
    arch = settings.architecture(len(features.input_names), len(features.road_names))
    x, r, which = features.arrays({c: s[rows] for c, s in fold.signals.items()})
    start = a["start"][rows]
    index = np.arange(len(start))
    since = (index - np.maximum.accumulate(np.where(start, index, 0))) / settings.hz
    rate = settings.dropout_rate
    generators = [stream(settings.seed, p, DROPOUT, 0) for p in range(len(theta))] if rate else None
    said = predict(arch, theta, x, r, start, rate, generators)
    members = distribution(said, arch.levels, features.y_mean, features.y_std)
    return Bands(
        trip_id=a["trip"][rows].astype(str), time_s=index / settings.hz, members=members, warmup=since < WARMUP_S,
        outside=np.any(which, axis=1), power_kw=a["y"][rows], speed_kmh=fold.signals["speed_kmh"][rows],
        acceleration_ms2=fold.signals["acceleration_ms2"][rows], hz=settings.hz,
    )  # fmt: skip


def score(fold: Fold, label: str, settings: Settings, theta: torch.Tensor) -> list[dict[str, Any]]:
    """Calibrate on training trips that members left out, then score each test trip: sums over its rows after warm-up."""
    job, everything = fold.job, fold.rows(test=False)
    plan = members_of(job, settings)
    trips = np.unique(fold.arrays["trip"][everything])
    parts = []
    for inner in range(job.folds):
        held = np.flatnonzero(job.fold == inner)
        never = [n for n, m in enumerate(plan) if not np.isin(held, m.train).any()]
        rows = np.isin(fold.arrays["trip"], trips[held])
        parts.append(bands_of(fold, settings, passes(theta[never], settings), rows))
    speaking = passes(theta[:1], settings) if settings.kind == "dropout" else theta
    stretch, standing = fit_stretches(Bands.concat(parts), members=len(speaking))
    bands = bands_of(fold, settings, speaking, fold.rows(test=True))
    bands = bands.stretched(np.where(bands.standing, standing, stretch))
    about = {"seed": settings.seed, "task": fold.name, "model": label, "fold": fold.number}
    about |= {"stretch": stretch, "standing_stretch": standing}
    return [about | row for row in trip_rows(bands)]


def passes(theta: torch.Tensor, settings: Settings) -> torch.Tensor:
    if settings.kind != "dropout":
        return theta
    return theta.repeat_interleave(-(-settings.members // len(theta)), 0)


def trip_rows(bands: Bands) -> Iterator[dict[str, Any]]:
    """Sums over the scored rows of each trip, so that any two models can be compared trip by trip."""
    assert bands.power_kw is not None
    bands = bands.rows(np.isfinite(bands.power_kw) & ~bands.warmup)
    y = np.asarray(bands.power_kw)
    lower, upper = bands.interval(0.9)
    columns = {
        "sse": (bands.mean - y) ** 2, "sae": np.abs(bands.mean - y), "crps": bands.crps(y), "log_score": -bands.logpdf(y),
        "covered": (y >= lower) & (y <= upper), "width": upper - lower,
        "aleatoric2": bands.aleatoric**2, "epistemic2": bands.epistemic**2,
        "interval_score": upper - lower + 20 * (np.maximum(lower - y, 0) + np.maximum(y - upper, 0)),
    }  # fmt: skip
    for trip in dict.fromkeys(bands.trip_id.tolist()):
        own = bands.trip_id == trip
        yield {"trip_id": trip, "n": int(own.sum())} | {k: float(v[own].sum()) for k, v in columns.items()}


def fit_main(fold: Fold, settings: Settings, device: str) -> dict[str, torch.Tensor]:
    """Train t-anchor, its plain ensemble and its trip bootstrap side by side as one stack."""
    job = fold.job
    base = members_of(job, settings)
    members = base + [replace(m, temperature=0.0) for m in base] + base
    trainer = Trainer(job.architecture(settings), job.data, members, settings, device)
    weight = np.ones((len(members), len(job.fold)))
    lengths = np.bincount(job.data.trip)
    for m, member in enumerate(base):
        drawn = stream(settings.seed, member.number, BOOTSTRAP).exponential(size=len(job.fold))
        weight[2 * len(base) + m] = drawn / np.average(drawn[member.train], weights=lengths[member.train])
    trainer.terms = replace(trainer.terms, trip_weight=torch.tensor(weight, dtype=torch.float32, device=device))
    theta = run(trainer)
    names = ("t-anchor", "t-ensemble", "t-anchor trips")
    return dict(zip(names, theta.split(len(base)), strict=True))


def work(item: Item) -> str:
    """One (task, fold, stage) in a process of its own."""
    name, number, stage, device, out, deadline, chosen = item
    target = Path(out) / f"{name}_{number}_{stage}"
    if time.time() > deadline:
        return f"{target.name}: out of time"
    began = time.time()
    torch.set_num_threads(2)
    fold = load_fold(name, number, **chosen)

    def half(t: torch.Tensor) -> torch.Tensor:
        return t.half().float().to(device)

    earlier = Path(out) / BEFORE / f"{target.name}.json"
    before = json.loads(earlier.read_text()) if earlier.exists() else {}

    def as_before(settings: dict[str, Any]) -> Settings:
        return replace(Settings(**completed(settings)), seed=fold.settings.seed)

    if stage == "main":
        if before:
            settings, tried = as_before(before["settings"]), before["tried"]
        else:
            choice = tune(fold.job, fold.settings, device)
            settings, tried = choice.settings, choice.tried
        thetas = fit_main(fold, settings, device)
        trained = time.time() - began
        rows = [
            r
            for k, t in thetas.items()
            for r in score(
                fold, k, replace(settings, method="t-ensemble" if k == "t-ensemble" else "t-anchor"), half(t)
            )
        ]
        np.save(target.with_suffix(".npy"), thetas["t-anchor"].half().numpy())
        result: dict[str, Any] = {"settings": settings.to_dict(), "tried": tried, "seconds": trained}
    else:
        main = json.loads((Path(out) / f"{name}_{number}_main.json").read_text())
        base = as_before(main["settings"])
        rows, result = [], {}
        for method in EXTRA:
            if time.time() > deadline:
                break
            settings = as_before(before[method]) if method in before else replace(base, method=method)
            if settings.kind == "dropout" and method not in before:
                settings = tune(fold.job, settings, device).settings
            theta, _ = train(fold.job, settings, device)
            rows += score(fold, method, settings, half(theta))
            result[method] = settings.to_dict()
    target.with_suffix(".json").write_text(json.dumps(result | {"rows": rows}))
    return f"{target.name}: {time.time() - began:.0f} s"


def guarded(item: Item) -> str:
    """One failed item must not lose the others' results."""
    try:
        return work(item)
    except Exception:
        return traceback.format_exc()


def train_all(args: argparse.Namespace) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    scratch = Path(tempfile.mkdtemp())
    (scratch / BEFORE).mkdir()
    if args.main:  # settings as an earlier run chose them; where only extra is trained, what it begins from
        for key, result in json.loads((args.main / "folds.json").read_text()).items():
            for folder in (BEFORE, "") if key.endswith("_main") and "main" not in args.stages else (BEFORE,):
                (scratch / folder / f"{key}.json").write_text(json.dumps(result))
    Path(args.out).mkdir(parents=True, exist_ok=True)
    deadline = time.time() + args.seconds
    chosen = {k: v for k, v in (("members", args.members), ("epochs", args.epochs), ("seed", args.seed)) if v}
    warm = StudentMixture(np.zeros((2, 4)), np.ones((2, 4)), np.array([3.0, 4.0]))  # compile once, before the processes
    warm.crps(np.zeros(4)), warm.quantile(0.9)
    todo = [(name, n) for name in ("tesla_road", "i3_torque", "i3_motion", "tesla_dyno", "e208") for n in args.folds]
    todo = [(name, n) for name, n in todo if name in args.tasks]
    with multiprocessing.get_context("spawn").Pool(args.processes) as pool:
        for stage in args.stages:
            items = [(name, n, stage, device, str(scratch), deadline, chosen) for name, n in todo]  # the longest first
            for line in pool.imap_unordered(guarded, items):
                print(line, flush=True)
                pack(scratch, Path(args.out))
    shutil.rmtree(scratch)


def pack(scratch: Path, out: Path) -> None:
    """One json of all rows, one npz of weights per task."""
    results = {p.stem: json.loads(p.read_text()) for p in sorted(scratch.glob("*.json"))}
    (out / "folds.json").write_text(json.dumps(results))
    for name in NAMES:
        weights = {p.stem.split("_")[-2]: np.load(p) for p in sorted(scratch.glob(f"{name}_*_main.npy"))}
        if weights:
            np.savez(out / f"{name}.npz", **weights)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    prepare = verbs.add_parser("prepare")
    prepare.add_argument("--data", type=Path, required=True)
    training = verbs.add_parser("train")
    training.add_argument("--out", default=os.environ.get("OUT", ".bench/trained"))
    training.add_argument("--tasks", nargs="+", default=NAMES)
    training.add_argument("--folds", nargs="+", type=int, default=[0, 1, 2, 3, 4])
    training.add_argument("--stages", nargs="+", default=["main", "extra"])
    training.add_argument("--main", type=Path, help="an earlier run's folder, whose settings are taken")
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--members", type=int, help="fewer than 30, for a quick look (without --main)")
    training.add_argument("--epochs", type=int, help="fewer than the default, for a quick look (without --main)")
    training.add_argument("--processes", type=int, default=4)
    training.add_argument("--seconds", type=float, default=36000.0)
    scoring = verbs.add_parser("score")
    scoring.add_argument("--data", type=Path, required=True)
    scoring.add_argument(
        "--trained", type=Path, nargs="+", required=True, help="one folder a seed; models are the first's"
    )
    args = parser.parse_args()
    if args.verb == "train":
        train_all(args)
    else:
        from benchmarks.measured import fold_models  # needs tables, which a GPU machine may not have

        fold_models.prepare(args.data, HERE) if args.verb == "prepare" else fold_models.score(args.data, args.trained)


if __name__ == "__main__":
    main()
