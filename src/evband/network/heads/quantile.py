"""Quantiles at fixed levels."""

from __future__ import annotations

from functools import cache
from typing import Any

from evband.network.heads.base import Head, Numbers, Output

LEVELS = tuple(round(0.05 * k, 2) for k in range(1, 20))  # 0.05 .. 0.95
PUBLISHED_LEVELS = (0.1, 0.5, 0.9)  # the paper's three, an 80 % band


class Quantiles(Head):
    """One output per level; the road-load path moves all of them."""

    name = "quantile"
    label = "quantiles"
    kinds = ("anchor", "dropout")
    scaled = False

    def outputs(self, levels: tuple[float, ...]) -> int:
        return len(levels)

    def apply(self, numbers: Numbers) -> Output:
        quantiles = numbers.with_road()
        return Output(quantiles[..., quantiles.shape[-1] // 2], None, None, quantiles)

    def loss(self, out: Output, y: Any, levels: tuple[float, ...]) -> Any:
        """The pinball loss max(p e, (p - 1) e), e = y - q_p, summed over levels p."""
        import torch

        p = _tensor(levels, y.dtype, y.device)
        error = y.unsqueeze(-1) - out.quantiles
        return torch.maximum(p * error, (p - 1) * error).sum(-1)


@cache
def _tensor(levels: tuple[float, ...], dtype: Any, device: Any) -> Any:
    """Made once: a captured training step may not copy from the host."""
    import torch

    return torch.tensor(levels, dtype=dtype, device=device)
