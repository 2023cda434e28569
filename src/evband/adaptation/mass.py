"""The mass that a car moves like: what a started model has learned about pulling, in kilograms.

Predicted power of a made-up drive on the level rises with  m a v; the slope over rows that pull, of each member, over
that of the base's mean car with this data sheet, times the sheet's mass. Losses of the drive train are in both; what a
car loses more or less than others counts as mass (2 to 3 %, results/mass.csv). Logs of the population are late or noisy
at times, which hides how a car pulls, so a car that has shown itself is compared with one whose log reads the speed as
often as its own did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.probes import pulls
from evband.features.wheel import SheetMap

if TYPE_CHECKING:
    from evband.model import PowerModel


def effective_mass(model: PowerModel) -> NDArray[np.float64]:
    """[members] kg."""
    features, state = model.feature_map_, model.adaptation_
    assert isinstance(features, SheetMap)
    assert state is not None
    pull = pulls(model.architecture_, model.theta_, features, state.asked_at)
    return np.asarray(features.wheel[0] * pull / state.pull)
