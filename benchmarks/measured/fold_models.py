"""The two ends of folds.py that need tables: signals out, fitted models and the result table in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common.results_file import MODELS, RESULTS, write
from benchmarks.common.tasks import TASKS, folds_of, split, trips_of
from benchmarks.measured.folds import EXTRA, trip_rows
from evband.features import FeatureMap
from evband.features.names import resolve_features
from evband.features.rows import power_of, starts_of
from evband.model import PowerModel
from evband.preparing import prepare as prepare_job
from evband.settings import Settings


def prepare(data: Path, out: Path) -> None:
    """Signals, power, resets, trips and outer folds of every task."""
    out.mkdir(parents=True, exist_ok=True)
    for task in TASKS.values():
        trips, folds = trips_of(task, data), folds_of(task, data)
        channels = resolve_features(task.features, trips)
        features = FeatureMap(channels=channels, hz=task.hz, edges=True, fade=True)
        signals = [features.signals_of(trip) for trip in trips]
        np.savez_compressed(
            out / f"{task.name}.npz",
            allow_pickle=False,
            **{f"signal.{k}": np.concatenate([s[k] for s in signals]) for k in signals[0]},
            y=np.concatenate([power_of(trip) for trip in trips]),
            start=np.concatenate([starts_of(trip) for trip in trips]),
            trip=np.repeat(np.arange(len(trips)), [len(trip) for trip in trips]),
            fold=np.array([folds[trip_id] for trip_id in trips.ids]),
            hz=task.hz,
            channels=np.array(channels),
        )
        print(task.name, trips, channels)


def score(data: Path, trained: list[Path]) -> None:
    """Build each fold's model from the first run's weights, save it, and write every model's rows, trip by trip."""
    MODELS.mkdir(parents=True, exist_ok=True)
    runs = [json.loads((folder / "folds.json").read_text()) for folder in trained]
    ids = {name: trips_of(task, data).ids for name, task in TASKS.items()}
    found = [row for run in runs for result in run.values() for row in result["rows"]]
    rows = [row | {"trip_id": ids[row["task"]][int(row["trip_id"])]} for row in found]
    for key, result in runs[0].items():
        name, number, stage = key.rsplit("_", 2)
        if stage == "main":
            with np.load(trained[0] / f"{name}.npz") as weights:
                theta = torch.from_numpy(weights[number].astype(np.float32))
            _save_model(data, name, int(number), result, theta)
            print(key, flush=True)
    sums = "one row a test trip: sums over its n rows after 30 s of warm-up, in kW (sse, aleatoric2, epistemic2: kW^2)"
    write(RESULTS / "folds.csv", in_order(rows), "after prepare and train, see its docstring; 30 members", sums)
    write(RESULTS / "folds_settings.csv", settings_rows(runs[0]))
    write(
        RESULTS / "folds_tuning.csv", tuning_rows(runs[0]), "score: CRPS of 30 members in standard deviations of power"
    )


def _save_model(data: Path, name: str, number: int, result: dict[str, Any], theta: torch.Tensor) -> None:
    """A fold's model, which must score here as it did where it was trained."""
    train, test = split(TASKS[name], data, number)
    settings = Settings(**result["settings"])
    model = PowerModel()
    model.finish(
        prepare_job(train, settings),
        settings,
        theta.cpu().numpy(),
        {"tuning": result["tried"], "seconds": result["seconds"]},
    )
    model.save(MODELS / f"{name}_{number}.evband")
    ids = trips_of(TASKS[name], data).ids
    there = {ids[int(row["trip_id"])]: row["crps"] for row in result["rows"] if row["model"] == "t-anchor"}
    for row in trip_rows(model.predict(test)):
        other = there[row["trip_id"]]
        assert abs(row["crps"] - other) < 1e-3 * abs(other) + 1e-6, (name, number, row, other)


def settings_rows(results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What each fold's models were trained with: beta, trip effect and temperature, and the rates that dropout methods chose."""
    rows = []
    for key, result in results.items():
        name, number, stage = key.rsplit("_", 2)
        chosen = {"t-anchor": result["settings"]} if stage == "main" else {m: result[m] for m in EXTRA if m in result}
        for model, s in chosen.items():
            told = {k: s[k] for k in ("beta", "trip_effect", "temperature", "dropout", "epochs", "members", "seed")}
            told["dropout"] = s["dropout"] if "dropout" in model else ""
            rows.append({"task": name, "fold": number, "model": model} | told)
    return sorted(rows, key=lambda row: (row["task"], row["fold"], row["model"]))


def tuning_rows(results: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """What the inner folds said of every candidate."""
    return [
        dict(zip(("task", "fold"), key.rsplit("_", 2), strict=False)) | tried | {"score": f"{tried['score']:.6g}"}
        for key, result in sorted(results.items())
        for tried in result.get("tried", ())
    ]


def in_order(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each (seed, log, model, trip) once, sorted, and rounded."""
    keys = [(row["seed"], row["task"], row["model"], row["trip_id"]) for row in rows]
    assert len(set(keys)) == len(keys), "some rows are there twice: give folders of different seeds"
    rows = sorted(rows, key=lambda row: (row["seed"], row["task"], row["model"], row["fold"], row["trip_id"]))
    return [{k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
