"""A Gaussian with a location and a scale per row."""

from __future__ import annotations

import math
from typing import Any

from evband.network.heads.base import Head, Output


class Gaussian(Head):
    """Light tails, for comparison."""

    name = "gaussian"
    label = "a Gaussian"

    def loss(self, out: Output, y: Any, levels: tuple[float, ...]) -> Any:
        """Negative log likelihood: log s + z^2/2 + log(2 pi)/2, z = (y - mu)/s."""
        z = (y - out.mu) / out.scale
        return out.scale.log() + 0.5 * z.square() + 0.5 * math.log(2 * math.pi)
