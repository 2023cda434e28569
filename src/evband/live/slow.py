"""What readings far apart leave unknown: between two speeds the car may have sped up or braked.

The band of a model that was not trained for it is widened in quadrature by ``z c sqrt(v (1 - r^2))``: z the normal
quantile of the level, c what training showed (`evband.features.density.hidden_of`) or, where it showed nothing, 1.9 kW per
tonne and root of m/s, as trained ones show; r the correlation of the acceleration in the row with what the readings show
(`evband.trips.between.sureness`). A car that stood may have driven off since. A single reading of power strays likewise from
the mean of its second. Models that bridge silences, and those from a data sheet, which see the readings per second, widen by
themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from evband.card import path_power

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

PER_TONNE_KW = 1.9
DRIVES_OFF_MS2 = 0.1
INSTANT = 0.95  # correlation of the acceleration at an instant with the mean of its second
PATIENCE_S = 20.0  # readings further apart are a gap


class Slow:
    """The widening of the bands of cars of one model, each `heavy` times as heavy as it."""

    def __init__(self, model: PowerModel, level: float, heavy: Array) -> None:
        self._z = float(ndtri(0.5 + level / 2))
        self.hidden_kw = (model.feature_map_.hidden_kw or PER_TONNE_KW * effective_mass_t(model)) * heavy

    def hidden(self, cars: NDArray[np.int64], speed: Array, sure: Array, age: Array) -> Array:
        """kW on either side, in a row whose acceleration correlates with the one shown by `sure`."""
        root: Array = np.sqrt((np.maximum(speed, 0.0) / 3.6 + DRIVES_OFF_MS2 * age) * (1.0 - sure * sure))
        return self._z * self.hidden_kw[cars] * root


def effective_mass_t(model: PowerModel) -> float:
    """Tonnes, from the model's own road-load path: (P(v, +a) - P(v, -a)) / (2 a v) of a light pull; 1.8 where it has none."""
    a, v = 0.25, np.array([50.0 / 3.6])
    if not model.architecture_.road or not {"acceleration_ms2", "speed_kmh"} <= set(model.feature_map_.channels):
        return 1.8
    pulling, braking = (float(path_power(model, v, pull).mean()) for pull in (a, -a))
    return float(np.clip((pulling - braking) / (2.0 * a * v[0]), 0.8, 30.0))
