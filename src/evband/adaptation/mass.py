"""The mass that a car moves like: what a started model has learned about pulling, in kilograms.

Predicted power of a made-up drive on the level rises with  m a v; the slope over rows that pull, of each member, over
that of the base's mean car with this data sheet, times the sheet's mass. Losses of the drive train are in both. Logs of
the population are late or noisy at times, which hides how a car pulls, so a car that has shown itself is compared with
one of a clean log, or of one that reads the speed once per second, which pull `USUAL` times as hard as the mean one: of the
two the one about which the members agree, as they do where they have learned from such a log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.probes import pulls
from evband.channels import DENSE
from evband.features.wheel import SheetMap

if TYPE_CHECKING:
    from evband.model import PowerModel

# Speed readings per second -> median of simulated cars that the base never saw: sixteen with clean logs after all of their
# trips (under an earlier base; results/mass.csv agrees), sixty of `benchmarks.fleet.simulated` after three trips
USUAL = {DENSE: 1.08, 1.0: 1.12}


def effective_mass(model: PowerModel) -> NDArray[np.float64]:
    """[members] kg."""
    return min(masses_by_readings(model), key=np.std)


def masses_by_readings(model: PowerModel) -> list[NDArray[np.float64]]:
    """[members] kg each, as of logs with so many speed readings per second."""
    features = model.feature_map_
    assert isinstance(features, SheetMap)
    assert model.adaptation_ is not None
    kg = features.wheel[0] / model.adaptation_.pull
    learned = USUAL if model.adaptation_.minutes else {DENSE: 1.0}
    return [
        np.asarray(kg / usual * pulls(model.architecture_, model.theta_, features, readings))
        for readings, usual in learned.items()
    ]
