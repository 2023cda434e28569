"""Locked dropout (Gal & Ghahramani 2016): one mask a sequence on inputs, recurrent state and output, held over its steps."""

from __future__ import annotations

import numpy as np

from evband.network.architecture import Architecture
from evband.network.lstm import Masks


def draw_masks(arch: Architecture, rate: float, batch: int, generators: list[np.random.Generator]) -> Masks:
    """Masks (arrays) for every member (one generator each), already divided by the keep rate."""
    widths = [arch.inputs] + [arch.hidden] * (arch.layers - 1)
    sizes = widths + [arch.hidden] * arch.layers + [arch.hidden]
    keep = 1.0 - rate
    draws = [(g.random((batch, sum(sizes)), dtype=np.float32) < keep) / np.float32(keep) for g in generators]
    whole = np.stack(draws).astype(np.float32)
    parts = tuple(np.ascontiguousarray(part) for part in np.split(whole, np.cumsum(sizes)[:-1], axis=-1))
    return Masks(parts[: arch.layers], parts[arch.layers : 2 * arch.layers], parts[-1])
