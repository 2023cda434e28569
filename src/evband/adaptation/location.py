"""The weights of the location, (road_w, head_w of the location): what tells cars apart, and what adapting moves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.features.wheel import ROADS

Array = NDArray[np.float64]
ALL = slice(None)


def location(views: dict[str, Any], some: slice = ALL) -> Array:
    """[members, Q] of named weights."""
    return np.asarray(np.concatenate([views["road_w"][some], views["head_w"][some, 0]], 1), np.float64)


def set_location(views: dict[str, Any], weights: Array, some: slice = ALL) -> None:
    """Write them back."""
    views["road_w"][some], views["head_w"][some, 0] = weights[:, : len(ROADS)], weights[:, len(ROADS) :]


def centred(draws: Array) -> Array:
    """Draws whose mean over members is zero: that of the weights is known, and members only spread about it."""
    return draws - draws.mean(0) if len(draws) > 1 else draws


def move_location(views: dict[str, Any], by: Array) -> None:
    """Add to them, in their own precision."""
    views["road_w"] += by[:, : len(ROADS)].astype(np.float32)
    views["head_w"][:, 0] += by[:, len(ROADS) :].astype(np.float32)
