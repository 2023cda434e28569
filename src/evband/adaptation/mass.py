"""The mass that a car moves like: what a started model has learned about pulling, in kilograms.

Predicted power of a made-up drive on the level rises with  m a v; the slope over rows that pull, of each member, over
that of the base's mean car with this data sheet, times the sheet's mass. Losses of the drive train are in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.made_up import drive, signals_of
from evband.features.road_load import KINETIC
from evband.features.wheel import SheetMap
from evband.network.architecture import Architecture
from evband.network.predict import predict

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

MINUTES, PULLING = 20, 0.5  # of the drive; W/kg from which a row pulls


def effective_mass(model: PowerModel) -> Array:
    """[members] kg."""
    features = model.feature_map_
    assert isinstance(features, SheetMap)
    assert model.adaptation_ is not None
    return np.asarray(features.wheel[0] * pulls(model.architecture_, model.theta_, features) / model.adaptation_.pull)


def pulls(arch: Architecture, theta: NDArray[np.float32], features: SheetMap) -> Array:
    """[members]: how much predicted power rises per power that speeds the car up."""
    kinds = ("town", "rural", "traffic", "town")
    speed = drive([(kind, 60.0 * MINUTES / 4) for kind in kinds], np.random.default_rng(0))
    signals = signals_of(speed, 20.0)
    count = len(speed) - 1
    x, r, _ = features.arrays(signals)
    start = np.zeros(count, bool)
    start[0] = True
    power = predict(arch, theta, x, r, start).mu.astype(float)  # [members, rows]
    k, v = signals[KINETIC], signals["speed_kmh"] / 3.6
    rows = k > PULLING
    design = np.stack([k, np.ones(count), v, v**3], 1)[rows]
    return np.asarray(np.linalg.lstsq(design, power[:, rows].T, rcond=None)[0][0])
