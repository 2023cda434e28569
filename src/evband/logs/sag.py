"""Whether the pack's voltage confirms a lone current: a true one pulls it down by the pack's resistance, a bogus one does not."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evband.trips.readings import Series

Array = NDArray[np.float64]

LEAST_A = 20.0  # a change of current that tells the resistance
LEAST_PAIRS = 20
LEAST_OHM = 0.01  # under it the voltage is not a witness: steady, rounded or slow
NEAR = 0.25  # a voltage belongs to a current that is so much of the way to the next reading off, or less
SHARE = (0.6, 1.6)  # of the expected sag, on either side


def confirmed(current: Series, volts: Series, at: Array, amps: Array) -> NDArray[np.bool_]:
    """[peaks]: of currents `amps` [before, peak, after; peaks] at instants `at`, those whose voltage moves with them both ways.

    The resistance is the median of -dV/dI between the readings of this log that are not such peaks.
    """
    time, value = current
    ohm = _slope(time, value, _at(volts, time, _apart(time)), at[1])
    if not abs(ohm) >= LEAST_OHM:
        return np.zeros(at.shape[1], bool)
    steps = np.diff(at, axis=0)  # [2, peaks]
    seen = np.stack([_at(volts, instants, steps.min(0)) for instants in at])
    share = np.diff(seen, axis=0) / (ohm * np.diff(amps, axis=0))
    return np.asarray(((share >= SHARE[0]) & (share <= SHARE[1])).all(0))


def _slope(time: Array, amps: Array, volts: Array, peaks: Array) -> float:
    """dV/dI, negative where current out of the battery is positive; NaN where too few readings tell."""
    plain = ~np.isin(time, peaks) & np.isfinite(volts)
    change, sag = np.diff(amps), np.diff(volts)
    tells = plain[1:] & plain[:-1] & (np.abs(change) >= LEAST_A)
    return float(np.median(sag[tells] / change[tells])) if tells.sum() >= LEAST_PAIRS else np.nan


def _apart(time: Array) -> Array:
    """Seconds from each reading to its nearer neighbour."""
    steps = np.diff(time, prepend=-np.inf, append=np.inf)
    return np.asarray(np.minimum(steps[1:], steps[:-1]))


def _at(volts: Series, instants: Array, step_s: Array) -> Array:
    """The voltage nearest to each instant; NaN where none is near."""
    time, value = volts
    after = np.clip(np.searchsorted(time, instants), 1, len(time) - 1)
    nearest = np.where(instants - time[after - 1] < time[after] - instants, after - 1, after)
    return np.where(np.abs(time[nearest] - instants) <= NEAR * step_s, value[nearest], np.nan)
