"""From settings and arrays to the members to train: folds of trips, priors, and the training run itself.

A job knows arrays only, no tables, so that it can be prepared on one machine and trained on another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evband.errors import SettingsError, TripsError
from evband.features import physics
from evband.features.folds import balanced
from evband.features.physics import Limits
from evband.features.road_load import FEW_TRIPS, RIDGE
from evband.network.anchors import Prior, make_prior
from evband.network.architecture import Architecture
from evband.settings import Settings, check_run
from evband.training.checkpoint import Checkpoint, CheckpointMismatch
from evband.training.loop import Data, Member, Progress, Trainer, run

FOLDS = 5
FEW_RIDGE = 1e-2  # over the number of trips squared, where they are few


@dataclass(frozen=True)
class Job:
    """Arrays of the training trips, the fold of each trip, and the limits that physics sets the road-load path."""

    data: Data
    fold: NDArray[np.int64]  # [trips]
    limits: Limits | None = None
    _solved: dict[int, NDArray[np.float64]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def folds(self) -> int:
        return int(self.fold.max()) + 1

    def architecture(self, settings: Settings) -> Architecture:
        return settings.architecture(self.data.x.shape[1], self.data.r.shape[1])

    def without(self, fold: int) -> NDArray[np.int64]:
        """The trips that have rows, but for those of one fold."""
        trips = np.unique(self.data.trip)
        return np.asarray(trips[self.fold[trips] != fold])

    def road_weights(self, fold: int) -> NDArray[np.float64]:
        """Least squares on the trips without this fold's, solved once: anchors and energy both stand on it."""
        if fold not in self._solved:
            self._solved[fold] = least_squares(self.data, self.without(fold), self.limits)
        return self._solved[fold]

    def save(self, path: Path) -> None:
        d = self.data
        copy = np.zeros(len(d.y), np.int64) if d.copy is None else d.copy
        limits = self.limits or Limits(np.zeros((0, d.r.shape[1])), np.zeros(0))
        np.savez(path, x=d.x, r=d.r, y=d.y, start=d.start, trip=d.trip, fold=self.fold, copy=copy, limit=limits.rows, least=limits.least)  # fmt: skip

    @classmethod
    def load(cls, path: Path) -> Job:
        with np.load(path, allow_pickle=False) as f:
            copy = f["copy"] if f["copy"].any() else None
            data = Data(f["x"], f["r"], f["y"], f["start"], f["trip"], copy)
            return cls(data, f["fold"], Limits(f["limit"], f["least"]))


def repeats(speeds: list[NDArray[np.float64]]) -> NDArray[np.int64]:
    """A group number for each trip: repeats of one drive (a test cycle driven twice, say) share theirs.

    Repeats in another fold would flatter: two drives are one if their lengths are within 10 % and the quantiles of
    their speeds within 2 km/h (root mean square).
    """
    quantiles = np.stack([np.quantile(s[np.isfinite(s)], np.linspace(0, 1, 41)) for s in speeds])
    group = np.arange(len(speeds))
    for i in range(len(speeds)):
        for k in range(i):
            alike = abs(len(speeds[i]) - len(speeds[k])) <= 0.1 * max(len(speeds[i]), len(speeds[k]))
            if alike and np.sqrt(np.mean((quantiles[i] - quantiles[k]) ** 2)) < 2.0:
                group[i] = group[k]
                break
    return group


def assign_folds(rows: NDArray[np.int64], group: NDArray[np.int64], folds: int = FOLDS) -> NDArray[np.int64]:
    """A fold for each trip, whole groups together, balanced in ``rows``."""
    _, which = np.unique(group, return_inverse=True)
    return balanced(np.bincount(which, weights=rows), folds)[which]


def least_squares(data: Data, trips: NDArray[np.int64], limits: Limits | None = None) -> NDArray[np.float64]:
    """Ridge solution of power on the road-load features over the known rows of these trips, within these limits."""
    rows = data.own & np.isin(data.trip, trips)
    r, count = data.r[rows].astype(np.float64), max(1, rows.sum())
    return physics.least_squares(r.T @ r / count, r.T @ data.y[rows] / count, ridge_of(len(trips)), limits)


def ridge_of(trips: int) -> float:
    """Of least squares on so many trips."""
    return FEW_RIDGE / trips**2 if 0 < trips < FEW_TRIPS else RIDGE


def left_out(job: Job, settings: Settings) -> list[int]:
    """The fold that each network leaves out; -1: none."""
    crossed = _crossed(job, settings)
    if settings.kind == "dropout":
        return [-1, *range(job.folds)] if crossed else [-1]
    return [m % job.folds if crossed else -1 for m in range(settings.members)]


def members_of(job: Job, settings: Settings, prior_mean: Tensor | None = None) -> list[Member]:
    """The networks to train. ``prior_mean [networks, parameters]``: of a trained model, a network for each in turn.

    With early stopping or calibration, member m leaves out fold ``m % folds`` and no other knows of it: those trips
    say which of its weights to keep, and are predicted by members that never trained on them. A dropout method trains one network
    on everything (number 0), and one per fold beside it for calibration.
    """
    arch, trips = job.architecture(settings), np.unique(job.data.trip)
    temperature = 0.0 if settings.kind == "ensemble" else settings.temperature
    priors: dict[int, Prior] = {}
    members = []
    for number, fold in enumerate(left_out(job, settings)):
        train, held = job.without(fold), trips[job.fold[trips] == fold]
        if prior_mean is not None:
            mean = prior_mean[number % len(prior_mean)]
            prior = make_prior(arch, settings.prior, settings.prior_variance, mean=mean)
        else:
            if fold not in priors:
                road = job.road_weights(fold) if arch.road else None
                priors[fold] = make_prior(arch, settings.prior, settings.prior_variance, road)
            prior = priors[fold]
        held = held if settings.early_stop else held[:0]
        members.append(Member(number, train, held, prior, settings.beta, temperature, settings.trip_effect))
    return members


def check_rows(job: Job, settings: Settings) -> None:
    """Refuse what cannot be trained on."""
    known = int(job.data.own.sum())
    if known < settings.window:
        raise TripsError(
            f"only {known} rows have measured power, less than one window of {settings.window}; give longer or more trips."
        )
    for name, values in (("inputs", job.data.x), ("road-load features", job.data.r)):
        if not np.isfinite(values).all():
            raise TripsError(f"the {name} hold values that are not finite; inspect the log and drop them.")


def train(
    job: Job,
    settings: Settings,
    device: str = "cpu",
    prior_mean: Tensor | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoint: Checkpoint | None = None,
    start: NDArray[np.float32] | None = None,
) -> tuple[Tensor, dict[str, Any]]:
    """Train every member of the job; returns ``theta [networks, parameters]`` and a summary.

    ``start [networks, parameters]``: where they start; a NaN is drawn, as all are without it.
    """
    check_rows(job, settings)
    members = members_of(job, settings, prior_mean)
    trainer = Trainer(job.architecture(settings), job.data, members, settings, device, choices_of(job, settings))
    if start is not None:
        given = torch.from_numpy(start).to(trainer.device)
        with torch.no_grad():
            trainer.theta.copy_(torch.where(given.isnan(), trainer.theta, given))
    if checkpoint is not None:
        try:
            checkpoint.restore(trainer)
        except CheckpointMismatch as problem:
            raise SettingsError(str(problem)) from None
    theta = run(trainer, progress, checkpoint)
    best = trainer.state.best_score.cpu().numpy()
    summary = {
        "epochs_run": trainer.state.epoch,
        "steps_per_epoch": trainer.steps,
        "restarts": {str(k): v for k, v in trainer.state.restarts.items()},
        "held_out_log_score": float(np.mean(best)) if np.isfinite(best).all() else None,
        "history": [[e, loss, score if np.isfinite(score) else None] for e, loss, score in trainer.state.history],
    }
    return theta, summary


def choices_of(job: Job, settings: Settings) -> list[NDArray[np.int64]]:
    """The trips that any member may train on, whoever trains beside it: all but one fold, or all."""
    trips = np.unique(job.data.trip)
    kept = [job.without(fold) for fold in range(job.folds)] if _crossed(job, settings) else [trips]
    return [*kept, trips] if settings.kind == "dropout" else kept


def _crossed(job: Job, settings: Settings) -> bool:
    """Whether members leave out a fold each."""
    return job.folds > 1 and (settings.early_stop or settings.calibrate)


def resolve_device(device: str) -> str:
    check_run({"device": device})
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise SettingsError("device cuda was asked for but no CUDA GPU is usable here; use --device cpu.")
    return "cuda" if device != "cpu" and available else "cpu"
