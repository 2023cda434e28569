"""What one car's trips make of its model, and how well the model knew the last of them before it learned from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evband.adaptation.asks import States, Steps, Update, done_together
from evband.adaptation.checks import another_car, check_evidence
from evband.adaptation.members import FEWEST_ROWS, Evidence
from evband.adaptation.trip_errors import ahead
from evband.adaptation.update import evidence_of, features_of, measured
from evband.fleet.rolling import Reading, readings
from evband.trips import Trip, Trips

if TYPE_CHECKING:
    from evband.model import PowerModel

EVERY = 10  # rows one is scored: errors last seconds, so means over all would hardly be others
PORTION = 50_000  # rows learned from at a time: 200 MB of hidden states
FEWEST_TRIPS = 3  # that a model has learned from before trips are read against it


@dataclass(frozen=True)
class Learned:
    """What came of it."""

    model: PowerModel
    scores: dict[str, float]
    notes: list[str]
    readings: list[Reading]  # of rolling resistance (`evband.fleet.drift`)


def learning(model: PowerModel, trips: Trips, seed: int, level: float) -> Steps[Learned]:
    """Learn from all trips but the last, score that one as a new drive, learn from it, too.

    The network runs over each trip once: its hidden states do not depend on what is learned.
    """
    *earlier, (late, traces) = portions(trips)
    known, whole = model.adaptation_.trips >= FEWEST_TRIPS, set(trips.fingerprints)
    notes, read, moving = list[str](), list[Reading](), 0
    for some, names in [*earlier, (late, traces)]:
        rows = yield from _evidence(model, some)
        notes += check_evidence(model, rows.y, rows.r)
        read += readings(model, rows) if known else []
        moving += int(rows.moving.sum())
        if some is not late:
            model = yield Update(model, rows, sum(name in whole for name in names), names, seed)
    if moving < FEWEST_ROWS:
        notes.append("it hardly moves in these logs, so little is learned from them")
    *_, last = rows.groups
    before, new = rows.of(slice(0, last.start)), 1
    if len(before.y) >= FEWEST_ROWS:
        model, rows = (yield Update(model, before, len(traces) - 1, traces[:-1], seed)), rows.of(last)
    else:
        new = len(traces)
    scores = scores_ahead(model, rows.of(rows.groups[-1]), level)
    count = sum(name in whole for name in traces[-new:])
    model = yield Update(model, rows, count, [*traces[-new:], *trips.fingerprints], seed)  # also of trips left out
    return Learned(model, scores, list(dict.fromkeys(notes)) + another_car(model), read)


def _evidence(model: PowerModel, trips: Trips) -> Steps[Evidence]:
    features = features_of(model, trips)
    measured(features[3])
    return evidence_of(model, *features, (yield States(model, features[0], features[2])))


def portions(trips: Trips) -> list[tuple[Trips, Sequence[str]]]:
    """Trips and their fingerprints, `PORTION` rows or fewer at a time, so that memory does not grow with the log: longer
    trips are cut, and of a log so large those without measured power left out. The first piece of a trip has its fingerprint;
    others are alone, with names of their own: a trip counts once."""
    if sum(map(len, trips)) <= PORTION:
        return [(trips, trips.fingerprints)]
    found: list[list[tuple[Trip, str]]] = []
    rows = PORTION
    for trip, trace in zip(trips, trips.fingerprints, strict=True):
        pieces = [trip.table.slice(k, PORTION) for k in range(0, len(trip), PORTION)] if trip.has("power_kw") else []
        for k, table in enumerate(piece for piece in pieces if piece["power_kw"].count() >= FEWEST_ROWS):
            rows += len(table)
            if k or rows > PORTION:
                found.append([])
                rows = PORTION if k else len(table)
            name = f" {k}" if k else ""
            found[-1].append((replace(trip, trip_id=trip.trip_id + name, table=table), trace + name))
    if not found:
        return [(trips[:1], trips.fingerprints[:1])]
    return [(Trips([trip for trip, _ in some]), [trace for _, trace in some]) for some in found]


def learned(model: PowerModel, trips: Trips, seed: int, level: float) -> Learned:
    """The same of one car."""
    (found,) = done_together([learning(model, trips, seed, level)])
    return found


def scores_ahead(model: PowerModel, rows: Evidence, level: float) -> dict[str, float]:
    """CRPS and coverage of rows that the model has not learned from."""
    some = rows.of(np.arange(0, len(rows.y), EVERY))
    standing, moving = model.calibration_.factors
    found = ahead(model, some).stretched(np.where(some.moving, moving, standing))
    power = some.y * model.feature_map_.y_std + model.feature_map_.y_mean
    inside = np.minimum(*found.tails(power)) >= (1.0 - level) / 2.0
    return {"crps_kw": float(found.crps(power, tolerance=1e-3).mean()), "coverage": float(inside.mean())}
