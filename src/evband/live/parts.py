"""A small part of its own for each car on a shared ensemble: what a fleet learned about this one car.

The road-load path is linear in its weights, so another weight vector common to all members moves every member, and with
them the whole band, by ``y_std r . delta``: the shared network runs once for all cars and each car's part is added.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Parts:
    """Change of the road-load weights, offset in kW and stretch of every car; none by default."""

    def __init__(self, cars: int, road: int, y_std: float) -> None:
        self._y_std = y_std
        self.delta = np.zeros((cars, road), np.float32)
        self.offset_kw, self.stretch = np.zeros(cars), np.ones(cars)
        self._some = False

    def set(self, car: int, delta: Array | None = None, offset_kw: float = 0.0, stretch: float = 1.0) -> None:
        """Give a car its part."""
        if delta is not None:
            self.delta[car] = delta
        self.offset_kw[car], self.stretch[car] = offset_kw, stretch
        self._some = True

    def apply(self, cars: NDArray[np.int64], r: NDArray[np.float32], band: Array, location: Array) -> None:
        """Move and stretch the bands [n, 5] and the members' locations [n, M] of these cars, in place."""
        if not self._some:
            return
        shift = self._y_std * np.einsum("nk,nk->n", r, self.delta[cars], dtype=np.float64) + self.offset_kw[cars]
        k, mean = self.stretch[cars], band[:, 0].copy()
        for j in (1, 2):
            band[:, j] = mean + k * (band[:, j] - mean)
        band[:, :3] += shift[:, None]
        band[:, 3:] *= k[:, None]
        location += shift[:, None]
