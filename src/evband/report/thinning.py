"""Thinning long drives so that a page opens at once and no peak is lost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def extreme_rows(series: Sequence[Array], buckets: int) -> NDArray[np.intp]:
    """Rows to keep, in order: of each bucket the lowest and the highest of every series, and the first and last row.

    Kept rows are real ones with all their values, so nothing is averaged away; at most 2 x series x buckets + 2 of them.
    All rows where thinning would not make them fewer.
    """
    n = len(series[0])
    most = 2 * len(series) * buckets + 2
    if n <= most:
        return np.arange(n)
    size = -(-n // buckets)
    kept = {0, n - 1}
    for values in series:
        known = np.isfinite(values)
        if not known.any():
            continue
        for sign in (1.0, -1.0):
            signed = np.full(size * buckets, -np.inf)
            signed[:n] = np.where(known, sign * values, -np.inf)
            blocks = signed.reshape(buckets, size)
            best = blocks.argmax(1)
            there = np.isfinite(blocks[np.arange(buckets), best])
            kept.update((np.arange(buckets) * size + best)[there].tolist())
    return np.array(sorted(kept), dtype=np.intp)
