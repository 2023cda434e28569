"""What cabins draw in the weather of a drive, on average over cars: a car's own share of it differs from trip to trip."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evband.features.wheel import ROADS, SheetMap

Array = NDArray[np.float64]

COLD, HOT = 100.0, 70.0  # W per degree below or above what needs neither heating nor cooling


def cabin_of(terms: Array, features: SheetMap) -> tuple[Array, Array]:
    """(W that is asked for, 1 where the temperature is unknown) of rows of road-load terms."""
    names = ("cold", "hot", "ambient unknown")
    cold, hot, unknown = (terms[:, k] * features.r_scale[k] for k in map(ROADS.index, names))
    return np.asarray(COLD * cold + HOT * hot), np.asarray(unknown)
