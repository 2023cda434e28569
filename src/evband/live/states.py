"""What a car is doing, found from its rows alone: driving, a pause, parked, charging, or nothing heard."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

STATES = ("waiting", "driving", "paused", "parked", "charging", "silent", "offline")
WAITING, DRIVING, PAUSED, PARKED, CHARGING, SILENT, OFFLINE = range(len(STATES))
UNDER_WAY = (DRIVING, PAUSED)  # bands are shown
PAUSE_S = 30.0  # standing longer is a pause
END_S = 300.0  # standing longer ends the drive
SILENT_S = 12.0  # on a drive: a speed older than this is not shown as now ...
SILENT_STEPS = 1.7  # ... or than this many of its usual steps, where these are longer
OFFLINE_S = 900.0  # nothing at all
SURELY_CHARGING_KW = -1.5  # in one row, which ends the drive: a log has whole stretches below `channels.CHARGING_KW`


def find(
    idle: Flags, began: Array, at: Array, moved: Array, old: Flags, silent: Array, charging: Flags
) -> NDArray[np.int8]:
    """State of each car: `began`, `at`, `moved` as the engine has them, `old` whether its speed is, `silent` since its last
    reading."""
    state = np.full(len(idle), WAITING, np.int8)
    with np.errstate(invalid="ignore"):
        trip = ~np.isnan(began) & ~idle
        state[trip] = DRIVING
        state[trip & (at - moved > PAUSE_S)] = PAUSED
        state[idle] = PARKED
        state[trip & old] = SILENT
        state[charging] = CHARGING
        state[silent > OFFLINE_S] = OFFLINE
    return state


def ended(state: NDArray[np.int8], idle: Flags, at: Array, moved: Array, silent: Array, new_trip_s: float) -> Flags:
    """Drives that are over: a long stand, charging, or long silence."""
    with np.errstate(invalid="ignore"):
        over = (at - moved > END_S) | (state == CHARGING) | (silent > new_trip_s)
    return np.asarray(over & ~idle & ~np.isnan(at))
