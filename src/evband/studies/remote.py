"""Prepare arrays here, train them where a GPU is, take the weights back.

    evband study compare --vehicles all --prepare jobs/         # here: arrays and settings, one pair per fit
    python -m evband.studies.remote jobs/                       # there: needs torch, NumPy and SciPy, nothing else
    evband study compare --vehicles all --trained jobs/ --out study/

Training needs no tables: this module, `evband.training.plan` and what they import run where only PyTorch, NumPy and SciPy are.
"""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evband.errors import SettingsError
from evband.settings import Settings, completed
from evband.training.plan import Job, resolve_device, train

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.studies.cases import Case
    from evband.studies.runs import Recipe


def stem(case: Case, recipe: Recipe) -> str:
    """The name under which a fit travels."""
    from evband.studies.cases import file_name

    s = recipe.settings(case)
    how = f"{recipe.method}-{recipe.preset}-{s.prior_variance:g}-{s.prior_scale}-{s.members}x{s.epochs}x{s.batch}-{s.dropout:g}"
    return file_name(f"{case.name}-{how}-{s.features}-{s.hz:g}-{case.fingerprint}-{recipe.seed}")


def prepare_case(case: Case, recipe: Recipe, folder: Path) -> Path:
    """Write the arrays and the settings of one fit."""
    from evband.preparing import prepare
    from evband.studies.runs import TUNED

    if recipe.dropout_asked == TUNED:
        raise SettingsError(f"{recipe.method}: its rate cannot be tuned before training; give --dropout RATE.")
    settings = recipe.settings(case)
    job = prepare(case.train, settings).job
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{stem(case, recipe)}.npz"
    job.save(path)
    description, text = path.with_suffix(".json"), json.dumps(settings.to_dict(), indent=1)
    if description.exists() and description.read_text() != text:
        path.with_suffix(".theta.npz").unlink(missing_ok=True)
    description.write_text(text)
    return path


def _saved(description: Path) -> dict[str, Any]:
    """A prepared fit's settings."""
    try:
        saved = completed(json.loads(description.read_text()))
        return {f.name: saved[f.name] for f in fields(Settings)}
    except (OSError, ValueError, TypeError, KeyError):
        raise SettingsError(f"{description}: the fit's settings are missing or damaged; prepare it again.") from None


def train_folder(folder: Path, device: str = "auto") -> list[Path]:
    """Train every prepared fit that has no weights yet."""
    done = []
    for description in sorted(folder.glob("*.json")):
        weights = description.with_suffix(".theta.npz")
        if weights.exists():
            continue
        settings = Settings(**_saved(description))
        theta, summary = train(Job.load(description.with_suffix(".npz")), settings, resolve_device(device))
        part = weights.with_suffix(".part")
        with part.open("wb") as file:
            np.savez(file, theta=theta.cpu().numpy(), summary=np.array(json.dumps(summary)))
        part.replace(weights)
        done.append(weights)
        print(f"{weights.name}: trained", file=sys.stderr, flush=True)
    return done


def collect(model: PowerModel, case: Case, recipe: Recipe, folder: Path) -> None:
    """Make a fitted model of weights that were trained elsewhere."""
    from evband.preparing import prepare

    name, settings = stem(case, recipe), recipe.settings(case)
    weights = folder / f"{name}.theta.npz"
    if not weights.exists():
        raise SettingsError(
            f"{weights}: there are no such weights; run python -m evband.studies.remote {folder} first."
        )
    saved = _saved(folder / f"{name}.json")
    other = [f"{k} {saved[k]} (now {v})" for k, v in settings.to_dict().items() if saved[k] != v]
    if other:
        raise SettingsError(f"{weights}: it was trained with {', '.join(other)}; prepare and train it again.")
    prepared = prepare(case.train, settings)
    with np.load(weights, allow_pickle=False) as file:
        theta, summary = file["theta"], json.loads(str(file["summary"]))
    model.finish(prepared, settings, theta, summary | {"tuning": []})


if __name__ == "__main__":
    train_folder(Path(sys.argv[1]), *sys.argv[2:3])
