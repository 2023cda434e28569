"""The paper's random search for architecture and training, resumable, with pruning.

Each trial trains a small anchored ensemble on a part of the training trips and is scored on the rest of them by the
members' mean log score in 1/kW (lower is better). The test trips of the vehicle are never touched.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evband.errors import SettingsError, require
from evband.features import Rows
from evband.files import write_whole
from evband.network.anchors import make_prior
from evband.settings import Settings, resolve
from evband.studies import figures
from evband.studies.cases import Case, cut
from evband.training.loop import Data, Member, Trainer
from evband.training.plan import Job, resolve_device

PARAMETERS = ("layers", "hidden", "prior_variance", "epochs", "rate", "optimiser")
REPORT_EVERY = 10  # epochs between two looks at the held-out trips
SAMPLERS = {"random": "RandomSampler", "tpe": "TPESampler"}  # Optuna's names
STARTUP_TRIALS = 5  # that no other is measured by
Report = Callable[[int, int, str], None]


@dataclass(frozen=True)
class Plan:
    """How to search; the space itself is the paper's, in `suggest`."""

    trials: int = 30
    sampler: str = "random"  # or "tpe"
    members: int = 3
    max_epochs: int | None = None  # a cap on the space's epochs, for a quick look
    seed: int = 0
    device: str = "auto"


def suggest(trial: Any, plan: Plan) -> dict[str, Any]:
    """One point of the paper's space."""
    epochs = trial.suggest_categorical("epochs", (50, 100, 300, 500))
    return {
        "layers": trial.suggest_categorical("layers", (2, 4, 6, 8)),
        "hidden": trial.suggest_categorical("hidden", (32, 64, 128)),
        "prior_variance": trial.suggest_float("prior_variance", 0.001, 0.1),
        "epochs": _capped(epochs, plan),
        "rate": trial.suggest_float("rate", 1e-5, 1e-2, log=True),
        "optimiser": trial.suggest_categorical("optimiser", ("adam", "sgd", "adagrad", "rmsprop")),
    }


def search(
    case: Case,
    plan: Plan,
    out: Path,
    report: Report | None = None,
    say: Callable[[str], None] | None = None,
) -> pl.DataFrame:
    """Go on until `plan.trials` are finished or pruned; writes `trials.csv`, `search.png` and `best.toml`.

    Everything is kept in `out/search.db` as it happens. Trial k draws from (seed, k), so an interrupted search repeats
    the trial it was in and ends where an uninterrupted one would.
    """
    _check(case, plan)
    optuna = import_optuna()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    out.mkdir(parents=True, exist_ok=True)
    study = _open(optuna, case, plan, out)
    finished = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
    data = _arrays(case, plan)
    try:
        while (done := len(study.get_trials(deepcopy=False, states=finished))) < plan.trials:
            study.sampler = _sampler(optuna, plan, done)
            study.optimize(lambda trial: _objective(trial, data, plan), n_trials=1)
            if report:
                last = study.trials[-1]
                report(done + 1, plan.trials, f"log score {_value(last):.3f}, best {_best(study):.3f}")
    except KeyboardInterrupt:
        if say:
            say(f"stopped: finished trials are in {out}; the same command continues")
        raise
    finally:
        trials = _write(study, finished, case, plan, out)
    return trials


def _check(case: Case, plan: Plan) -> None:
    """Refuse a plan before anything of it is stored."""
    if plan.trials < 1:
        raise SettingsError(f"--trials {plan.trials}: choose 1 or more.")
    if plan.max_epochs is not None and plan.max_epochs < 1:
        raise SettingsError(f"--max-epochs {plan.max_epochs}: choose 1 or more.")
    if plan.sampler not in SAMPLERS:
        raise SettingsError(f"--sampler {plan.sampler}: choose random or tpe.")
    _settings(case, plan)
    resolve_device(plan.device)


def _open(optuna: Any, case: Case, plan: Plan, out: Path) -> Any:
    """The study in `out`, new or of the same data and plan; trials that an interruption left running are closed."""
    from sqlalchemy.exc import SQLAlchemyError

    pruner = optuna.pruners.MedianPruner(n_startup_trials=STARTUP_TRIALS, n_warmup_steps=2 * REPORT_EVERY)
    storage = out / "search.db"
    try:
        study = optuna.create_study(
            storage=f"sqlite:///{storage}", study_name="search", direction="minimize", pruner=pruner,
            load_if_exists=True,
        )  # fmt: skip
    except (SQLAlchemyError, optuna.exceptions.OptunaError, RuntimeError):
        raise SettingsError(
            f"{storage}: it cannot be opened as a search; move it away or choose another --out."
        ) from None
    key = [case.fingerprint, case.features, case.hz, plan.sampler, plan.members, plan.max_epochs, plan.seed]
    if study.user_attrs.setdefault("key", key) != key:
        raise SettingsError(f"{out}: it holds a search on other trips or with other settings; choose another --out.")
    study.set_user_attr("key", key)
    for trial in study.get_trials(deepcopy=False, states=(optuna.trial.TrialState.RUNNING,)):
        study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
    return study


def _sampler(optuna: Any, plan: Plan, done: int) -> Any:
    seed = int(np.random.SeedSequence([plan.seed, done]).generate_state(1)[0])
    return getattr(optuna.samplers, SAMPLERS[plan.sampler])(seed=seed)


def _arrays(case: Case, plan: Plan) -> tuple[Job, float]:
    """Trip 0.. to train on (fold 1) and the trips held out of them (fold 0), scaled by the former; the scale of power."""
    from evband.preparing import prepare

    settings = _settings(case, plan)
    inner = cut(case.name, case.train, case.features, case.hz, seed=plan.seed)
    made, test = prepare(inner.train, settings), inner.test
    rows = Rows.join([made.rows, made.features.transform_all(test)])
    y = (rows.y - made.features.y_mean) / made.features.y_std
    fold = np.repeat([1, 0], [len(made.trips), len(test)])
    return Job(Data(rows.x, rows.r, y, rows.start, rows.trip), fold), made.features.y_std


def _settings(case: Case, plan: Plan, **chosen: Any) -> Settings:
    common = {"members": plan.members, "features": case.features, "hz": case.hz, "seed": plan.seed}
    return resolve("paper", **common, **chosen)


def _objective(trial: Any, arrays: tuple[Job, float], plan: Plan) -> float:
    """Train one point of the space; the log score after its last epoch, in 1/kW."""
    job, y_std = arrays
    settings = replace(resolve("paper", members=plan.members, seed=plan.seed), **suggest(trial, plan))
    arch = job.architecture(settings)
    prior = make_prior(arch, settings.prior, settings.prior_variance, None, None)
    train, held = np.flatnonzero(job.fold == 1), np.flatnonzero(job.fold == 0)
    chosen = settings.beta, settings.temperature, settings.trip_effect
    members = [Member(m, train, held, prior, *chosen) for m in range(plan.members)]
    trainer = Trainer(arch, job.data, members, settings, resolve_device(plan.device))
    score = math.inf
    while trainer.state.epoch < settings.epochs:
        trainer.epoch()
        last = trainer.state.epoch == settings.epochs
        if trainer.state.epoch % REPORT_EVERY and not last:
            continue
        scores = trainer.held_out_scores()
        assert scores is not None
        score = float(scores.mean()) + math.log(y_std)
        if not math.isfinite(score):
            score = math.inf
        trial.report(score, trainer.state.epoch)
        if not last and trial.should_prune():
            raise import_optuna().TrialPruned
    return score


def _write(study: Any, finished: tuple[Any, ...], case: Case, plan: Plan, out: Path) -> pl.DataFrame:
    rows = [
        {"trial": n, "state": t.state.name.lower(), "log_score": _value(t)}
        | {name: t.params.get(name) for name in PARAMETERS}
        | {"epochs": _capped(t.params.get("epochs"), plan)}
        | {"last_epoch": max(t.intermediate_values, default=0), "seconds": _seconds(t)}
        for n, t in enumerate(study.get_trials(deepcopy=False, states=finished))
    ]
    trials = pl.DataFrame(rows, infer_schema_length=None)
    if trials.is_empty():
        return trials
    write_whole(out / "trials.csv", trials.write_csv(float_precision=6))
    figures.search(trials, PARAMETERS, out / "search.png")
    complete = trials.filter(pl.col("state") == "complete").sort("log_score")
    if len(complete):
        best = complete.row(0, named=True)
        lines = [f"# held-out log score {best['log_score']:.4f}; evband fit --config best.toml", 'preset = "paper"']
        lines += [f"features = {json.dumps(case.features)}", f"hz = {json.dumps(case.hz)}"]
        lines += [f"{name} = {json.dumps(best[name])}" for name in PARAMETERS if name != "epochs"]
        lines.append(f"epochs = {best['last_epoch']}")
        write_whole(out / "best.toml", "\n".join(lines) + "\n")
    return trials


def _capped(epochs: Any, plan: Plan) -> Any:
    return epochs if epochs is None or plan.max_epochs is None else min(epochs, plan.max_epochs)


def _value(trial: Any) -> float:
    """A finished trial's score, or the last one a pruned trial reported."""
    if trial.value is not None:
        return float(trial.value)
    return float(trial.intermediate_values[max(trial.intermediate_values)]) if trial.intermediate_values else math.nan


def _best(study: Any) -> float:
    values = [t.value for t in study.get_trials(deepcopy=False) if t.state.name == "COMPLETE"]
    return min(values, default=math.nan)


def _seconds(trial: Any) -> float:
    return float(trial.duration.total_seconds()) if trial.duration else math.nan


def import_optuna() -> Any:
    """Optuna, or an error that says how to get it."""
    require("optuna", "a search")
    import optuna

    return optuna
