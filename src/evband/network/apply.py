"""Heads on tensors: from hidden states to what a head says, and its loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from evband.network.architecture import Architecture
from evband.network.heads import Output


@dataclass(frozen=True)
class Tensors:
    """`heads.base.Numbers` of tensors."""

    raw: Tensor  # [members, time, batch, outputs]
    road: Tensor  # [members, time, batch], or a zero

    def output(self, k: int) -> Tensor:
        return self.raw[..., k]

    def with_road(self) -> Tensor:
        return self.raw + (self.road.unsqueeze(-1) if self.road.dim() else self.road)

    @staticmethod
    def softplus(x: Tensor) -> Tensor:
        return softplus(x)

    @staticmethod
    def full(like: Tensor, value: float) -> Tensor:
        return torch.full_like(like, value)

    @staticmethod
    def join(parts: list[Tensor]) -> Tensor:
        return torch.cat(parts)


def apply_head(arch: Architecture, weights: dict[str, Tensor], h: Tensor, r: Tensor) -> Output:
    """From hidden state ``h [members, time, batch, hidden]`` and road-load features ``r [members|1, time, batch, road]``."""
    members = len(h)
    if h.is_cuda:  # a product per step: the gradient of so small a head, as one long product per member, starves a GPU
        raw = torch.matmul(h, weights["head_w"].transpose(1, 2).unsqueeze(1)) + weights["head_b"].view(
            members, 1, 1, -1
        )
    else:
        raw = _across(h, weights["head_w"]) + weights["head_b"].view(members, 1, 1, -1)
    if arch.road and h.is_cuda:
        road = torch.matmul(r, weights["road_w"].view(members, 1, arch.road, 1)).squeeze(-1)  # [members, time, batch]
    elif arch.road:
        road = _across(r.expand(members, -1, -1, -1), weights["road_w"].unsqueeze(1)).squeeze(-1)
    else:
        road = raw.new_zeros(())
    out = arch.distribution.apply(Tensors(raw, road))
    return Output(out.mu, out.scale, arch.degrees_of_freedom(weights, Tensors), out.quantiles)


def negative_log_likelihood(arch: Architecture, out: Output, y: Tensor) -> Tensor:
    """Per row; for a head without a density its own loss."""
    loss: Tensor = arch.distribution.loss(out, y, arch.levels)
    return loss


class _Across(torch.autograd.Function):
    """``a w'`` for few outputs on a CPU, laid out ``[members, outputs, rows]``: a long axis last is several times faster."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(a, w)
        return torch.bmm(w, a.transpose(1, 2))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor | None, Tensor]:
        a, w = ctx.saved_tensors
        return torch.bmm(d.transpose(1, 2), w) if ctx.needs_input_grad[0] else None, torch.bmm(d, a)


def _across(a: Tensor, w: Tensor) -> Tensor:
    """``[members, time, batch, k]`` times ``[members, outputs, k]``: ``[members, time, batch, outputs]``."""
    members, time, batch, k = a.shape
    out: Tensor = _Across.apply(a.reshape(members, time * batch, k), w)  # type: ignore[no-untyped-call]
    return out.transpose(1, 2).view(members, time, batch, -1)
