"""`fit --tune`: settings chosen on inner folds of the user's own trips.

Each candidate is four members a fold, scored on the trips they left out, by CRPS; of those within 0.5 % of the best, by the
mean absolute error of whole trips: better seconds need not be better trips, and most are asked about. What is best for one member is not best
for many, which err in different ways; but the CRPS is quadratic in the distribution, so that of M members drawn alike is
a + b / M on average, and one member and four of them tell what thirty would score. Settings are chosen one after the other,
the candidates of each side by side. A dropout method chooses its rate instead, by what its passes score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.bands.from_network import distribution
from evband.bands.quantile_sets import QuantileSet
from evband.errors import TripsError
from evband.network.heads import HEADS
from evband.network.predict import predict
from evband.network.streams import of_passes
from evband.settings import Settings
from evband.training.loop import Progress, Trainer, run
from evband.training.plan import Job, check_rows, members_of

SEARCHED: dict[str, tuple[float, ...]] = {
    "beta": (0.5, 0.0, 1.0),
    "trip_effect": (0.5, 0.25, 0.8, 0.0),
    "temperature": (0.1, 0.01, 1.0),
}
MEMBERS = 4  # of each candidate, a fold
AS_GOOD = 1.005  # times the least CRPS: among these the trips decide
SCORES = ("score", "trips")
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
    """The best candidate (`best_of`) on trips left out."""
    if job.folds < 2:
        raise TripsError(
            "--tune needs at least two different trips, one to fit and one to score; give more or leave it out."
        )
    check_rows(job, settings)
    if say:
        say(
            "tuning: candidates are trained on part of the trips and scored on the rest, then the model itself is trained"
        )
    search = _rates if settings.kind == "dropout" else _members
    tried = search(job, settings, device, progress)
    winner = best_of(tried)
    if say:
        say(f"tuning: {len(tried)} candidates, best {winner}")
    return Choice(replace(settings, **chosen_in(winner)), tried)


def best_of(tried: list[dict[str, Any]]) -> dict[str, Any]:
    """The least error over trips among candidates whose score is as good as the best; ties go to the earlier one."""
    least = min(float(row["score"]) for row in tried)
    good = [row for row in tried if float(row["score"]) <= least * (AS_GOOD if least > 0 else 1.0)]
    return min(good, key=lambda row: float(row.get("trips", row["score"])))


def chosen_in(row: dict[str, Any]) -> dict[str, Any]:
    """The settings of a candidate, without its scores."""
    return {k: v for k, v in row.items() if k not in SCORES}


def _members(job: Job, settings: Settings, device: str, progress: Watch) -> list[dict[str, Any]]:
    """CRPS of each candidate: every beta at the first trip effect and temperature, then the others with the best so far."""
    searched = dict(SEARCHED)
    if not HEADS[settings.head].scaled:  # has no scale to weight by, nor to keep apart from the location
        searched |= {"beta": (settings.beta,), "trip_effect": (settings.trip_effect,)}
    if settings.kind == "ensemble":  # has no anchors to weigh
        searched["temperature"] = (0.0,)
    best: dict[str, Any] = {name: values[0] for name, values in searched.items()}
    tried: list[dict[str, Any]] = []
    for name, values in searched.items():
        candidates = [best | {name: value} for value in values if not tried or value != best[name]]
        if candidates:
            tried += _crps(job, settings, candidates, device, progress)
            best = chosen_in(best_of(tried))
    return tried


def _crps(
    job: Job, settings: Settings, candidates: list[dict[str, Any]], device: str, progress: Watch
) -> list[dict[str, Any]]:
    """CRPS of candidates, from one training run."""
    members = members_of(job, replace(settings, members=MEMBERS * job.folds, early_stop=True))
    stacked = [replace(m, **candidate) for candidate in candidates for m in members]
    trainer = Trainer(job.architecture(settings), job.data, stacked, settings, device)
    theta = run(trainer, progress).to(device)
    one, four, over_trips = np.zeros((3, len(candidates)))
    for fold in range(job.folds):
        rows = _left_out(job, fold)
        y = job.data.y[rows]
        known = np.isfinite(y)
        own = range(fold, len(stacked), job.folds)  # member m leaves out fold m % folds
        predicted = predict(trainer.arch, theta[list(own)], job.data.x[rows], job.data.r[rows], job.data.start[rows])
        for c in range(len(candidates)):
            mine = list(range(MEMBERS * c, MEMBERS * (c + 1)))
            alone = [([m, m], one, 1 / MEMBERS) for m in mine]  # one member is a mixture of itself
            for which, total, share in [*alone, (mine, four, 1.0)]:
                mixture = distribution(predicted.part(which, known), trainer.arch.levels)
                total[c] += share * mixture.crps(y[known]).sum()
            over_trips[c] += _over_trips(mixture.mean - y[known], job.data.trip[rows][known])
    mean = of_many(one, four, settings.members) / job.data.own.sum()
    trips = over_trips / len(np.unique(job.data.trip[job.data.own]))
    return [
        candidate | {"score": float(s), "trips": float(t)}
        for candidate, s, t in zip(candidates, mean, trips, strict=True)
    ]


def _over_trips(error: NDArray[np.float64], trip: NDArray[np.int64]) -> float:
    """Sum of the absolute mean errors of these trips."""
    _, number = np.unique(trip, return_inverse=True)
    return float(np.abs(np.bincount(number, weights=error) / np.bincount(number)).sum())


def of_many(one: NDArray[np.float64], four: NDArray[np.float64], members: int) -> NDArray[np.float64]:
    """The CRPS a + b / M of an ensemble, from that of one member and of `MEMBERS`."""
    b = (one - four) / (1.0 - 1.0 / MEMBERS)
    return one - b * (1.0 - 1.0 / members)


def _rates(job: Job, settings: Settings, device: str, progress: Watch) -> list[dict[str, Any]]:
    """Log score (of quantiles the CRPS) of every dropout rate."""
    tried = []
    for rate in RATES:
        chosen = replace(settings, dropout=rate, early_stop=True)
        members = members_of(job, chosen)[-job.folds :]  # its first network leaves nothing out
        trainer = Trainer(job.architecture(chosen), job.data, members, chosen, device)
        theta, total = run(trainer, progress).to(device), 0.0
        for fold in range(job.folds):
            rows = _left_out(job, fold)
            passes = theta[fold].repeat(PASSES, 1)
            x, r, start = job.data.x[rows], job.data.r[rows], job.data.start[rows]
            predicted = predict(trainer.arch, passes, x, r, start, rate, of_passes(settings.seed, PASSES))
            known = np.isfinite(job.data.y[rows])
            y = job.data.y[rows][known]
            mixture = distribution(predicted.part(list(range(PASSES)), known), trainer.arch.levels)
            total += (mixture.crps(y) if isinstance(mixture, QuantileSet) else -mixture.logpdf(y)).sum()
        tried.append({"dropout": rate, "score": float(total / job.data.own.sum())})
    return tried


def _left_out(job: Job, fold: int) -> NDArray[np.bool_]:
    return job.data.original & np.isin(job.data.trip, np.flatnonzero(job.fold == fold))
