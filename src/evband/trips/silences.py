"""Whether a log is so full of silences that its grid should bridge them.

A silence of over 10 s starts the network's state anew, and half a minute of rows is warm-up. In logs of phone apps and the like
that is every third row; where it is more than `SHARE` of all, a fit bridges silences unless told otherwise.
"""

from __future__ import annotations

import numpy as np

from evband.trips.trips import Trips

SHARE = 0.05
BRIDGE_S = 30.0


def bridge_of(trips: Trips, hz: float, warmup_s: float) -> float:
    """Seconds of silence to bridge on a grid of `hz`: 0 where trips are on a grid already, or hardly ever fall silent."""
    if trips.hz is not None:
        return 0.0
    rows = broken = 0
    for trip in trips.on_grid(hz):
        segment = trip.table["segment"].to_numpy()
        starts = np.flatnonzero(np.diff(segment)) + 1
        index = np.arange(len(segment))
        since = index - np.append(0, starts)[np.searchsorted(starts, index, side="right")]
        rows, broken = rows + len(index), broken + int(((since < warmup_s * hz) & (segment > segment[0])).sum())
    return BRIDGE_S if broken > SHARE * rows else 0.0
