"""One network in place of the ensemble: distillation, or the average of the weights.

Distillation teaches one network the mixture's mean, aleatoric and epistemic deviation of every row, read off in one
pass. It then stands for two Student-t's at ``mean -+ epistemic`` with the scale that the aleatoric part asks for, so
mean, both parts, bands and scores follow as for any ensemble. Its epistemic part is a regression on inputs it has
seen: to show it some that the car has not met, the ensemble is also asked about drives whose channels are scaled by
random factors. Further away it need not rise, where an ensemble's does; keep the ensemble where that matters.

Averaging weights is meaningless in general, since hidden units of members with anchors of their own are permuted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.bands import Bands, StudentMixture
from evband.channels import EDGES
from evband.errors import SettingsError, TripsError, require
from evband.model import PowerModel
from evband.network.standard import scale_of_deviation
from evband.settings import Settings
from evband.training.windows import epoch_shape, find_segments
from evband.trips import Trip, Trips

if TYPE_CHECKING:
    from evband.training.distillation import Lesson

WINDOW, BURN_IN, BATCH = 512, 128, 16  # long ones: the teacher answers with a state carried through the whole drive
STEPS = 6000  # of the optimiser, however much or little there is to learn from
PERTURBATIONS = (0.08, 0.3)  # deviations of the logarithm of each channel's factor: near what was driven, and far
MATCHED_LEVELS = (0.5, 0.8)  # bands by whose widths the student's degrees of freedom are chosen
FLOOR = 1e-3  # of deviations, in standardised units


def distill(
    model: PowerModel,
    trips: Trips,
    *,
    steps: int = STEPS,
    hidden: int | None = None,  # units per layer; by default the members', and at least 64
    seed: int = 0,
    progress: Callable[[int, int, float], None] | None = None,  # (epoch, epochs, loss)
) -> PowerModel:
    """One network that gives the ensemble's mean, aleatoric and epistemic part, taught on these trips (power is not needed).

    >>> import evband, polars as pl
    >>> drive = pl.DataFrame({"time_s": [float(t) for t in range(90)], "speed_kmh": [50.0 + t % 7 for t in range(90)]})
    >>> one = distill(evband.start("Renault Zoe 52 kWh"), evband.read_trips(drive), steps=3)
    >>> one.settings_.members
    1
    """
    require("torch", "distillation")
    from evband.training.distillation import teach

    if model.settings_.head == "distilled":
        raise SettingsError("this model is distilled already; collapse the ensemble that it was made of.")
    trips = model.on_grid(trips)
    everything = [*trips, *_perturbed(model, trips, seed)]
    bands = model.predict(Trips(everything))
    known = model.calibration_
    bands = bands.stretched(known.moving / np.asarray(bands.stretch))  # no jump in width where the car stops
    lesson = _lesson(model, everything, bands)
    units = hidden or max(64, model.settings_.hidden)
    settings = replace(
        model.settings_, method="distilled", members=1, hidden=units, nu=_degrees(bands), seed=seed, calibrate=False
    )
    arch = settings.architecture(lesson.x.shape[1], lesson.r.shape[1])
    plan = Settings(seed=seed, window=WINDOW, burn_in=BURN_IN, batch=BATCH)
    window, batches, batch = epoch_shape([lesson.segments], plan.window, plan.burn_in, plan.batch)
    plan = replace(plan, window=window, batch=batch, epochs=-(-steps // batches))
    road = model.params_["road_w"].mean(0) if arch.road else None  # a linear path may be averaged
    student = _sibling(model, settings, teach(arch, lesson, road, plan, batches, progress))
    student.calibration_ = known.after("taught")
    student.summary_ = {
        **_without_scores(model),
        "epochs_run": plan.epochs,
        "collapsed": {"how": "distill", "members": _members(model), "trips": len(trips)},
    }
    return student


def average(model: PowerModel) -> PowerModel:
    """One network with the members' mean weights. Measure what it costs (`cost`) before any use."""
    if model.settings_.kind in ("dropout", "distilled"):
        raise SettingsError(f"a {model.settings_.method} model has one network only; there is nothing to average.")
    one = _sibling(model, replace(model.settings_, members=1), model.theta_.mean(0, keepdims=True))
    one.calibration_ = model.calibration_.after("averaged")
    one.summary_ = {**_without_scores(model), "collapsed": {"how": "average", "members": _members(model)}}
    return one


def _without_scores(model: PowerModel) -> dict[str, object]:
    """What the ensemble's summary says of the training trips; how its members did on them is not this network's."""
    return {k: v for k, v in model.summary_.items() if k not in ("held_out_log_score", "out_of_bag")}


@dataclass(frozen=True)
class Cost:
    """What collapsing cost on some trips."""

    crps_kw: tuple[float, float] | None  # ensemble, collapsed; None without measured power
    mean_kw: float  # root mean square difference of the means
    epistemic_rank: float  # Spearman correlation of the epistemic parts

    def __str__(self) -> str:
        moved = (
            f"means differ by {self.mean_kw:.3f} kW, rank correlation of the epistemic parts {self.epistemic_rank:.2f}"
        )
        if self.crps_kw is None:
            return f"{moved}; the trips have no measured power to score"
        before, after = self.crps_kw
        return f"CRPS {before:.3f} -> {after:.3f} kW ({100 * (after / before - 1):+.1f} %), {moved}"


def cost(before: Bands, after: Bands) -> Cost:
    """Compare the ensemble's bands with those of the collapsed model, on the same trips; warm-up rows are left out."""
    from scipy.stats import spearmanr

    rows = ~before.warmup
    a, b = before.rows(rows), after.rows(rows)
    varied = len(a) > 2 and np.ptp(a.epistemic) > 0 and np.ptp(b.epistemic) > 0
    rank = float(spearmanr(a.epistemic, b.epistemic).statistic) if varied else float("nan")
    scores, y = None, a.power_kw
    if y is not None and (known := np.isfinite(y)).any():
        a, b, y = a.rows(known), b.rows(known), y[known]
        scores = float(a.crps(y).mean()), float(b.crps(y).mean())
    return Cost(scores, float(np.sqrt(np.mean((before.mean - after.mean)[rows] ** 2))), rank)


def _perturbed(model: PowerModel, trips: Trips, seed: int) -> list[Trip]:
    """The trips twice again, each channel of each multiplied by a random factor near one."""
    rng = np.random.default_rng([seed, 7])
    out = []
    for size, trip in product(PERTURBATIONS, trips):
        factors = {c: float(np.exp(size * rng.standard_normal())) for c in model.feature_map_.channels}
        factors |= dict.fromkeys(EDGES, factors.get("speed_kmh", 1.0))
        table = trip.table.with_columns(pl.col(c) * k for c, k in factors.items() if c in trip.table.columns)
        out.append(replace(trip, trip_id=f"{trip.trip_id} perturbed by {size}", table=table))
    return out


def _lesson(model: PowerModel, trips: list[Trip], bands: Bands) -> Lesson:
    from evband.training.distillation import Lesson

    rows = model.feature_map_.transform_all(trips)
    mean, std = model.feature_map_.y_mean, model.feature_map_.y_std

    def single(values: NDArray) -> NDArray[np.float32]:
        return np.ascontiguousarray(values, dtype=np.float32)

    if not np.isfinite(bands.mean).all():
        raise TripsError("the ensemble's answers on these trips are not all finite; inspect the log.")
    return Lesson(
        rows.x,
        rows.r,
        single((bands.mean - mean) / std),
        np.maximum(single(bands.aleatoric / std), np.float32(FLOOR)),
        np.maximum(single(bands.epistemic / std), np.float32(FLOOR)),
        find_segments(rows.start, rows.trip),
    )


def _degrees(bands: Bands) -> float:
    """The student's fixed nu: the one whose bands, with the teacher's deviations, come nearest to the teacher's in width.

    It lies under the members' own: a mixture of scales has heavier tails than its parts.
    """
    rows = np.linspace(0, len(bands) - 1, min(len(bands), 2000)).astype(int)
    some = bands.rows(np.unique(rows))
    widths = [np.subtract(*some.interval(level)[::-1]) for level in MATCHED_LEVELS]

    def misfit(nu: float) -> float:
        s = some.aleatoric * scale_of_deviation(nu)
        pair = StudentMixture(
            np.stack([some.mean - some.epistemic, some.mean + some.epistemic]), np.stack([s, s]), [nu, nu]
        )
        ours = [pair.quantile(0.5 + level / 2) - pair.quantile(0.5 - level / 2) for level in MATCHED_LEVELS]
        return float(np.mean([np.abs(np.log(a / b)).mean() for a, b in zip(ours, widths, strict=True)]))

    return min((float(nu) for nu in np.geomspace(2.2, 200, 40)), key=misfit)


def _sibling(model: PowerModel, settings: Settings, theta: NDArray[np.float32]) -> PowerModel:
    """A model of other weights with the same features and history."""
    one = PowerModel.of(settings)
    one.settings_, one.theta_ = settings, theta
    one.feature_map_, one.fingerprints_, one.energy_ = model.feature_map_, list(model.fingerprints_), model.energy_
    return one


def _members(model: PowerModel) -> int:
    return len(model._networks())
