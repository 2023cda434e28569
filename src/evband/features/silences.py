"""Whether a log is so full of silences that its grid should bridge them.

A silence of over 10 s starts the network's state anew, and half a minute of rows is warm-up. In logs of phone apps and the like
that is every third row; where it is more than `SHARE` of all, a fit bridges silences unless told otherwise.
"""

from __future__ import annotations

from evband.features.rows import age, starts_of, warming
from evband.trips import Trips

SHARE = 0.05
BRIDGE_S = 30.0


def full_of_silences(trips: Trips) -> bool:
    """Whether too many rows of gridded trips are the warm-up after a silence."""
    assert trips.hz is not None
    starts = [starts_of(trip) for trip in trips]
    broken = sum(int((warming(age(start), trips.hz) & (start.cumsum() > 1)).sum()) for start in starts)
    return broken > SHARE * sum(map(len, starts))
