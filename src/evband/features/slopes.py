"""`evband.features.road_load.Slope` along whole trips, compiled: the same operations in the same order."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from evband.compiled import compiled

Array = NDArray[np.float64]


@compiled()
def run(
    elevation_m: Array, moved_m: Array, start: NDArray[np.bool_], length_m: float, prior_m2: float, out: Array
) -> None:
    """The grade after every row, anew at each `start`."""
    w = s = e = sss = see = 0.0
    for t in range(len(out)):
        height, moved = elevation_m[t], moved_m[t]
        seen = height == height
        if start[t]:
            w = s = e = sss = see = 0.0
        s -= moved
        if w == 0.0:
            if seen:
                w, s, e = 1.0, 0.0, height
            out[t] = 0.0
            continue
        if moved > 0.0:
            fade = math.exp(-moved / length_m)
            w *= fade
            sss *= fade
            see *= fade
            if seen:
                total = w + moved
                ds, de, share = -s, height - e, moved / total
                s += share * ds
                e += share * de
                sss += w * share * ds * ds
                see += w * share * ds * de
                w = total
        out[t] = see / (sss + prior_m2 * w) if w != 0.0 else 0.0
