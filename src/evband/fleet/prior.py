"""What a fleet teaches about its next car: mean and spread between cars, by empirical Bayes over their parts.

Weights of member m in car c are a draw from the car's posterior, so over cars their mean and covariance are what an EM
step gives: the covariance of posterior means plus the mean of posterior covariances. Both are drawn towards the base,
which counts as `CARS_OF_MEAN` and `CARS_OF_SPREAD` cars. A car whose weights lie far from the others' (a broken log)
counts less: with d_c its mean squared distance in units of the base's spread, as  min(1, FAR median(d) / d_c)^2. Bodies,
makes and models have means of their own as far as their cars show it (`evband.fleet.hierarchy`); the spread is that
about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.base import Base
from evband.adaptation.bulk import read_parts
from evband.adaptation.groups import Groups, kinds_of
from evband.adaptation.location import location, set_location
from evband.errors import ArtifactError, SettingsError
from evband.fleet.hierarchy import shrunk
from evband.vehicles import Sheet

if TYPE_CHECKING:
    from evband.model import PowerModel

CARS_OF_MEAN, CARS_OF_SPREAD = 1.0, 20.0
FAR = 2.0
FEWEST = 3

Array = NDArray[np.float64]
Kinds = Sequence[tuple[str, ...]]  # a car's groups


class Facts(NamedTuple):
    """What a car teaches."""

    weights: NDArray[np.float32]  # [members, Q]
    level: float  # mean and deviation of the log scale's offset
    spread: float
    kinds: tuple[str, ...]


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
    _between(found.base, found.weights, found.scales[:, 0], found.scales[:, 1], found.kinds).save(output)
    return cars, len(found.bad)


def facts_of(model: PowerModel) -> Facts:
    """What a car, started and adapted, teaches."""
    views, state = model.architecture_.unpack(model.theta_), model.adaptation_
    level, spread = state.scale
    return Facts(location(views).astype(np.float32), level, spread, kinds_of(Sheet.from_dict(state.sheet)))


def between(ground: Base, cars: Sequence[Facts]) -> Base:
    """The base with the mean and spread of these cars, all started on `ground`."""
    weights, levels, spreads, kinds = zip(*cars, strict=True)
    return _between(ground, np.stack(weights), np.array(levels), np.array(spreads), kinds)


def _between(ground: Base, weights: NDArray[np.float32], levels: Array, spreads: Array, kinds: Kinds) -> Base:
    """The base with this fleet's mean and spread, and means of its kinds of cars; weights [cars, members, Q]."""
    theta = ground.theta.copy()
    views = ground.architecture.unpack(theta)
    share = _trust(ground, weights)
    total = float(share.sum())
    off, covariance = np.empty_like(weights), np.empty(ground.spread.shape)  # off the mean, in units of the old spread
    mean = location(views)
    for m, root in enumerate(ground.root):
        mean[m] = (CARS_OF_MEAN * mean[m] + share @ weights[:, m]) / (CARS_OF_MEAN + total)
        off[:, m] = np.linalg.solve(root, (weights[:, m] - mean[m]).T).T
    set_location(views, mean)
    groups = shrunk(off, share, kinds)
    off -= groups.fitted
    for m, root in enumerate(ground.root):
        found = root @ ((off[:, m] * share[:, None]).T @ off[:, m]) @ root.T
        covariance[m] = (CARS_OF_SPREAD * ground.spread[m].astype(float) + found) / (CARS_OF_SPREAD + total)
    shift = float((CARS_OF_MEAN * ground.scale_shift + share @ levels) / (CARS_OF_MEAN + total))
    variance = share @ ((levels - shift) ** 2 + spreads**2)
    sd = float(((CARS_OF_SPREAD * ground.scale_sd**2 + variance) / (CARS_OF_SPREAD + total)) ** 0.5)
    shifts = np.einsum("mpq,gmq->gmp", ground.root, groups.shifts).astype(np.float32)
    return replace(
        ground, theta=theta, spread=covariance.astype(np.float32), scale_shift=shift, scale_sd=sd,
        about=f"{len(weights)} cars of a fleet (before them: {ground.about})",
        groups=Groups(groups.names, shifts) if groups.names else Groups(),
    )  # fmt: skip


def _trust(ground: Base, weights: NDArray[np.float32]) -> Array:
    """[cars], how much each car counts."""
    distance = np.zeros(len(weights))
    for m, root in enumerate(ground.root):
        off = weights[:, m] - np.median(weights[:, m], 0).astype(float)
        distance += (np.linalg.solve(root, off.T) ** 2).mean(0) / len(ground.root)
    near = FAR * float(np.median(distance))
    return np.asarray(np.minimum(1.0, near / np.maximum(distance, 1e-12)) ** 2)
