"""What a fleet teaches about its next car: mean and spread between cars, by empirical Bayes over their parts.

Weights of member m in car c are a draw from the car's posterior, so over cars their mean and covariance are what an EM
step gives: the covariance of posterior means plus the mean of posterior covariances. Both are drawn towards the base,
which counts as `CARS_OF_MEAN` and `CARS_OF_SPREAD` cars. A car whose weights lie far from the others' (a broken log)
counts less: with d_c its mean squared distance in units of the base's spread, as  min(1, FAR median(d) / d_c)^2.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.base import Base
from evband.adaptation.bulk import read_parts
from evband.errors import ArtifactError, SettingsError
from evband.features.wheel import INPUTS, ROADS

if TYPE_CHECKING:
    from evband.model import PowerModel

CARS_OF_MEAN, CARS_OF_SPREAD = 1.0, 20.0
FAR = 2.0
FEWEST = 3

Array = NDArray[np.float64]
Facts = tuple[NDArray[np.float32], float, float]  # weights [members, Q], mean and deviation of the log scale's offset


def fleet_prior(folders: Iterable[str | Path], output: Path, base: Base | None = None) -> tuple[int, int]:
    """Write the base of a fleet's cars; (cars, parts that could not be read)."""
    files = sorted(file for folder in folders for file in (Path(folder) / "cars").glob("*.evband"))
    try:
        found = read_parts(files, base)
        cars = len(found)
    except ArtifactError:
        cars = 0
    if cars < FEWEST:
        raise SettingsError(
            f"{cars} cars are too few to learn how cars differ, {FEWEST} are needed; fit more cars of the fleet."
        )
    assert found.scales is not None
    _between(found.base, found.weights, *found.scales.T).save(output)
    return cars, len(found.bad)


def facts_of(model: PowerModel) -> Facts:
    """What a car, started and adapted, teaches."""
    views = model.architecture_.unpack(model.theta_)
    return np.concatenate([views["road_w"], views["head_w"][:, 0]], 1).astype(np.float32), *model.adaptation_.scale


def between(ground: Base, cars: Sequence[Facts]) -> Base:
    """The base with the mean and spread of these cars, all started on `ground`."""
    weights, levels, spreads = zip(*cars, strict=True)
    return _between(ground, np.stack(weights), np.array(levels), np.array(spreads))


def _between(ground: Base, weights: NDArray[np.float32], levels: Array, spreads: Array) -> Base:
    """The base with this fleet's mean and spread; weights [cars, members, Q]."""
    arch = ground.settings(1.0, 0).architecture(len(INPUTS), len(ROADS))
    theta = ground.theta.copy()
    views = arch.unpack(theta)
    share = _trust(ground, weights)
    total = float(share.sum())
    covariance = np.empty(ground.spread.shape)
    for m in range(len(theta)):
        old = np.concatenate([views["road_w"][m], views["head_w"][m, 0]]).astype(float)
        mine = weights[:, m].astype(float)
        mean = (CARS_OF_MEAN * old + share @ mine) / (CARS_OF_MEAN + total)
        off = mine - mean
        found = (off * share[:, None]).T @ off
        covariance[m] = (CARS_OF_SPREAD * ground.spread[m].astype(float) + found) / (CARS_OF_SPREAD + total)
        views["road_w"][m], views["head_w"][m, 0] = mean[: len(ROADS)], mean[len(ROADS) :]
    shift = float((CARS_OF_MEAN * ground.scale_shift + share @ levels) / (CARS_OF_MEAN + total))
    variance = share @ ((levels - shift) ** 2 + spreads**2)
    sd = float(((CARS_OF_SPREAD * ground.scale_sd**2 + variance) / (CARS_OF_SPREAD + total)) ** 0.5)
    about = f"{len(weights)} cars of a fleet on top of {ground.about}"
    return replace(
        ground, theta=theta, spread=covariance.astype(np.float32), scale_shift=shift, scale_sd=sd, about=about
    )


def _trust(ground: Base, weights: NDArray[np.float32]) -> Array:
    """[cars], how much each car counts."""
    roots = np.linalg.cholesky(ground.covariance)
    off = weights.astype(float) - np.median(weights, 0)
    distance = np.mean([(np.linalg.solve(root, off[:, m].T) ** 2).mean(0) for m, root in enumerate(roots)], 0)
    near = FAR * float(np.median(distance))
    return np.asarray(np.minimum(1.0, near / np.maximum(distance, 1e-12)) ** 2)
