"""A small part of its own for each car on a shared base: what a fleet learned about this one car (`evband.adaptation.bulk`).

The shared network runs once for all cars; each car's own heads, data sheet and stretch make the bands those of its own model.
Errors over a trip grow with the mass, so they are kept in units of the car in the middle, as the base says them: bias and size
that a car's own trips taught are in its own model only. Ranges are looked up on ways that were
planned for that car, with a battery that is larger by as much as this car uses less.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.bulk import Fleet
from evband.features.wheel import OWN

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Parts:
    """Rows of a fleet's arrays, in the order of a group's cars; `middle` is the car whose model stands for all of them."""

    fleet: Fleet
    rows: NDArray[np.int64]
    middle: int

    @property
    def heads(self) -> tuple[NDArray, NDArray, Array, Array]:
        """What `Engine.own_heads` takes."""
        fleet, rows = self.fleet, self.rows
        std = fleet.base.unit * fleet.wheels[rows, 0] / 1000.0
        return fleet.weights[rows], fleet.level[rows], std, fleet.stretch[rows]

    @property
    def sheets(self) -> dict[str, Array]:
        """What `FeatureColumns` takes."""
        return dict(zip(OWN, self.fleet.wheels[self.rows].T.copy(), strict=True))

    @property
    def heavy(self) -> Array:
        """Mass of each car over that of the car in the middle."""
        return np.asarray(self.fleet.wheels[self.rows, 0] / self.fleet.wheels[self.middle, 0])

    @property
    def farther(self) -> Array:
        """How much farther each car gets with the same energy than the car in the middle."""
        used = self.fleet.kwh_100km
        known = used[self.middle] / used[self.rows]
        return np.where(np.isfinite(known), known, 1.0 / self.heavy)
