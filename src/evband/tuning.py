"""`fit --tune`: settings chosen on inner folds of the user's own trips, one after the other.

Each candidate is two members a fold, scored on the trips they left out, by CRPS. What is best for one member is not best
for many, which err in different ways; but the CRPS is quadratic in the distribution, so that of M members drawn alike is
a + b / M on average, and one and two of them tell what thirty would score. Of candidates within one standard error of
the best (over trips, paired) the one with the best log score is taken: trips are few, and the log score sees the tails.
Candidates of one step train side by side. A dropout method chooses its rate instead, by what its passes score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import TripsError
from evband.job import Job, check_rows, members_of
from evband.mixtures import Mixture
from evband.network.anchors import DROPOUT, stream
from evband.network.predict import predict
from evband.quantile_sets import QuantileSet
from evband.settings import Settings
from evband.spoken import distribution
from evband.training.loop import Trainer, run

STEPS = {  # what is chosen, in this order, from which values; the first of each until its turn comes
    "trip_effect": (0.5, 0.0, 0.8),
    "beta": (0.5, 0.0, 1.0),
    "temperature": (0.1, 1.0, 0.01),
}
RATES = (0.02, 0.05, 0.1, 0.2)
PASSES = 10  # through a dropout network


@dataclass(frozen=True)
class Choice:
    settings: Settings
    tried: list[dict[str, Any]]  # every candidate with its scores, in standard deviations of power


@dataclass(frozen=True)
class Candidate:
    values: dict[str, float]  # of the settings it tries
    crps: NDArray[np.float64]  # [trips], sums over the known rows of each, of as many members as asked for
    log_score: float  # mean; of quantiles, which have no density, the CRPS

    def told(self, rows: int) -> dict[str, Any]:
        return {**self.values, "crps": float(self.crps.sum()) / rows, "log_score": self.log_score}


def tune(job: Job, settings: Settings, device: str = "cpu", say: Callable[[str], None] | None = None) -> Choice:
    """The settings that score best on trips left out; ties go to the earlier one."""
    if job.folds < 2:
        raise TripsError(
            "--tune needs at least two different trips, one to fit and one to score; give more or leave it out"
        )
    check_rows(job, settings)
    if settings.kind == "dropout":
        tried = _rates(job, settings, device)
        best = {"dropout": min(tried, key=lambda row: float(row["score"]))["dropout"]}
    else:
        best, tried = _step_by_step(job, settings, device)
    if say:
        say(f"tuning: {len(tried)} candidates, best {best}")
    return Choice(replace(settings, **best), tried)


def _step_by_step(job: Job, settings: Settings, device: str) -> tuple[dict[str, float], list[dict[str, Any]]]:
    """Choose one setting after the other; returns the choice, and every candidate with its scores."""
    steps = dict(STEPS)
    if settings.head == "quantile":  # has no scale to weight by, nor to keep apart from the location
        del steps["trip_effect"], steps["beta"]
    if settings.kind == "ensemble":
        del steps["temperature"]
    best = Candidate({name: values[0] for name, values in steps.items()}, np.empty(0), np.nan)
    tried: list[Candidate] = []
    for name, values in steps.items():
        known = [best] if tried else []  # its first value was scored in the step before
        new = _scores(job, settings, [best.values | {name: value} for value in values[len(known) :]], device)
        tried += new
        best = choose(known + new)
    rows = int(np.isfinite(job.data.y).sum())
    return best.values, [candidate.told(rows) for candidate in tried]


def choose(candidates: list[Candidate]) -> Candidate:
    """The best log score of those whose CRPS is within one standard error of the lowest."""
    lead = min(candidates, key=lambda c: float(c.crps.sum()))
    close = []
    for candidate in candidates:
        worse = candidate.crps - lead.crps
        error = np.sqrt(len(worse) * np.var(worse, ddof=1)) if len(worse) > 1 else 0.0  # of the sum over trips
        if worse.sum() <= error:
            close.append(candidate)
    return min(close, key=lambda c: c.log_score)


def _scores(job: Job, settings: Settings, values: list[dict[str, float]], device: str) -> list[Candidate]:
    """Scores of candidates, from one training run."""
    members = members_of(job, replace(settings, members=2 * job.folds, early_stop=True))
    stacked = [replace(m, **chosen) for chosen in values for m in members]  # type: ignore[arg-type]
    trainer = Trainer(job.architecture(settings), job.data, stacked, settings.training(), device)
    theta = run(trainer).to(device)
    one, two = np.zeros((2, len(values), len(job.fold)))  # of each candidate and trip
    log_score = np.zeros(len(values))
    for fold in range(job.folds):
        rows = _left_out(job, fold)
        y, trip = job.data.y[rows], job.data.trip[rows]
        known = np.isfinite(y)
        own = range(fold, len(stacked), job.folds)  # member m leaves out fold m % folds
        said = predict(trainer.arch, theta[list(own)], job.data.x[rows], job.data.r[rows], job.data.start[rows])
        for c in range(len(values)):
            first, second = 2 * c, 2 * c + 1
            for which, total, share in (
                ([first, first], one, 0.5),  # one member is a mixture of itself
                ([second, second], one, 0.5),
                ([first, second], two, 1.0),
            ):
                mixture = distribution(said.part(which, known), trainer.arch.levels)
                total[c] += share * np.bincount(trip[known], mixture.crps(y[known]), minlength=len(job.fold))
            log_score[c] += _density_score(mixture, y[known])
    crps = of_many(one, two, settings.members)
    log_score = log_score / np.isfinite(job.data.y).sum()
    return [Candidate(*scored) for scored in zip(values, crps, log_score.tolist(), strict=True)]


def of_many(one: NDArray[np.float64], two: NDArray[np.float64], members: int) -> NDArray[np.float64]:
    """The CRPS of an ensemble, from that of one member and of two: a + b / M."""
    return one - 2.0 * (one - two) * (1.0 - 1.0 / members)


def _rates(job: Job, settings: Settings, device: str) -> list[dict[str, Any]]:
    """Log score (of quantiles the CRPS) of every dropout rate."""
    tried = []
    for rate in RATES:
        chosen = replace(settings, dropout=rate, early_stop=True)
        members = members_of(job, chosen)[-job.folds :]  # its first network leaves nothing out
        trainer = Trainer(job.architecture(chosen), job.data, members, chosen.training(), device)
        theta, total = run(trainer).to(device), 0.0
        for fold in range(job.folds):
            rows = _left_out(job, fold)
            passes = theta[fold].repeat(PASSES, 1)
            masks = [stream(settings.seed, p, DROPOUT, 0) for p in range(PASSES)]
            x, r, start = job.data.x[rows], job.data.r[rows], job.data.start[rows]
            said = predict(trainer.arch, passes, x, r, start, rate, masks)
            known = np.isfinite(job.data.y[rows])
            y = job.data.y[rows][known]
            mixture = distribution(said.part(list(range(PASSES)), known), trainer.arch.levels)
            total += _density_score(mixture, y)
        tried.append({"dropout": rate, "score": float(total / np.isfinite(job.data.y).sum())})
    return tried


def _left_out(job: Job, fold: int) -> NDArray[np.bool_]:
    return np.isin(job.data.trip, np.flatnonzero(job.fold == fold))


def _density_score(mixture: Mixture, y: NDArray[np.float64]) -> float:
    """Sum of log scores, or of CRPS where there is no density."""
    return float((mixture.crps(y) if isinstance(mixture, QuantileSet) else -mixture.logpdf(y)).sum())
