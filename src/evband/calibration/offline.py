"""Offline calibration: a factor that stretches predictive distributions about their mean, fitted on trips the model never saw.

Rows of one trip err together, so the exchangeable unit is the trip, and a level needs at least level/(1 - level) of them: nine
for 90 %. The scores that are calibrated are `Bands.needed_stretch`: by which factor each row's band would just have covered.
Neither rule can repair a shift (a first winter) that the calibration trips do not show.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evband.bands import Bands, check_level
from evband.calibration.value import LEAST, LEVEL, MOST, Calibration, How
from evband.errors import TripsError

Array = NDArray[np.float64]

STANDING_ROWS = 100  # the fewest rows for a stretch of their own
FEWEST = 4  # the fewest members out of bag from which the need of more is extrapolated


def fit_stretch(bands: Bands, level: float = 0.9) -> float:
    """The stretch at which a share `level` of all rows of new trips is covered, on average over draws of the calibration trips.

    It is the pooled rows' quantile of the needed stretch at level (1 + w/G), G trips. w = 0 is the plain quantile, which on new
    trips covers too little by what the fit learned from its own trips; w = 1 counts the new trip as one that is never covered,
    the conformal bound, which covers too much unless a trip is a single row. So w is measured: the smallest in [0, 1] at which
    trips left out of the fit in turn are covered at `level`. The guarantee is that of leave-one-out, right on average and no
    bound; `conformal_stretch` is the bound. `bands` are cross-fitted or out-of-bag; warm-up rows are left out.
    """
    needed, trip = _needed(bands, level)
    trips = int(trip.max()) + 1
    order = np.argsort(needed, kind="stable")
    needed, trip = needed[order], trip[order]
    mass = np.linspace(0, 1, 101)
    covered = np.zeros(len(mass))
    for left_out in range(trips):
        others, own = needed[trip != left_out], needed[trip == left_out]
        covered += np.searchsorted(own, _quantile(others, level * (1 + mass / (trips - 1))), side="right")
    enough = np.flatnonzero(covered >= level * len(needed) - 1e-9)
    w = mass[enough[0]] if len(enough) else 1.0
    return _positive(float(_quantile(needed, np.array([level * (1 + w / trips)]))[0]))


def fit_stretches(bands: Bands, level: float = 0.9, members: int | None = None) -> tuple[float, float]:
    """`fit_stretch` of the rows on the move and of those at a standstill, each for itself, for an ensemble of `members`.

    A standing car draws what its auxiliaries do, known to tenths of a kilowatt, and a moving one is uncertain by kilowatts: one
    factor would leave bands at a standstill several times too wide. Where either lacks trips or rows, all share one factor.

    Trips left out are predicted by few of the members, and few cover less than all will. What M of them need is a + b / M, nearly:
    the members that there are, and either half of them, tell a and b; it takes four.
    """
    moving, standing = _for_members(bands, _stretches(bands, level), level, members)
    return float(moving), float(standing)


def fit_calibration(bands: Bands, members: int | None = None) -> tuple[Calibration, Array]:
    """The calibration of an ensemble of `members` from bands of trips that none of their members saw, or the reason why
    there is none; and the stretch [n] that each row of these bands themselves needs."""
    trips = calibration_trips(bands)
    try:
        own = _stretches(bands, LEVEL)
        moving, standing = _for_members(bands, own, LEVEL, members).tolist()
        how: How = "given" if members is None else "left out"
        found = Calibration(moving, standing, LEVEL, how, trips, members or bands.members.count, "")
        return found, np.where(bands.standing, own[1], own[0])
    except (TripsError, ValueError) as problem:
        return Calibration(why=f"not calibrated: {problem}"), np.ones(len(bands))


def _for_members(bands: Bands, all_of_them: Array, level: float, members: int | None) -> Array:
    count = bands.members.count
    if members is None or not members > count >= FEWEST:
        return all_of_them
    half = count // 2
    first, last = (
        _stretches(replace(bands, members=bands.members.only(which)), level)
        for which in (slice(half), slice(count - half, count))
    )
    b = ((first + last) / 2 - all_of_them) / (1 / half - 1 / count)
    return np.asarray(np.maximum(all_of_them - b * (1 / count - 1 / members), all_of_them / 2))


def _stretches(bands: Bands, level: float) -> Array:
    """On the move, at a standstill."""
    standing = bands.standing
    apart = [bands.rows(~standing), bands.rows(standing)]
    if min(calibration_trips(part) for part in apart) >= minimum_trips(level) and standing.sum() >= STANDING_ROWS:
        try:
            return np.array([fit_stretch(part, level) for part in apart])
        except TripsError:  # no scale of its own
            pass
    return np.full(2, fit_stretch(bands, level))


def conformal_stretch(bands: Bands, level: float = 0.9) -> float:
    """The stretch at which a random row of a new trip, exchangeable with these, is covered with probability at least `level`.

    Hierarchical conformal prediction (Dunn, Wasserman & Ramdas 2022; Lee, Barber & Willett 2023): each of G trips weighs
    1/(G + 1), spread evenly over its rows, and the new trip 1/(G + 1) at infinity. With trips of one row it is split
    conformal prediction, the ceil((G + 1) level)-th smallest. The price of the bound is width: with few trips nearly all is covered.
    """
    needed, trip = _needed(bands, level)
    length = np.bincount(trip)
    order = np.argsort(needed, kind="stable")
    weight = np.cumsum(1.0 / length[trip[order]]) / (len(length) + 1)
    at = int(np.searchsorted(weight, level - 1e-9))
    return _positive(float(needed[order][min(at, len(needed) - 1)]))


def minimum_trips(level: float) -> int:
    """The fewest trips that can calibrate a level: G with level (G + 1)/G <= 1."""
    return math.ceil(level / (1 - level) - 1e-9)


def calibration_trips(bands: Bands) -> int:
    """Trips that have a row to calibrate on: measured, after the warm-up."""
    return 0 if bands.power_kw is None else len(np.unique(bands.trip_id[np.isfinite(bands.power_kw) & ~bands.warmup]))


def _needed(bands: Bands, level: float) -> tuple[Array, NDArray[np.intp]]:
    """The needed stretch of every measured row after warm-up, and its trip as a number; an error if trips are too few."""
    check_level(level)
    trips = calibration_trips(bands)
    if trips < minimum_trips(level):
        raise TripsError(
            f"Calibrating {level:.4g} bands needs at least {minimum_trips(level)} trips with measured power, and there are {trips}; "
            "the bands stay as trained until more are given."
        )
    known = np.isfinite(np.asarray(bands.power_kw)) & ~bands.warmup
    bands = bands if known.all() else bands.rows(known)
    _, trip = np.unique(bands.trip_id, return_inverse=True)
    return bands.needed_stretch(np.asarray(bands.power_kw), level), trip


def _quantile(ordered: Array, p: Array) -> Array:
    """The ceil(p n)-th smallest of n ordered values, infinite for p over 1."""
    rank = np.ceil(p * len(ordered) - 1e-9).astype(int)
    return np.where(rank > len(ordered), np.inf, ordered[np.clip(rank, 1, len(ordered)) - 1])


def _positive(stretch: float) -> float:
    """A factor that can be applied: calibration trips met without error, or never, give no scale."""
    if not LEAST <= stretch <= MOST:
        raise TripsError(
            f"Calibration found a stretch of {stretch:g}, which is not a scale; check that power_kw of these trips is a measurement."
        )
    return stretch
