"""Whether the parts of a feature map from a file fit each other: a model file is not to be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from evband.errors import ArtifactError

if TYPE_CHECKING:
    from evband.features.map import FeatureMap

Map = TypeVar("Map", bound="FeatureMap")
SMALLEST, LARGEST = 1e-15, 1e15  # scales in a model file
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
    if not abs(features.y_mean) <= LARGEST:
        raise ArtifactError("the mean power in the model file is not possible; fit the model again.")
    if not all(isinstance(flag, bool) for flag in (features.edges, features.fade, features.products, features.ages)):
        raise ArtifactError("a switch of the features in the model file is damaged; fit the model again.")
    return features
