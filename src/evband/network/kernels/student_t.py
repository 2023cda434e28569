"""The Student-t negative log likelihood as one GPU kernel each way: some forty small torch kernels otherwise.

nll = log s + k(nu) + (nu+1)/2 log(1 + z^2/nu),  z = (y - mu)/s
k(nu) = log(nu pi)/2 + lgamma(nu/2) - lgamma((nu+1)/2)
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 1024


@triton.jit
def _lgamma(x):
    """For x > 1: Stirling's series at x + 4, brought back by Gamma(x + 1) = x Gamma(x)."""
    a = x + 4.0
    r = 1.0 / (a * a)
    series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / a
    return (a - 0.5) * tl.log(a) - a + 0.9189385332046727 + series - tl.log(x * (x + 1.0) * (x + 2.0) * (x + 3.0))


@triton.jit
def _digamma(x):
    """Its derivative, likewise."""
    a = x + 4.0
    r = 1.0 / (a * a)
    series = r * (1.0 / 12.0 - r * (1.0 / 120.0 - r * (1.0 / 252.0 - r / 240.0)))
    back = 1.0 / x + 1.0 / (x + 1.0) + 1.0 / (x + 2.0) + 1.0 / (x + 3.0)
    return tl.log(a) - 0.5 / a - series - back


@triton.jit(do_not_specialize=["rows"])
def _forward(mu, scale, nu, y, nll, rows, BLOCK: tl.constexpr):
    member = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    own = r < rows
    at = member * rows + r
    n = tl.load(nu + member)
    s = tl.load(scale + at, mask=own, other=1.0)
    z = (tl.load(y + at, mask=own, other=0.0) - tl.load(mu + at, mask=own, other=0.0)) / s
    constant = 0.5 * tl.log(n * 3.141592653589793) + _lgamma(0.5 * n) - _lgamma(0.5 * n + 0.5)
    tl.store(nll + at, tl.log(s) + constant + (0.5 * n + 0.5) * tl.log(1.0 + z * z / n), mask=own)


@triton.jit(do_not_specialize=["rows"])
def _backward(d, mu, scale, nu, y, dmu, dscale, dnu, rows, BLOCK: tl.constexpr):
    member = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    own = r < rows
    at = member * rows + r
    n = tl.load(nu + member)
    g = tl.load(d + at, mask=own, other=0.0)
    s = tl.load(scale + at, mask=own, other=1.0)
    z = (tl.load(y + at, mask=own, other=0.0) - tl.load(mu + at, mask=own, other=0.0)) / s
    pull = (n + 1.0) / (n + z * z)
    tl.store(dmu + at, -g * pull * z / s, mask=own)
    tl.store(dscale + at, g * (1.0 - pull * z * z) / s, mask=own)
    constant = 0.5 / n + 0.5 * _digamma(0.5 * n) - 0.5 * _digamma(0.5 * n + 0.5)
    each = g * (constant + 0.5 * tl.log(1.0 + z * z / n) - 0.5 * pull * z * z / n)
    tl.store(dnu + member * tl.num_programs(0) + tl.program_id(0), tl.sum(tl.where(own, each, 0.0), axis=0))


class _StudentT(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mu: Tensor, scale: Tensor, nu: Tensor, y: Tensor) -> Tensor:
        mu, scale, nu, y = mu.contiguous(), scale.contiguous(), nu.contiguous(), y.contiguous()
        nll = torch.empty_like(mu)
        rows = mu[0].numel()
        _forward[(-(-rows // BLOCK), len(mu))](mu, scale, nu, y, nll, rows, BLOCK=BLOCK)
        ctx.save_for_backward(mu, scale, nu, y)
        return nll

    @staticmethod
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        mu, scale, nu, y = ctx.saved_tensors
        dmu, dscale = torch.empty_like(mu), torch.empty_like(mu)
        rows = mu[0].numel()
        programs = -(-rows // BLOCK)
        dnu = mu.new_empty(len(mu), programs)
        _backward[(programs, len(mu))](d.contiguous(), mu, scale, nu, y, dmu, dscale, dnu, rows, BLOCK=BLOCK)
        return dmu, dscale, dnu.sum(1), None


def student_t_nll(
    mu: Tensor,  # [members, ...], float32
    scale: Tensor,  # the same shape
    nu: Tensor,  # [members], over 2
    y: Tensor,  # as mu; no gradient
) -> Tensor:
    """The nll of every row, differentiable in mu, scale and nu."""
    return _StudentT.apply(mu, scale, nu, y)  # type: ignore[no-untyped-call, no-any-return]
