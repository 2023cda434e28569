"""Heads: what the network says about the power of a row, and how well that fits what was measured.

Everything here is in standardised target units.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import softplus

from evband.network.architecture import SCALE_FLOOR, Architecture


@dataclass(frozen=True)
class Output:
    """Location and scale of each row (t, Gaussian), or its quantiles."""

    mu: Tensor  # [members, ...]: the location; of a quantile head, the median; of a distilled one [2 members, ...]
    scale: Tensor | None  # [members, ...]
    nu: Tensor | None  # [members]
    quantiles: Tensor | None  # [members, ..., levels], unsorted as trained


def apply_head(arch: Architecture, weights: dict[str, Tensor], h: Tensor, r: Tensor) -> Output:
    """From hidden state ``h [members, time, batch, hidden]`` and road-load features ``r [members|1, time, batch, road]``."""
    members = len(h)
    if h.is_cuda:  # a product a step: the gradient of so small a head, as one long product a member, starves a GPU
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
    if arch.head == "quantile":
        quantiles = raw + (road.unsqueeze(-1) if arch.road else road)
        return Output(quantiles[..., len(arch.levels) // 2], None, None, quantiles)
    mu, scale, nu = raw[..., 0] + road, softplus(raw[..., 1]) + SCALE_FLOOR, degrees_of_freedom(arch, weights)
    if arch.head == "distilled":
        epistemic = raw[..., 2]
        return Output(torch.cat([mu - epistemic, mu + epistemic]), torch.cat([scale, scale]), nu, None)
    return Output(mu, scale, nu, None)


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


def degrees_of_freedom(arch: Architecture, weights: dict[str, Tensor]) -> Tensor | None:
    """One scalar per member: ``nu_min + softplus(nu_raw)``, or the fixed value."""
    if arch.head == "distilled":
        return torch.full_like(weights["head_b"][:, 0], arch.nu or torch.nan).repeat(2)
    if arch.head != "t":
        return None
    if arch.nu is not None:
        return torch.full_like(weights["nu_raw"], arch.nu)
    return arch.nu_min + softplus(weights["nu_raw"])


def negative_log_likelihood(arch: Architecture, out: Output, y: Tensor) -> Tensor:
    """Per row; for the quantile head the pinball loss, summed over levels.

    Student-t, with all constants (the paper's eq. 3):
        log s + log(nu pi)/2 + lgamma(nu/2) - lgamma((nu+1)/2) + (nu+1)/2 log(1 + z^2/nu),  z = (y - mu)/s
    """
    if out.quantiles is not None:
        levels = _levels(arch.levels, y.dtype, y.device)
        error = y.unsqueeze(-1) - out.quantiles
        return torch.maximum(levels * error, (levels - 1) * error).sum(-1)
    assert out.scale is not None
    z = (y - out.mu) / out.scale
    if out.nu is None:
        return out.scale.log() + 0.5 * z.square() + 0.5 * math.log(2 * math.pi)
    if y.is_cuda and y.dtype == torch.float32 and find_spec("triton"):
        from evband.network.kernels.student_t import student_t_nll

        return student_t_nll(out.mu, out.scale, out.nu, y.expand_as(out.mu))
    nu = out.nu.view(-1, *[1] * (y.dim() - 1))
    constant = 0.5 * (nu * math.pi).log() + torch.lgamma(nu / 2) - torch.lgamma((nu + 1) / 2)
    return out.scale.log() + constant + (nu + 1) / 2 * torch.log1p(z.square() / nu)


@cache
def _levels(levels: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Made once: a captured training step may not copy from the host."""
    return torch.tensor(levels, dtype=dtype, device=device)
