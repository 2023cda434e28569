"""The GPU kernel: Triton programs behind one autograd function over the whole stack.

fp32-accurate by default: products run on the matrix units as three tf32 products. One tf32 product is used
where ``torch.set_float32_matmul_precision`` is ``"high"`` or ``"medium"``, as for torch's own products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from evband.network.kernels import _triton_lstm as kernels
from evband.network.kernels.reference import zero_state
from evband.network.lstm import LayerWeights, Masks, State

TILE = 16  # windows a program: the least a matrix unit takes
PARTS = 8  # row ranges of a weight gradient


def run(x: Tensor, layers: list[LayerWeights], state: State | None, masks: Masks | None) -> tuple[Tensor, State]:
    """Same contract as ``reference.run``, float32."""
    state = state or zero_state(x, layers)
    members = layers[0].w_hh.shape[0]
    shared = x.expand(members, -1, -1, -1)  # its backward sums over members
    dropout = () if masks is None else (*masks.inputs, *masks.recurrent)
    weights = [w for layer in layers for w in (layer.w_ih, layer.w_hh, layer.bias)]
    y, h, c = _Stack.apply(shared, state.h, state.c, len(layers), *dropout, *weights)  # type: ignore[no-untyped-call]
    if masks is not None:
        y = y * masks.output.unsqueeze(1)
    return y, State(h, c)


@dataclass(frozen=True)
class _Plan:
    """Sizes and choices of one layer's kernels."""

    time: int
    batch: int
    hidden: int
    inputs: int
    masked: bool
    exact: bool

    @property
    def padded(self) -> int:
        return _power_of_two(self.hidden)

    @property
    def fused(self) -> bool:
        """Input weights fit on chip beside the recurrent ones."""
        return self.padded <= 32 and _power_of_two(self.inputs) <= 32

    @property
    def resident(self) -> bool:
        """Recurrent weights fit on chip; larger ones are read anew each step."""
        return self.padded <= 64

    def launch(self) -> dict[str, Any]:
        return {
            "HIDDEN": self.hidden,
            "INPUTS": self.inputs,
            "HP": self.padded,
            "FP": _power_of_two(self.inputs),
            "TILE": TILE,
            "RESIDENT": self.resident,
            "MASKED": self.masked,
            "EXACT": self.exact,
            "num_warps": 4 if self.padded <= 32 else 8,
            "num_stages": 2 if self.resident else 1,
        }

    def grid(self, members: int) -> tuple[int, int]:
        return (-(-self.batch // TILE), members)


class _Stack(torch.autograd.Function):
    """(x, h0, c0, layers, [input masks, recurrent masks], weights) -> (y, h, c)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h0: Tensor, c0: Tensor, depth: int, *rest: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        masks = [m.contiguous() for m in rest[: len(rest) - 3 * depth]]
        weights = [w.contiguous() for w in rest[len(masks) :]]
        h0, c0 = h0.contiguous(), c0.contiguous()
        save = any(ctx.needs_input_grad)
        h_last, c_last = torch.empty_like(h0), torch.empty_like(c0)
        plans, kept = [], []
        fed = _rows_contiguous(x)  # [members, time, batch, inputs]
        for k in range(depth):
            plan = _plan(fed, weights[3 * k + 1], bool(masks))
            w = weights[3 * k : 3 * k + 3]
            dropout = (masks[k], masks[depth + k]) if masks else (h0, h0)
            hs, cs, gates = _forward(plan, fed, w, h0[k], c0[k], dropout, h_last[k], c_last[k], save)
            plans.append(plan)
            kept += [fed, hs, cs, gates]
            fed = hs[:, 1:]
        if save:
            ctx.plans = plans
            ctx.masked = bool(masks)
            ctx.save_for_backward(*kept, *masks, *weights)
        return fed, h_last, c_last

    @staticmethod
    def backward(ctx: Any, dy: Tensor, dh: Tensor, dc: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        depth = len(ctx.plans)
        saved = ctx.saved_tensors
        kept, masks, weights = saved[: 4 * depth], saved[4 * depth : -3 * depth], saved[-3 * depth :]
        dh, dc = dh.contiguous(), dc.contiguous()
        dh0, dc0 = torch.empty_like(dh), torch.empty_like(dc)
        gradients: list[Tensor | None] = [None] * (3 * depth)
        dy = _rows_contiguous(dy)
        aside = _Aside(dy)
        for k in reversed(range(depth)):
            plan = ctx.plans[k]
            fed, hs, cs, gates = kept[4 * k : 4 * k + 4]
            w_ih, w_hh, _ = weights[3 * k : 3 * k + 3]
            dropout = (masks[k], masks[depth + k]) if ctx.masked else (dh, dh)
            last = (dh[k], dc[k], dh0[k], dc0[k])
            dz, dx = _backward(plan, dy, gates, cs, w_ih, w_hh, dropout, last, k > 0 or ctx.needs_input_grad[0])
            with aside:
                dw_ih, _ = _weight_gradient(plan, dz, fed, dropout[0], bias=False)
                dw_hh, db = _weight_gradient(plan, dz, hs[:, :-1], dropout[1], bias=True)
            gradients[3 * k : 3 * k + 3] = [dw_ih, dw_hh, db]
            if dx is not None:
                dy = dx
        aside.join()
        return (dx, dh0, dc0, None, *[None] * len(masks), *gradients)


class _Aside:
    """A side stream: weight gradients are nobody's input, so they fill the gaps the recurrences leave."""

    def __init__(self, like: Tensor) -> None:
        self.stream = torch.cuda.Stream(like.device) if like.is_cuda else None
        self.kept: list[Tensor] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream.wait_stream(torch.cuda.current_stream(self.stream.device))
            self.context = torch.cuda.stream(self.stream)
            self.context.__enter__()

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.context.__exit__(None, None, None)

    def join(self) -> None:
        if self.stream is not None:
            torch.cuda.current_stream(self.stream.device).wait_stream(self.stream)


def _forward(
    plan: _Plan,
    fed: Tensor,
    weights: list[Tensor],
    h0: Tensor,
    c0: Tensor,
    dropout: tuple[Tensor, Tensor],
    h_last: Tensor,
    c_last: Tensor,
    save: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """One layer: h at slots 1.. of [members, time + 1, batch, hidden], c likewise, and the activated gates."""
    w_ih, w_hh, bias = weights
    members = w_hh.shape[0]
    hs = fed.new_empty(members, plan.time + 1, plan.batch, plan.hidden)
    cs = torch.empty_like(hs) if save else hs
    gates = fed.new_empty(members, plan.time, plan.batch, 4 * plan.hidden) if save else hs
    drive = fed if plan.fused else _project(plan, fed, w_ih, bias, dropout[0])
    kernels.forward[plan.grid(members)](
        *(drive, w_ih, w_hh, bias, h0, c0, *dropout, hs, cs, gates, h_last, c_last),
        *(drive.stride(0), plan.time, plan.batch),
        FUSED=plan.fused,
        SAVE=save,
        **plan.launch(),
    )
    return hs, cs, gates


def _project(plan: _Plan, fed: Tensor, w_ih: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
    """x W_ih' + b for all steps at once."""
    if plan.masked:
        fed = fed * mask.unsqueeze(1)
    drive = torch.baddbmm(bias.unsqueeze(1), fed.flatten(1, 2), w_ih.transpose(1, 2))
    return drive.view(-1, plan.time, plan.batch, 4 * plan.hidden)


def _backward(
    plan: _Plan,
    dy: Tensor,
    gates: Tensor,
    cs: Tensor,
    w_ih: Tensor,
    w_hh: Tensor,
    dropout: tuple[Tensor, Tensor],
    last: tuple[Tensor, Tensor, Tensor, Tensor],
    need_dx: bool,
) -> tuple[Tensor, Tensor | None]:
    """One layer back through time: gradients before the activations, and of what entered the layer."""
    members = w_hh.shape[0]
    dh, dc, dh0, dc0 = last
    fused = plan.fused and need_dx
    dz = torch.empty_like(gates)
    dx = dz.new_empty(members, plan.time, plan.batch, plan.inputs) if fused else None
    kernels.backward[plan.grid(members)](
        *(dy, gates, cs, w_ih, w_hh, *dropout, dh, dc, dz, dz if dx is None else dx, dh0, dc0),
        *(dy.stride(0), 1, plan.time, plan.batch),
        FUSED=fused,
        **plan.launch(),
    )
    if need_dx and dx is None:
        beside = w_ih.unflatten(1, (4, plan.hidden)).transpose(1, 2).flatten(1, 2)  # rows in dz's order
        dx = torch.bmm(dz.flatten(1, 2), beside).view(members, plan.time, plan.batch, plan.inputs)
        if plan.masked:
            dx *= dropout[0].unsqueeze(1)
    return dz, dx


def _weight_gradient(plan: _Plan, dz: Tensor, fed: Tensor, mask: Tensor, *, bias: bool) -> tuple[Tensor, Tensor]:
    """dz' fed over all rows, and the sum of dz."""
    members, columns, width = dz.shape[0], 4 * plan.hidden, fed.shape[-1]
    rows = plan.time * plan.batch
    parts = min(PARTS, -(-rows // 64))
    dw = dz.new_empty(members, parts, columns, width)
    db = dz.new_empty(members, parts, columns) if bias else dw
    block = min(128, _power_of_two(columns))
    kernels.weight_gradient[(parts, -(-columns // block), members)](
        *(dz, fed, mask, dw, db, fed.stride(0), rows, plan.batch, -(-rows // parts)),
        HIDDEN=plan.hidden,
        WIDTH=width,
        WP=_power_of_two(width),
        BLOCK=block,
        STEP=32,
        MASKED=plan.masked,
        BIAS=bias,
        EXACT=plan.exact,
        num_warps=4 if width <= 32 else 8,
        num_stages=2,
    )
    return dw.sum(1), db.sum(1) if bias else db


def _plan(fed: Tensor, w_hh: Tensor, masked: bool) -> _Plan:
    _, time, batch, inputs = fed.shape
    exact = torch.get_float32_matmul_precision() == "highest"
    return _Plan(time, batch, w_hh.shape[2], inputs, masked, exact)


def _power_of_two(n: int) -> int:
    return max(16, 1 << (n - 1).bit_length())


def _rows_contiguous(x: Tensor) -> Tensor:
    """x with [time, batch, width] contiguous; members may share storage or be apart."""
    return x if x[0].is_contiguous() else x.contiguous()
