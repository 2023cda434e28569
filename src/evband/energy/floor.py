"""How little a long way can take: drag, rolling and what the car draws standing do not vanish.

A Student-t wide enough for a car's few odd trips has a lower tail near zero or below, where a battery would last for ever, so that the
upper end of range is hundreds of kilometres off. On the way ahead, the side below the middle is therefore no wider than leaves its
5 % quantile at `LEAST` of the energy expected; the side above, and the energy of a trip that was driven (short ones can take next to
nothing), are as they are. Where a way leads downhill, what is expected of as much way elsewhere on it takes the place of its own
energy; on a way that leads downhill as a whole that is little, too, and a battery somewhat too small is judged too harshly.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evband.energy.student import stdtrit

LEAST = 0.4


def below(scale: Any, expected_kwh: Any, dof: float) -> Any:
    """The scale of the side below the middle; unchanged where nothing is expected to be used."""
    room = (1.0 - LEAST) * np.asarray(expected_kwh) / stdtrit(dof, 0.95)
    return np.where(room > 0.0, np.minimum(scale, room), scale)
