"""Folds of about as many rows each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def balanced(size: NDArray, folds: int) -> NDArray[np.int64]:
    """A fold for each group of `size` rows: largest first, each to the emptiest fold.

    >>> balanced(np.array([2, 5, 3]), 2).tolist()
    [1, 0, 1]
    """
    fold, load = np.zeros(len(size), np.int64), np.zeros(max(1, min(folds, len(size))))
    for group in np.argsort(-size, kind="stable"):
        fold[group] = int(np.argmin(load))
        load[fold[group]] += size[group]
    return fold
