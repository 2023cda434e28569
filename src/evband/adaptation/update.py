"""`evband adapt`: what minutes to hours of a car's own driving say about it, in seconds of computing and without torch.

Rows of trip g are taken as  y = w . phi + z . b_g + noise,  phi the road-load terms and the member's hidden state, z a
trip's own offset and its shares of drag and rolling resistance (heater, wind, load: b_g ~ N(0, 1) in those units), and
Student-t noise whose errors last some seconds, so that as many rows count as one as the log's own errors are alike
(their autocorrelation summed, `members.Members.correlated`). Of each member the weights w
move from the car it was drawn as to one that explains the rows: with prior precision P and the information A of the
rows (trip effects integrated out),

    w <- w + (A + P)^-1 (phi' W (y - w . phi) + A^(1/2) xi),   xi ~ N(0, I)

which turns draws from the prior into draws from the posterior (a perturbed, anchored MAP; exact for Gaussian noise).
The xi of all members add up to zero, as the prior's draws do about the mean car, so that thirty draws err by little
together (by nothing in road-load terms, were the members' information alike).
The next log goes on from P + A. Then the scale: how noisy the log is, from rows on the move and errors e without the
trips' own effects, taken as sqrt(e^2 + sum_k v_k z_k^2), v_k the variance of the next trip's effects as far as these trips tell
(`members.of_next`), each trip a draw about the car's own level, nearer to it in some cars than in others. Where the
temperature is unknown, a trip's own offset is larger: nobody knows whether it heats. Where the hills are known, its share of
rolling resistance is smaller. How wide bands are at a standstill is learned last (`standing`).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.cabin import cabin_of
from evband.adaptation.checks import another_car, check_evidence, check_learns, new_trips
from evband.adaptation.location import centred, set_location
from evband.adaptation.members import FEWEST_ROWS, ROUNDS, Evidence, Members, some_of, together
from evband.adaptation.scale import Offsets, ScalePrior, ranks_of
from evband.adaptation.state import Adaptation
from evband.channels import STANDING_KMH
from evband.errors import SettingsError, TripsError
from evband.features.wheel import ROADS, USUAL_KG, SheetMap
from evband.network.inference import degrees_of_freedom

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

CABIN_W_KG = 3.0  # deviation of a trip's own offset in a car of `USUAL_KG` that does not log the temperature
ON_KNOWN_HILLS = 0.4  # of a trip's own share of rolling resistance, which unknown hills look like
CABIN_SHARE = 0.8  # that of a trip's own share of what cabins draw in its weather: some are off, some on full


def adapt(model: PowerModel, trips: Any, seed: int = 0) -> PowerModel:
    """A copy of a started model that has learned from trips with measured power.

    >>> import evband
    >>> from evband.live.run import DEMO
    >>> learned = adapt(evband.start("Renault Zoe 52 kWh"), evband.read_trips(DEMO / "drive.csv"))
    >>> learned.adaptation_.trips
    1
    """
    check_learns(model)
    found, notes = new_trips(model, model.on_grid(trips))
    rows = evidence(model, found)
    notes += check_evidence(model, rows.y, rows.r)
    adapted = updated(model, rows, len(found), sorted(found.traces), seed)
    notes += another_car(adapted)
    adapted.adaptation_ = replace(adapted.adaptation_, notes=tuple(notes))
    return adapted


def evidence(model: PowerModel, trips: Any) -> Evidence:
    """The rows of trips from which a model learns."""
    return evidence_of(model, *features_of(model, trips))


def features_of(model: PowerModel, trips: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """What `evidence_of` asks of trips."""
    parts = [model.feature_map_.transform(trip) for trip in trips]
    x, r, start, y = (np.concatenate([getattr(p, name) for p in parts]) for name in ("x", "r", "start", "y"))
    trip = np.repeat(np.arange(len(parts)), [len(p) for p in parts])
    speed = np.concatenate([t.table["speed_kmh"].to_numpy() for t in trips])
    return x, r, start, y, trip, speed


def evidence_of(
    model: PowerModel,
    x: NDArray[np.float32],  # [rows, inputs]
    r: NDArray[np.float32],  # [rows, roads]
    start: NDArray[np.bool_],
    power_kw: Array,
    trip: NDArray[np.int64],
    speed_kmh: Array,
    h: Any = None,  # [members, rows, hidden], where the network has run already
) -> Evidence:
    """The same of rows that are features already."""
    from evband.network.predict import hidden_states

    known = measured(power_kw)
    h = hidden_states(model.architecture_, model.theta_, x, start) if h is None else h
    h = h if known.all() else some_of(h, known)
    terms, moving = r[known].astype(float), speed_kmh[known] >= STANDING_KMH
    features = model.feature_map_
    assert isinstance(features, SheetMap)
    y, effects = power_kw[known] / features.y_std, trip_effects(model, terms, features.grade_known(x[known]))
    return Evidence(terms, h, y, trip[known], moving, effects, features.readings_of(x[known]))


def measured(power_kw: Array) -> NDArray[np.bool_]:
    """Rows with measured power, of which there must be some."""
    known = np.isfinite(power_kw)
    if not known.any():
        raise TripsError(
            "none of these trips has measured power; a model learns from power_kw, or current and voltage."
        )
    if known.sum() < FEWEST_ROWS:
        raise SettingsError(
            f"only {int(known.sum())} rows have measured power, {FEWEST_ROWS} are needed; give a longer log."
        )
    return np.asarray(known)


def trip_effects(model: PowerModel, terms: Array, hills: NDArray[np.bool_]) -> Array:
    """z of rows: a trip's own offset, of which the weather tells how far the cabin may move it, its share of drag and of
    rolling resistance (less where its `hills` are known), each of unit variance."""
    offset, drag, rolling = model.adaptation_.trip_effect
    fm = model.feature_map_
    assert isinstance(fm, SheetMap)
    unit = fm.y_std / fm.wheel[0] * 1000.0  # W/kg per standardised unit
    aero, roll = (terms[:, k] * fm.r_scale[k] for k in map(ROADS.index, ("aero", "rolling")))
    asked, unknown = cabin_of(terms, fm)
    own = np.hypot(offset, np.hypot(CABIN_SHARE * asked, CABIN_W_KG * USUAL_KG * unknown) / fm.wheel[0])
    return np.asarray(np.stack([own, drag * aero, rolling * np.where(hills, ON_KNOWN_HILLS, 1.0) * roll], 1) / unit)


def updated(model: PowerModel, rows: Evidence, trips: int, traces: Sequence[str], seed: int = 0) -> PowerModel:
    """The model after these rows."""
    before: Adaptation = model.adaptation_
    theta, precision = model.theta_.copy(), before.precision.astype(float)
    views = model.architecture_.unpack(theta)
    nu = degrees_of_freedom(model.architecture_, views)
    assert nu is not None
    early, scale = rows.thinned, ScalePrior(*before.scale)
    noise, ranks, likely = noise_of(model, seed), ranks_of(views["head_b"][:, 1] - before.neutral), []
    for some in together(len(theta), len(rows.y), precision.shape[1]):
        first, members = (Members(part, some, views, before.neutral, nu) for part in (early, rows))
        error = first.table[..., -1]
        for _ in range(ROUNDS - 1):
            normal, _ = first.reweighted(error, scale)
            error, _ = first.errors(normal, precision[some])
        next_errors = members.ahead(*members.errors(normal, precision[some]), before.trips)
        normal, offsets = members.reweighted(next_errors, scale)
        set_location(views, members.prior + normal.drawn(precision[some], noise[some]), some)
        precision[some] += normal.information
        views["head_b"][some, 1] = before.neutral[some] + offsets.of_a_trip(ranks[some])
        likely.append(offsets.both)
    return after(model, theta, precision, Offsets(np.concatenate(likely)), rows, trips, traces)


def noise_of(model: PowerModel, seed: int) -> Array:
    """[members, Q], xi: another one after each log."""
    members, size, _ = model.adaptation_.precision.shape
    return centred(np.random.default_rng([seed, len(model.fingerprints_)]).standard_normal((members, size)))


def after(
    model: PowerModel,
    theta: NDArray[np.float32],
    precision: Array,
    offsets: Offsets,  # of all members
    rows: Evidence,
    trips: int,
    traces: Sequence[str],
) -> PowerModel:
    """A copy of the model that has learned this from rows."""
    found, before = copy(model), model.adaptation_
    found.theta_, found.fingerprints_ = theta, sorted({*model.fingerprints_, *traces})
    found.adaptation_ = replace(
        before.with_readings(len(rows.y) / model.settings_.hz / 60.0, rows.readings[rows.moving]),
        precision=precision.astype(np.float32),
        scale=offsets.moments,
        trips=before.trips + trips,
    )
    if trips:  # the rest of a drive that was cut is no further trip
        # Bands and energies need tables, which a GPU machine may not have.
        from evband.adaptation.standing import standing_after
        from evband.adaptation.trip_errors import ahead, energy_after

        some = rows.thinned
        said = ahead(found, some)
        found.energy_ = energy_after(found, some, said)
        found.calibration_ = standing_after(found, some, said)
    return found
