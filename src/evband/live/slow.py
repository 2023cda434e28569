"""What readings far apart leave unknown: between two speeds the car may have sped up or braked.

Power changes with acceleration by ``m v da``, m the effective mass that the model's own mean shows, so a band is widened in
quadrature by ``z m v s sqrt(1 - r^2)``: z the normal quantile of the level, s the deviation of acceleration in traffic, r the
correlation of the acceleration in the row with what the readings show (`evband.trips.between.sureness`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

ACCELERATION_MS2 = 0.6  # deviation of acceleration in traffic
PATIENCE_S = 20.0  # readings further apart are a gap


class Slow:
    """The widening of the bands of cars of one model, each `heavy` times as heavy as it."""

    def __init__(self, model: PowerModel, level: float, heavy: Array) -> None:
        self._z = float(ndtri(0.5 + level / 2))
        self.mass_t = effective_mass_t(model) * heavy

    def widened(self, cars: NDArray[np.int64], raw: Array, speed: Array, sure: Array) -> tuple[Array, Array, Array]:
        """(mean, lower, upper) of bands [n, 5]; `sure` is r of each row."""
        mean, lower, upper = raw[:, 0], raw[:, 1], raw[:, 2]
        if (sure == 1.0).all():
            return mean, lower, upper
        extra = (
            self._z * self.mass_t[cars] * np.maximum(speed, 0.0) / 3.6 * ACCELERATION_MS2 * np.sqrt(1.0 - sure * sure)
        )
        return mean, mean - np.hypot(mean - lower, extra), mean + np.hypot(upper - mean, extra)


def effective_mass_t(model: PowerModel, speed_kmh: float = 50.0) -> float:
    """Tonnes, from the model's own road-load path: (P(v, +a) - P(v, -a)) / (2 a v) of a light pull; 1.8 where it has none."""
    features, a = model.feature_map_, 0.25
    params = model.params_
    if (
        "acceleration_ms2" not in features.channels
        or "speed_kmh" not in features.channels
        or not len(features.road_names)
    ):
        return 1.8
    typical = dict(zip(features.channels, features.typical.tolist(), strict=True)) | {"speed_kmh": speed_kmh}
    if "elevation_m" in typical:
        typical["elevation_m"] = 0.0  # stands for the grade
    powers = []
    for pull in (a, -a):
        _, r = features._rows(typical | {"acceleration_ms2": pull})
        powers.append(float(np.mean(np.asarray(params["road_w"]) @ r)) * features.y_std)
    return float(np.clip((powers[0] - powers[1]) / (2.0 * a * speed_kmh / 3.6), 0.8, 30.0))
