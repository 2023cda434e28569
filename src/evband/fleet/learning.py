"""What one car's trips make of its model, and how well the model knew the last of them before it learned from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from evband.adaptation.checks import another_car, check_evidence
from evband.adaptation.member import FEWEST_ROWS, Evidence
from evband.adaptation.update import evidence, updated
from evband.bands.mixtures import StudentMixture
from evband.network.heads.base import SCALE_FLOOR
from evband.network.inference import degrees_of_freedom, softplus
from evband.trips import Trips

if TYPE_CHECKING:
    from evband.model import PowerModel

EVERY = 5  # row's CRPS: errors last about as long, so the mean over all would hardly be another


def learned(model: PowerModel, trips: Trips, seed: int, level: float) -> tuple[PowerModel, dict[str, float], list[str]]:
    """Learn from all trips but the last, score that one as a new drive, learn from it, too: (model, scores, notes).

    The network runs over each trip once: its hidden states do not depend on what is learned.
    """
    rows, traces = evidence(model, trips), trips.fingerprints
    notes = check_evidence(model, rows.y, rows.r)
    *_, last = rows.groups
    before, new = rows.of(slice(0, last.start)), 1
    if len(before.y) >= FEWEST_ROWS:
        model, rows = updated(model, before, len(trips) - 1, traces[:-1], seed), rows.of(last)
    else:
        new = len(trips)
    scores = scores_ahead(model, rows.of(rows.groups[-1]), level)
    model = updated(model, rows, new, traces[-new:], seed)
    return model, scores, notes + another_car(model)


def ahead(model: PowerModel, rows: Evidence) -> StudentMixture:
    """The distribution of these rows' power in kW."""
    views, features = model.architecture_.unpack(model.theta_), model.feature_map_
    h = rows.h
    mu = (h @ views["head_w"][:, 0, :, None])[..., 0] + views["road_w"] @ rows.r.T + views["head_b"][:, :1]
    raw = (h @ views["head_w"][:, 1, :, None])[..., 0] + views["head_b"][:, 1:2]
    nu = degrees_of_freedom(model.architecture_, views)
    assert nu is not None
    scale = features.y_std * (softplus(raw) + SCALE_FLOOR)
    return StudentMixture(features.y_std * mu + features.y_mean, scale, nu)


def scores_ahead(model: PowerModel, rows: Evidence, level: float) -> dict[str, float]:
    """CRPS and coverage of rows that the model has not learned from."""
    found, power = ahead(model, rows), rows.y * model.feature_map_.y_std + model.feature_map_.y_mean
    below, above = found.tails(power)
    inside = np.minimum(below, above) >= (1.0 - level) / 2.0
    some = slice(None, None, EVERY)
    crps = found.rows(np.arange(len(power))[some]).crps(power[some])
    return {"crps_kw": float(crps.mean()), "coverage": float(inside.mean())}
