"""What an old speed leaves unknown: between two readings of a slow feed the car may have sped up or braked.

Power changes with acceleration by ``m v da``, m the effective mass that the model's own mean shows, so a band is widened
in quadrature by ``z m v s(age)``: z the normal quantile of the level, s the deviation of acceleration that a speed
`age` seconds old leaves open. s grows from nothing to `ACCELERATION_MS2` over a few seconds.
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
SETTLES_S = 3.0  # age at which most of it is open
FRESH_S = 1.5  # younger is as good as now, in steps of the grid


class Slow:
    """The widening of one model's bands."""

    def __init__(self, model: PowerModel, level: float) -> None:
        self._z, self._fresh = float(ndtri(0.5 + level / 2)), FRESH_S / float(model.settings_.hz)
        self.mass_t = effective_mass_t(model)

    def widened(self, raw: Array, speed: Array, age: Array) -> tuple[Array, Array, Array]:
        """(mean, lower, upper) of bands [n, 5]; `age` is that of the speed at each row's end."""
        mean, lower, upper = raw[:, 0], raw[:, 1], raw[:, 2]
        old = np.maximum(age - self._fresh, 0.0)
        if not old.any():
            return mean, lower, upper
        open_ms2 = ACCELERATION_MS2 * -np.expm1(-(old + 1.0) / SETTLES_S) * (old > 0.0)
        extra = self._z * self.mass_t * np.maximum(speed, 0.0) / 3.6 * open_ms2
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
