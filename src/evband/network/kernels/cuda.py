"""The GPU kernel: Triton programs behind one autograd function over the whole stack.

fp32-accurate by default: a product runs on the matrix units as three tf32 products. One tf32 product is used where
``torch.set_float32_matmul_precision`` is ``"high"`` or ``"medium"``, as for torch's own products.

A training step on this kernel can be captured as a CUDA graph (``training/graph.py``): all it launches depends on shapes
only, and the streams it forks are joined before it returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from evband.network.kernels import _triton_lstm as recurrence
from evband.network.kernels import _triton_products as products
from evband.network.kernels import _wavefront as wavefront
from evband.network.kernels.reference import zero_state
from evband.network.lstm import LayerWeights, Masks, State

TILE = 16  # windows a program: the least a matrix unit takes
CHUNKS = {"forward": 4, "backward": 2}  # of time, so that layers overlap
STAGES = {"forward": 3, "backward": 4}  # steps whose loads are under way at a time
ROWS = 64  # of a program of the input gradient
PARTS = 8  # row ranges of a weight gradient, at least


def run(
    x: Tensor, layers: list[LayerWeights], state: State | None, masks: Masks | None, carry: Tensor | None = None
) -> tuple[Tensor, State]:
    """Same contract as ``reference.run``, float32."""
    state = state or zero_state(x, layers)
    members = layers[0].w_hh.shape[0]
    each = x.expand(members, -1, -1, -1)  # its backward sums over members
    dropout = () if masks is None else (*masks.inputs, *masks.recurrent)
    weights = [w for layer in layers for w in (layer.w_ih, layer.w_hh, layer.bias)]
    carry = None if carry is None else carry.expand(members, -1, -1).contiguous()
    y, h, c = _Stack.apply(each, state.h, state.c, carry, len(layers), *dropout, *weights)  # type: ignore[no-untyped-call]
    if masks is not None:
        y = y * masks.output.unsqueeze(1)
    return y, State(h, c)


class _Stack(torch.autograd.Function):
    """(x, h0, c0, carry, depth, [input masks, recurrent masks], weights) -> (y, h, c)."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h0: Tensor, c0: Tensor, carry: Tensor | None, depth: int, *rest: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        masks = [m.contiguous() for m in rest[: len(rest) - 3 * depth]]
        weights = [_inner_contiguous(w) for w in rest[len(masks) :]]
        h0, c0 = h0.contiguous(), c0.contiguous()
        h, c = torch.empty_like(h0), torch.empty_like(c0)
        save = any(ctx.needs_input_grad)
        fed, layers = _inner_contiguous(x), []
        for k in range(depth):
            layers.append(_Layer.new(fed, weights[3 * k : 3 * k + 3], masks[k::depth], carry, save))
            fed = layers[k].hs[:, 1:]

        def launch(k: int, chunk: wavefront.Chunk) -> None:
            start = (h0[k], c0[k]) if chunk[0] == 0 else (h[k], c[k])
            layers[k].forward(chunk, *start, h[k], c[k])

        chunks = wavefront.cut(x.shape[1], CHUNKS["forward"] if depth > 1 else 1)
        wavefront.run(list(range(depth)), chunks, x.device, launch)
        if save:
            ctx.exact = layers[0].exact
            ctx.depth = depth
            ctx.save_for_backward(*[t for layer in layers for t in layer.saved()], carry, *masks)
        return fed, h, c

    @staticmethod
    def backward(ctx: Any, dy: Tensor, dh: Tensor, dc: Tensor) -> tuple[Tensor | None, ...]:
        depth, saved = ctx.depth, ctx.saved_tensors
        carry, *masks = saved[7 * depth :]
        layers = [_Layer(masks[k::depth], carry, ctx.exact, *saved[7 * k : 7 * k + 7]) for k in range(depth)]
        dh, dc = dh.contiguous(), dc.contiguous()
        dh0, dc0 = torch.empty_like(dh), torch.empty_like(dc)
        dzs = [torch.empty_like(layer.gates) for layer in layers]
        dxs = [torch.empty_like(layer.fed, memory_format=torch.contiguous_format) for layer in layers]
        dys = [*dxs[1:], _inner_contiguous(dy)]
        need_dx = ctx.needs_input_grad[0]
        chunks = wavefront.cut(dy.shape[1], CHUNKS["backward"])[::-1]
        sums = [_WeightSums(layer, chunks) for layer in layers]

        def launch(k: int, chunk: wavefront.Chunk) -> None:
            end = (dh[k], dc[k]) if chunk == chunks[0] else (dh0[k], dc0[k])
            layers[k].backward(chunk, dys[k], dzs[k], *end, dh0[k], dc0[k])
            if k or need_dx:
                layers[k].input_gradient(chunk, dzs[k], dxs[k])

        wavefront.run(
            list(reversed(range(depth))), chunks, dy.device, launch, lambda k, chunk: sums[k].add(chunk, dzs[k])
        )
        gradients = [g for s in sums for g in s.result]
        return (dxs[0] if need_dx else None, dh0, dc0, None, None, *[None] * len(masks), *gradients)


@dataclass(frozen=True)
class _Layer:
    """One layer of all members: its tensors, and its kernels over a chunk of time."""

    masks: list[Tensor]  # on what enters the layer and on its own state, or none
    carry: Tensor | None  # [members, time, batch]: 0 where the state is reset before a step, else 1
    exact: bool  # to float32
    fed: Tensor  # [members, time, batch, inputs]; members may share it
    w_ih: Tensor
    w_hh: Tensor
    bias: Tensor
    hs: Tensor  # [members, time + 1, batch, hidden]
    cs: Tensor  # the same, where gradients are wanted
    gates: Tensor  # [members, time, batch, 4 hidden], the gates of a unit side by side; likewise

    @classmethod
    def new(cls, fed: Tensor, weights: list[Tensor], masks: list[Tensor], carry: Tensor | None, save: bool) -> _Layer:
        members, time, batch, _ = fed.shape
        hidden = weights[1].shape[2]
        hs = fed.new_empty(members, time + 1, batch, hidden)
        cs = torch.empty_like(hs) if save else hs
        gates = fed.new_empty(members, time, batch, 4 * hidden) if save else hs
        exact = torch.get_float32_matmul_precision() == "highest"
        w_ih, w_hh, bias = weights
        return cls(masks, carry, exact, fed, w_ih, w_hh, bias, hs, cs, gates)

    def saved(self) -> tuple[Tensor, ...]:
        return self.fed, self.w_ih, self.w_hh, self.bias, self.hs, self.cs, self.gates

    def forward(self, chunk: wavefront.Chunk, h0: Tensor, c0: Tensor, h_last: Tensor, c_last: Tensor) -> None:
        first, stop = chunk
        drive = self.fed[:, first:stop]
        if not self.fused:
            drive = self._project(drive)
        recurrence.forward[self._grid()](
            *(drive, self.w_ih, self.w_hh, self.bias, h0, c0, *self._kept(h0), self._carry(first, h0)),
            *(self.hs[:, first:], self.cs[:, first:], self.gates[:, first:], h_last, c_last),
            *(drive.stride(0), self.w_ih.stride(0), self.w_hh.stride(0), self.bias.stride(0)),
            *(self.time, stop - first, self.batch),
            INPUTS=self.inputs,
            FP=_power_of_two(self.inputs),
            FUSED=self.fused,
            SAVE=self.gates is not self.hs,
            **self._choices("forward"),
        )

    def _project(self, fed: Tensor) -> Tensor:
        """x W_ih' + b for all steps of a chunk at once."""
        if self.masks:
            fed = fed * self.masks[0].unsqueeze(1)
        drive = torch.baddbmm(self.bias.unsqueeze(1), fed.flatten(1, 2), self.w_ih.transpose(1, 2))
        return drive.view(*fed.shape[:3], -1)

    def backward(
        self,
        chunk: wavefront.Chunk,
        dy: Tensor,
        dz: Tensor,  # out: gradient before the activations, laid out as the gates
        dh_last: Tensor,
        dc_last: Tensor,
        dh0: Tensor,
        dc0: Tensor,
    ) -> None:
        first, stop = chunk
        recurrence.backward[self._grid()](
            *(
                dy[:, first:],
                self.gates[:, first:],
                self.cs[:, first:],
                self.w_hh,
                self._kept(dh0)[1],
                self._carry(first, dh0),
            ),
            *(dh_last, dc_last, dz[:, first:], dh0, dc0),
            *(dy.stride(0), self.w_hh.stride(0), 1, self.time, stop - first, self.batch),
            **self._choices("backward"),
        )

    def input_gradient(self, chunk: wavefront.Chunk, dz: Tensor, dx: Tensor) -> None:
        first, stop = chunk
        rows = (stop - first) * self.batch
        products.input_gradient[(-(-rows // ROWS), dz.shape[0])](
            *(dz[:, first:], self.w_ih, self._kept(dz)[0], dx[:, first:]),
            *(self.w_ih.stride(0), self.time, self.batch, rows),
            HIDDEN=self.hidden,
            INPUTS=self.inputs,
            FP=_power_of_two(self.inputs),
            BLOCK=min(128, _power_of_two(4 * self.hidden)),
            ROWS=ROWS,
            MASKED=bool(self.masks),
            EXACT=self.exact,
            num_warps=4 if self.inputs <= 32 else 8,
            num_stages=1,
        )

    @property
    def time(self) -> int:
        return self.fed.shape[1]

    @property
    def batch(self) -> int:
        return self.fed.shape[2]

    @property
    def inputs(self) -> int:
        return self.fed.shape[3]

    @property
    def hidden(self) -> int:
        return self.w_hh.shape[2]

    @property
    def padded(self) -> int:
        return _power_of_two(self.hidden)

    @property
    def fused(self) -> bool:
        """Input weights fit on chip beside the recurrent ones."""
        return self.padded <= 32 and self.inputs <= 32

    def _kept(self, filler: Tensor) -> tuple[Tensor, Tensor]:
        return (self.masks[0], self.masks[1]) if self.masks else (filler, filler)

    def _carry(self, first: int, filler: Tensor) -> Tensor:
        return filler if self.carry is None else self.carry[:, first:]

    def _grid(self) -> tuple[int, int]:
        return (-(-self.batch // TILE), self.w_hh.shape[0])

    def _choices(self, way: str) -> dict[str, Any]:
        """What the recurrent kernels are compiled for."""
        resident = self.padded <= 64  # larger recurrent weights are read anew each step
        return {
            "HIDDEN": self.hidden,
            "HP": self.padded,
            "TILE": TILE,
            "RESIDENT": resident,
            "MASKED": bool(self.masks),
            "RESETS": self.carry is not None,
            "EXACT": self.exact,
            "num_warps": 4 if self.padded <= 32 else 8,
            "num_stages": STAGES[way] if resident else 1,
        }


class _WeightSums:
    """Gradients of a layer's w_ih, w_hh and bias: dz' [fed, h before, 1], summed over chunks and parts of their rows."""

    def __init__(self, layer: _Layer, chunks: list[wavefront.Chunk]) -> None:
        self.layer, self.chunks = layer, chunks
        self.widths = [4 * layer.hidden * n for n in (layer.inputs, layer.hidden, 1)]
        self.each = -(-PARTS // len(chunks))
        self.parts = layer.hs.new_empty(layer.hs.shape[0], len(chunks) * self.each, sum(self.widths))
        self.result: list[Tensor] = []

    def add(self, chunk: wavefront.Chunk, dz: Tensor) -> None:
        layer, (first, stop) = self.layer, chunk
        rows, columns = (stop - first) * layer.batch, 4 * layer.hidden
        block = min(128, _power_of_two(columns))
        products.weight_gradient[(self.each, -(-columns // block), dz.shape[0])](
            *(dz[:, first:], layer.fed[:, first:], layer.hs[:, first:], *layer._kept(dz), layer._carry(first, dz)),
            *(self.parts[:, self.chunks.index(chunk) * self.each :], layer.fed.stride(0), self.parts.shape[1]),
            *(layer.time, layer.batch, rows, -(-rows // self.each)),
            HIDDEN=layer.hidden,
            INPUTS=layer.inputs,
            HP=layer.padded,
            FP=_power_of_two(layer.inputs),
            BLOCK=block,
            STEP=32,
            MASKED=bool(layer.masks),
            RESETS=layer.carry is not None,
            EXACT=layer.exact,
            num_warps=4 if max(layer.padded, layer.inputs) <= 32 else 8,
            num_stages=3,
        )
        if chunk == self.chunks[-1]:
            w_ih, w_hh, bias = self.parts.sum(1).split(self.widths, dim=1)
            self.result = [w_ih.view_as(layer.w_ih), w_hh.view_as(layer.w_hh), bias]


def _power_of_two(n: int) -> int:
    return max(16, 1 << (n - 1).bit_length())


def _inner_contiguous(x: Tensor) -> Tensor:
    """x with each member's part contiguous; members may share storage or be apart."""
    return x if x[0].is_contiguous() else x.contiguous()
