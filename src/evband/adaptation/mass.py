"""The mass that a car moves like: what a started model has learned about pulling, in kilograms.

Predicted power of a made-up drive on the level rises with  m a v; the slope over rows that pull, of each member, over
that of the base's mean car with this data sheet, times the sheet's mass. Losses of the drive train are in both. Logs of
the population are late or noisy at times, which hides how a car pulls, so a car that has shown itself is compared with
one of a clean log, which pulls `CLEAN` times as hard as the mean one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.probes import pulls
from evband.features.wheel import SheetMap

if TYPE_CHECKING:
    from evband.model import PowerModel

CLEAN = 1.08  # median of sixteen simulated cars that the base never saw, each after all of its trips


def effective_mass(model: PowerModel) -> NDArray[np.float64]:
    """[members] kg."""
    features = model.feature_map_
    assert isinstance(features, SheetMap)
    assert model.adaptation_ is not None
    usual = model.adaptation_.pull * (CLEAN if model.adaptation_.minutes else 1.0)
    return np.asarray(features.wheel[0] * pulls(model.architecture_, model.theta_, features) / usual)
