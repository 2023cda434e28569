"""`fit --tune`: settings chosen on inner folds of the user's own trips, by CRPS.

Each candidate is one member a fold, scored on the trips it left out. Candidates that differ only in what a member
carries (beta, temperature) train side by side as one ensemble.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import beta as beta_function
from scipy.special import gammaln, ndtr, stdtr

from evband.errors import TripsError
from evband.job import Job, check_rows, members_of
from evband.network.predict import Prediction, predict
from evband.settings import Settings
from evband.training.loop import Trainer, run

BETAS = (0.5, 1.0)
TEMPERATURES = (1.0, 10.0)


@dataclass(frozen=True)
class Choice:
    settings: Settings
    tried: list[dict[str, Any]]  # every candidate with its CRPS in standard deviations of power


def tune(
    variants: dict[bool, Job],  # hinges -> the job with or without them
    settings: Settings,
    device: str = "cpu",
    say: Callable[[str], None] | None = None,
) -> Choice:
    """The candidate with the lowest CRPS on trips left out; ties go to the earlier one."""
    if any(job.folds < 2 for job in variants.values()):
        raise TripsError(
            "--tune needs at least two different trips, one to fit and one to score; give more or leave it out"
        )
    tried: list[dict[str, Any]] = []
    for hinges, job in variants.items():
        check_rows(job, settings)
        rows = _score(job, replace(settings, hinges=hinges), device)
        tried += [{"hinges": hinges, **row} for row in rows]
        if say:
            best = min(rows, key=lambda row: float(row["crps"]))
            say(f"tuning: hinges {'on' if hinges else 'off'}: best {best}")
    winner = min(tried, key=lambda row: float(row["crps"]))
    chosen: dict[str, Any] = {k: v for k, v in winner.items() if k != "crps"}
    return Choice(replace(settings, **chosen), tried)


def _score(job: Job, settings: Settings, device: str) -> list[dict[str, float]]:
    """CRPS of every (beta, temperature), from one training run."""
    one_a_fold = replace(settings, members=job.folds, early_stop=True)
    members = members_of(job, one_a_fold)[-job.folds :]  # a dropout method's first network left nothing out
    betas = (settings.beta,) if settings.head == "quantile" else BETAS  # quantiles have no scale to weight by
    temperatures = (0.0,) if settings.kind == "ensemble" else TEMPERATURES  # nor a plain ensemble anchors
    combinations = list(product(betas, temperatures))
    stacked = [replace(m, beta=beta, temperature=temperature) for beta, temperature in combinations for m in members]
    trainer = Trainer(job.architecture(settings), job.data, stacked, settings.training(), device)
    theta = run(trainer).to(device)
    data = job.data
    said = predict(trainer.arch, theta, data.x, data.r, data.start)
    known = np.isfinite(data.y)
    out = []
    for c, (beta, temperature) in enumerate(combinations):
        total = 0.0
        for k, member in enumerate(members):
            rows = known & np.isin(data.trip, np.setdiff1d(data.trip, member.train))
            total += float(member_crps(said, c * len(members) + k, rows, data.y[rows], trainer.arch.levels).sum())
        out.append({"beta": beta, "temperature": temperature, "crps": total / known.sum()})
    return out


def member_crps(
    said: Prediction, m: int, rows: NDArray[np.bool_], y: NDArray[np.float64], levels: tuple[float, ...]
) -> NDArray[np.float64]:
    """CRPS of one member at rows: closed form of the Student-t (Jordan, Krueger & Lerch 2019) or the Gaussian, or from quantiles."""
    if said.quantiles is not None:
        error = y - said.quantiles[m][:, rows]
        tau = np.array(levels)[:, None]
        return np.asarray(2 * np.maximum(tau * error, (tau - 1) * error).mean(0))
    assert said.scale is not None
    s = said.scale[m, rows].astype(np.float64)
    z = (y - said.mu[m, rows]) / s
    if said.nu is None:
        return np.asarray(s * (z * (2 * ndtr(z) - 1) + np.sqrt(2 / np.pi) * np.exp(-z * z / 2) - 1 / np.sqrt(np.pi)))
    nu = said.nu[m]
    density = np.exp(gammaln((nu + 1) / 2) - gammaln(nu / 2) - (nu + 1) / 2 * np.log1p(z * z / nu)) / np.sqrt(
        nu * np.pi
    )
    spread = 2 * np.sqrt(nu) / (nu - 1) * beta_function(0.5, nu - 0.5) / beta_function(0.5, nu / 2) ** 2
    return np.asarray(s * (z * (2 * stdtr(nu, z) - 1) + 2 * density * (nu + z * z) / (nu - 1) - spread))
