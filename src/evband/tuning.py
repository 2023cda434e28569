"""`fit --tune`: settings chosen on inner folds of the user's own trips.

Each candidate is two members a fold, scored on the trips they left out, by CRPS. What is best for one member is not best
for many, which err in different ways; but the CRPS is quadratic in the distribution, so that of M members drawn alike is
a + b / M on average, and one and two of them tell what thirty would score. Candidates that differ only in what a member
carries (beta, trip effect) train side by side. A dropout method chooses its rate instead, by what its passes score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import TripsError
from evband.job import Job, check_rows, members_of
from evband.network.anchors import DROPOUT, stream
from evband.network.predict import predict
from evband.quantile_sets import QuantileSet
from evband.settings import Settings
from evband.spoken import distribution
from evband.training.loop import Progress, Trainer, run

BETAS = (0.5, 0.0, 1.0)
EFFECTS = (0.5, 0.0, 0.8)
TEMPERATURES = (0.1, 1.0)
RATES = (0.02, 0.05, 0.1, 0.2)
PASSES = 10  # through a dropout network

Watch = Callable[[Progress], None] | None


@dataclass(frozen=True)
class Choice:
    settings: Settings
    tried: list[dict[str, Any]]  # every candidate with its score, in standard deviations of power


def tune(
    job: Job,
    settings: Settings,
    device: str = "cpu",
    say: Callable[[str], None] | None = None,
    progress: Watch = None,
) -> Choice:
    """The candidate with the lowest score on trips left out; ties go to the earlier one."""
    if job.folds < 2:
        raise TripsError(
            "--tune needs at least two different trips, one to fit and one to score; give more or leave it out"
        )
    check_rows(job, settings)
    if say:
        say(
            "tuning: candidates are trained on part of the trips and scored on the rest, then the model itself is trained"
        )
    search = _rates if settings.kind == "dropout" else _members
    tried = search(job, settings, device, progress)
    winner = min(tried, key=lambda row: float(row["score"]))
    if say:
        say(f"tuning: {len(tried)} candidates, best {winner}")
    return Choice(replace(settings, **{k: v for k, v in winner.items() if k != "score"}), tried)


def _members(job: Job, settings: Settings, device: str, progress: Watch) -> list[dict[str, Any]]:
    """CRPS of every beta with every trip effect, then of the other temperatures with the best of those."""
    quantile = settings.head == "quantile"  # has no scale to weight by, nor to keep apart from the location
    betas, effects = ((settings.beta,), (settings.trip_effect,)) if quantile else (BETAS, EFFECTS)
    first, *others = (0.0,) if settings.kind == "ensemble" else TEMPERATURES  # without anchors nothing to weigh
    tried = _crps(job, settings, list(product(betas, effects, [first])), device, progress)
    best = min(tried, key=lambda row: float(row["score"]))
    if others:
        more = [(best["beta"], best["trip_effect"], other) for other in others]
        tried += _crps(job, settings, more, device, progress)
    return tried


def _crps(
    job: Job, settings: Settings, candidates: list[tuple[float, float, float]], device: str, progress: Watch
) -> list[dict[str, Any]]:
    """CRPS of candidates (beta, trip effect, temperature), from one training run."""
    members = members_of(job, replace(settings, members=2 * job.folds, early_stop=True))
    stacked = [replace(m, beta=b, trip_effect=e, temperature=t) for b, e, t in candidates for m in members]
    trainer = Trainer(job.architecture(settings), job.data, stacked, settings.training(), device)
    theta = run(trainer, progress).to(device)
    one, two = np.zeros((2, len(candidates)))
    for fold in range(job.folds):
        rows = _left_out(job, fold)
        y = job.data.y[rows]
        known = np.isfinite(y)
        own = range(fold, len(stacked), job.folds)  # member m leaves out fold m % folds
        said = predict(trainer.arch, theta[list(own)], job.data.x[rows], job.data.r[rows], job.data.start[rows])
        for c in range(len(candidates)):
            first, second = 2 * c, 2 * c + 1
            for which, total, share in (
                ([first, first], one, 0.5),  # one member is a mixture of itself
                ([second, second], one, 0.5),
                ([first, second], two, 1.0),
            ):
                mixture = distribution(said.part(which, known), trainer.arch.levels)
                total[c] += share * mixture.crps(y[known]).sum()
    mean = of_many(one, two, settings.members) / np.isfinite(job.data.y).sum()
    return [
        {"beta": b, "trip_effect": e, "temperature": t, "score": float(s)}
        for (b, e, t), s in zip(candidates, mean, strict=True)
    ]


def of_many(one: NDArray[np.float64], two: NDArray[np.float64], members: int) -> NDArray[np.float64]:
    """The CRPS of an ensemble, from that of one member and of two: a + b / M."""
    return one - 2.0 * (one - two) * (1.0 - 1.0 / members)


def _rates(job: Job, settings: Settings, device: str, progress: Watch) -> list[dict[str, Any]]:
    """Log score (of quantiles the CRPS) of every dropout rate."""
    tried = []
    for rate in RATES:
        chosen = replace(settings, dropout=rate, early_stop=True)
        members = members_of(job, chosen)[-job.folds :]  # its first network leaves nothing out
        trainer = Trainer(job.architecture(chosen), job.data, members, chosen.training(), device)
        theta, total = run(trainer, progress).to(device), 0.0
        for fold in range(job.folds):
            rows = _left_out(job, fold)
            passes = theta[fold].repeat(PASSES, 1)
            masks = [stream(settings.seed, p, DROPOUT, 0) for p in range(PASSES)]
            x, r, start = job.data.x[rows], job.data.r[rows], job.data.start[rows]
            said = predict(trainer.arch, passes, x, r, start, rate, masks)
            known = np.isfinite(job.data.y[rows])
            y = job.data.y[rows][known]
            mixture = distribution(said.part(list(range(PASSES)), known), trainer.arch.levels)
            total += (mixture.crps(y) if isinstance(mixture, QuantileSet) else -mixture.logpdf(y)).sum()
        tried.append({"dropout": rate, "score": float(total / np.isfinite(job.data.y).sum())})
    return tried


def _left_out(job: Job, fold: int) -> NDArray[np.bool_]:
    return np.isin(job.data.trip, np.flatnonzero(job.fold == fold))
