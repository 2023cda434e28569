"""A factor for each row, constant between limits of one input: how calibration stretches bands."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Steps(NamedTuple):
    """``factors[k]`` where input number `column` has reached the first k of `limits` (scaled, ascending, float32).

    >>> Steps((0.5, 1.2), (0.0,)).of(np.array([[-1.0], [3.0]])).tolist()
    [0.5, 1.2]
    """

    factors: tuple[float, ...] = (1.0,)
    limits: tuple[float, ...] = ()
    column: int = 0

    def which(self, x: NDArray) -> NDArray[np.int64]:
        """[T] number of the factor of inputs [T, F]."""
        value = np.asarray(x[:, self.column], np.float32)
        return np.asarray(np.searchsorted(np.asarray(self.limits, np.float32), value, side="right"), np.int64)

    def of(self, x: NDArray) -> NDArray[np.float64]:
        """[T] factor of inputs [T, F]."""
        return np.asarray(self.factors)[self.which(x)]

    def at(self, x: NDArray) -> float:
        """The factor of one row's inputs [F]."""
        return self.factors[bisect_right(self.limits, x[self.column]) if self.limits else 0]


UNSTRETCHED = Steps()
