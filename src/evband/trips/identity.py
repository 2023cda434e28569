"""Marks of a trip: by them it is known again when it was cut, or when its clock was set anew.

A mark is a hash of eight consecutive rows of speed and power, whatever their time. Of each trip the smallest 64 are kept, as
in min-wise sampling (Broder 1997): a part that is a tenth of the trip then shares about six of them with the whole, and two
different drives share none. Rows must lie on one grid: a part that begins between two of its rows is not known again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROWS = 8  # of a mark
SPEEDS = 5  # different ones among them: cruising at a steady speed looks alike in all drives
KEPT = 64  # of a trip
ENOUGH = 2  # that two drives share if one is a part of the other


def marks(speed_kmh: NDArray[np.float64], power_kw: NDArray[np.float64]) -> tuple[str, ...]:
    """The smallest hashes of the trip's stretches of `ROWS` rows, all known and of changing speed; there may be none."""
    if len(speed_kmh) < ROWS:
        return ()
    rows = np.stack([speed_kmh, power_kw], axis=1)
    runs = np.lib.stride_tricks.sliding_window_view(rows, ROWS, axis=0).reshape(-1, 2 * ROWS)
    runs = runs[np.isfinite(runs).all(1)]
    runs = runs[(np.diff(np.sort(runs[:, :ROWS], axis=1), axis=1) > 0).sum(1) >= SPEEDS - 1]
    weights = np.random.default_rng(0).integers(1 << 63, size=2 * ROWS, dtype=np.uint64) | np.uint64(1)
    whole = np.rint(runs.clip(-1e9, 1e9) * 1000.0).astype(np.int64).view(np.uint64)
    mixed = (whole * weights).sum(axis=1, dtype=np.uint64)  # modulo 2^64
    mixed ^= mixed >> np.uint64(31)
    mixed *= weights[0]
    return tuple(f"{mark:016x}" for mark in np.unique(mixed)[:KEPT].tolist())
