"""Questions to a started model whose answers are linear in what `adapt` moves: how hard it pulls, what it uses.

Only the weights of the location move, so the hidden states of a made-up drive stay those of the base, and a question
about power along it is one vector per member, kept for the next car with the same sheet:

    pull  slope of power on the rows that pull, given speed and its cube      use  mean power of a usual drive
"""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.location import location
from evband.adaptation.made_up import drive, drive_of_mean, signals_of
from evband.channels import DENSE
from evband.features.road_load import KINETIC
from evband.features.wheel import SheetMap
from evband.network.architecture import Architecture
from evband.network.predict import hidden_states

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

MINUTES, PULLING = 20, 0.5  # of the drive that pulls; W/kg from which a row does
USUAL_KMH, USUAL_S, USUAL_C = 50.0, 1800.0, 15.0  # the drive on which cars are compared
MOST_KEPT = 512  # sheets
SAMPLE = 61  # of the recurrent weights, by which probes are known again, is one in so many


class Probes(NamedTuple):
    """[members, Q] each: weights of (road_w, head_w of the location) in the answer."""

    pull: Array
    use: Array


def pulls(arch: Architecture, theta: NDArray[np.float32], features: SheetMap, readings: float = DENSE) -> Array:
    """[members]: how much predicted power rises per power that speeds the car up, in a log of so many speed readings per second."""
    return np.asarray((probes(arch, theta, features, readings).pull * location(arch.unpack(theta))).sum(1))


def consumption(model: PowerModel) -> Array:
    """[members] kWh/100 km on one made-up drive of half an hour, alike for all cars, logged as often as the car's own drives."""
    features = model.feature_map_
    assert isinstance(features, SheetMap)
    views, readings = model.architecture_.unpack(model.theta_), model.adaptation_.asked_at
    found = probes(model.architecture_, model.theta_, features, readings).use * location(views)
    kw = (found.sum(1) + views["head_b"][:, 0]) * features.y_std + features.y_mean
    return np.asarray(100.0 * kw / _drives()[1]["speed_kmh"].mean())


_kept: OrderedDict[bytes, Probes] = OrderedDict()


def probes(arch: Architecture, theta: NDArray[np.float32], features: SheetMap, readings: float = DENSE) -> Probes:
    """Those of the recurrent weights of theta and this sheet."""
    recurrent = theta[:, : arch.slices["head_w"].start : SAMPLE]  # some of each member's: training moves all of them
    scales = ((readings,), features.wheel, features.x_shift, features.x_scale, features.r_scale)
    name = recurrent.tobytes() + np.concatenate(scales).tobytes()
    if name not in _kept:
        _kept[name] = _probes(arch, theta, features, readings)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return _kept[name]


def _probes(arch: Architecture, theta: NDArray[np.float32], features: SheetMap, readings: float) -> Probes:
    drives = _drives(readings)
    parts = [features.arrays(signals) for signals in drives]
    start = np.zeros(sum(len(x) for x, _, _ in parts), bool)
    start[[0, len(parts[0][0])]] = True
    h = hidden_states(arch, theta, np.concatenate([x for x, _, _ in parts]), start)
    r = np.broadcast_to(np.concatenate([r for _, r, _ in parts]), (len(h), len(start), parts[0][1].shape[1]))
    first = len(parts[0][0])
    k, v = drives[0][KINETIC], drives[0]["speed_kmh"] / 3.6
    rows = k > PULLING
    slope = np.zeros(first)
    slope[rows] = np.linalg.pinv(np.stack([k, np.ones(first), v, v**3], 1)[rows])[0]
    mean = np.full(len(start) - first, 1.0 / (len(start) - first))
    return Probes(*(
        np.concatenate([np.einsum("n,mnq->mq", ask, part[:, where].astype(float)) for part in (r, h)], 1)
        for ask, where in ((slope, slice(None, first)), (mean, slice(first, None)))
    ))  # fmt: skip


@cache
def _drives(readings: float = DENSE) -> tuple[dict[str, Array], dict[str, Array]]:
    """Signals of the drive that pulls and of the usual one."""
    kinds = ("town", "rural", "traffic", "town")
    speed = drive([(kind, 60.0 * MINUTES / 4) for kind in kinds], np.random.default_rng(0))
    usual = drive_of_mean(USUAL_KMH, USUAL_S, np.random.default_rng(0))
    return signals_of(speed, 20.0, readings=readings), signals_of(usual, USUAL_C, readings=readings)
