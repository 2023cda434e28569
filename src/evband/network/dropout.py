"""Locked dropout (Gal & Ghahramani 2016): one mask a sequence on inputs, recurrent state and output, held over its steps."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

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


def fold_masks(params: Mapping[str, NDArray], masks: Masks) -> dict[str, NDArray]:
    """Parameters with the masks of one sequence multiplied in: a mask held for a whole trip is a scaling of columns."""
    folded = dict(params)
    for k, (enter, past) in enumerate(zip(masks.inputs, masks.recurrent, strict=True)):  # [members, 1, width] each
        folded[f"w_ih.{k}"] = params[f"w_ih.{k}"] * enter
        folded[f"w_hh.{k}"] = params[f"w_hh.{k}"] * past
    folded["head_w"] = params["head_w"] * masks.output
    return folded
