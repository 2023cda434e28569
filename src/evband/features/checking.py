"""Whether trips can teach a feature map, and whether the parts of a stored map fit each other: a file is not to be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from evband.errors import ArtifactError, TripsError
from evband.vehicles.physics import GRAVITY

if TYPE_CHECKING:
    from evband.features.map import FeatureMap

Map = TypeVar("Map", bound="FeatureMap")
SMALLEST, LARGEST = 1e-15, 1e15  # scales in a model file
NO_POWER = (
    "None of these trips has measured power (power_kw, or battery_voltage_v and battery_current_a), which a fit learns from; "
    "give logs that have it, or make a model from the car's name with evband start."
)
OF_ROAD = ("r_shift", "r_scale", "r_low", "r_high")


def checked(features: Map) -> Map:
    """The same, or an error that names the damage."""
    c, f, k = len(features.channels), len(features.input_names), len(features.road_names)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("low", "high", "typical"), (c,))
    shapes |= dict.fromkeys(("x_shift", "x_scale"), (f,)) | dict.fromkeys((*OF_ROAD, "moment"), (k,)) | {"gram": (k, k)}
    for name, shape in shapes.items():
        array = getattr(features, name)
        if array.shape != shape or not np.isfinite(array).all():
            raise ArtifactError(f"the features' {name} in the model file is damaged; fit the model again.")
    scales = np.concatenate([features.x_scale, features.r_scale, [features.y_std]])
    if not ((scales >= SMALLEST).all() and (scales <= LARGEST).all() and 0 < features.hz <= 100):
        raise ArtifactError("a scale of the features in the model file is not possible; fit the model again.")
    if len(features.sheet) not in (0, 3) or not all(0 < number < LARGEST for number in features.sheet):
        raise ArtifactError("the data sheet in the model file is damaged; fit the model again.")
    if not abs(features.y_mean) <= LARGEST:
        raise ArtifactError("the mean power in the model file is not possible; fit the model again.")
    if not all(isinstance(flag, bool) for flag in (features.edges, features.fade, features.products, features.ages)):
        raise ArtifactError("a switch of the features in the model file is damaged; fit the model again.")
    shares = (features.lag, features.follows, features.tilt / GRAVITY)
    if not (all(0.0 <= share <= 1.0 for share in shares) and 0.0 <= features.hidden_kw <= LARGEST):
        raise ArtifactError("the features' statistics of readings in the model file are damaged; fit the model again.")
    return features


def check_power(signals: Mapping[str, np.ndarray], y: np.ndarray, known: np.ndarray) -> None:
    """Raise unless power [T] varies over the rows where it and every signal are known."""
    measured = np.isfinite(y)
    if not measured.any():
        raise TripsError(NO_POWER)
    if known.sum() < 2:
        counts = {name: int((np.isfinite(signal) & measured).sum()) for name, signal in signals.items()}
        rare = min(counts, key=lambda name: counts[name])
        raise TripsError(
            f"Power and all inputs are known together in {int(known.sum())} rows only; of {int(measured.sum())} rows with power "
            f"{counts[rare]} have {rare}: leave it out with --features, or give logs that have it throughout."
        )
    if float(np.ptp(y[known])) == 0.0:
        raise TripsError(
            f"power_kw is {float(y[known][0]):g} kW in every row, so there is nothing to learn; check the log's power channel."
        )
