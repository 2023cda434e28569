"""The CPU kernel: forward and backward of all members, compiled by Numba for the user's processor.

Work is cut into (member, tile of windows) and handed to plain threads; compiled code holds no lock. The cut depends on
shapes only and each piece is summed in a fixed order, so results are the same to the bit on any number of threads.
Without gradients only a few steps are kept in memory, so a sequence may be as long as it likes.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evband.network.kernels import _cpu_tiles as tiles
from evband.network.kernels.reference import zero_state
from evband.network.lstm import LayerWeights, Masks, State

Floats = NDArray[np.float32]

TILE = 32  # windows; a tile's step of one layer fits the first-level cache, its whole layer the second
CHUNK = 64  # steps kept in memory when no gradient is wanted


def run(x: Tensor, layers: list[LayerWeights], state: State | None, masks: Masks | None) -> tuple[Tensor, State]:
    """As ``reference.run``, for float32 on the CPU."""
    state = state or zero_state(x, layers)
    weights = [tensor for layer in layers for tensor in (layer.w_ih, layer.w_hh, layer.bias)]
    y, h, c = _EnsembleLSTM.apply(masks, x, state.h, state.c, *weights)
    return y, State(h, c)


class _EnsembleLSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, masks: Masks | None, x: Tensor, h0: Tensor, c0: Tensor, *weights: Tensor) -> Any:
        keep = any(ctx.needs_input_grad)
        plan = _Plan(x, weights, masks, x_gradient=ctx.needs_input_grad[1])
        packed = plan.pack(weights)
        out, kept = plan.forward(x, h0, c0, packed, keep)
        if keep:
            ctx.plan, ctx.kept, ctx.packed = plan, kept, packed
            ctx.save_for_backward(x)
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, dy: Tensor, dh: Tensor, dc: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        dx, dh0, dc0, weights = ctx.plan.backward(x, ctx.packed, ctx.kept, dy, dh, dc)
        return None, dx, dh0, dc0, *weights


class _Plan:
    """The shapes of one call, and the three passes over its pieces."""

    def __init__(self, x: Tensor, weights: tuple[Tensor, ...], masks: Masks | None, x_gradient: bool) -> None:
        shared, steps, batch, features = x.shape
        members, _, hidden = weights[1].shape
        units = _up(hidden, tiles.LANES)
        self.sizes = tiles.Sizes(
            steps=steps,
            batch=batch,
            features=features,
            hidden=hidden,
            layers=len(weights) // 3,
            members=members,
            inputs=_up(features, tiles.ROWS),
            wide=_up(features, tiles.LANES) if x_gradient else 0,
            units=units,
            gates=4 * units,
            masked=masks is not None,
        )
        self.x_shared = shared == 1
        self.pieces = [
            (member, first, min(TILE, batch - first)) for member in range(members) for first in range(0, batch, TILE)
        ]
        self.x_mask, self.masks = self._masks(masks)

    def _masks(self, masks: Masks | None) -> tuple[Floats, Floats]:
        """Of x [members, batch * features]; of the rest [members, 2 layers * batch * units]: recurrent, inputs, output."""
        members = self.sizes.members
        if masks is None:
            return np.zeros((members, 1), np.float32), np.zeros((members, 1), np.float32)
        rest = torch.stack([*masks.recurrent, *masks.inputs[1:], masks.output], dim=1)
        rest = torch.nn.functional.pad(rest, (0, self.sizes.units - self.sizes.hidden))
        return _rows(masks.inputs[0], members), _rows(rest, members)

    def pack(self, weights: tuple[Tensor, ...]) -> tuple[Floats, Floats]:
        s = self.sizes
        forward = np.zeros((s.members, tiles.forward_weights_at(s, s.layers)), np.float32)
        backward = np.zeros((s.members, tiles.backward_weights_at(s, s.layers)), np.float32)
        flat = [_rows(tensor, s.members) for tensor in weights]

        def piece(k: int, scratch: _Scratch) -> None:
            member, layer = divmod(k, s.layers)
            w_ih, w_hh, bias = (tensor[member] for tensor in flat[3 * layer : 3 * layer + 3])
            tiles.pack(s, layer, w_ih, w_hh, bias, forward[member], backward[member])

        _in_threads(s.members * s.layers, piece)
        return forward, backward

    def forward(
        self, x: Tensor, h0: Tensor, c0: Tensor, packed: tuple[Floats, Floats], keep: bool
    ) -> tuple[tuple[Tensor, Tensor, Tensor], _Kept | None]:
        s = self.sizes
        chunk = s.steps if keep else min(CHUNK, s.steps)
        kept = _Kept(s, len(self.pieces)) if keep else None
        y = torch.empty(s.members, s.steps, s.batch, s.hidden)
        h_end, c_end = torch.empty(h0.shape), torch.empty(c0.shape)
        flat_x, flat_y = _rows(x, x.shape[0]), _rows(y, s.members)
        states = [_flat(tensor) for tensor in (h0, c0, h_end, c_end)]

        def piece(k: int, scratch: _Scratch) -> None:
            member, first, count = self.pieces[k]
            rows = _up(count, 2 * tiles.ROWS) if keep else count
            area = rows * s.units
            if kept is not None:
                gates, cells, hs = kept.piece(k)
            else:
                gates = scratch("gates", 4 * area)
                cells = scratch("cells", s.layers * (1 + chunk) * area)
                hs = scratch("hs", s.layers * (1 + chunk) * area)
            tiles.forward_tile(
                s, member, first, count, rows, chunk, 4 * area if keep else 0,
                flat_x[0 if self.x_shared else member], packed[0][member], states[0], states[1],
                self.x_mask[member], self.masks[member], gates, cells, hs,
                scratch("forward", chunk * rows * (s.inputs + s.units) + area), flat_y[member], states[2], states[3],
            )  # fmt: skip

        _in_threads(len(self.pieces), piece)
        return (y, h_end, c_end), kept

    def backward(
        self, x: Tensor, packed: tuple[Floats, Floats], kept: _Kept, dy: Tensor, dh: Tensor, dc: Tensor
    ) -> tuple[Tensor | None, Tensor, Tensor, list[Tensor]]:
        s = self.sizes
        dw = np.empty((len(self.pieces), tiles.forward_weights_at(s, s.layers)), np.float32)
        dx = torch.empty(s.members if s.wide else 0, s.steps, s.batch, s.features)
        dh0, dc0 = torch.empty(dh.shape), torch.empty(dc.shape)
        flat_x, flat_dy, flat_dx = _rows(x, x.shape[0]), _rows(dy, s.members), _rows(dx, dx.shape[0])
        states = [_flat(tensor) for tensor in (dh, dc, dh0, dc0)]

        def piece(k: int, scratch: _Scratch) -> None:
            member, first, count = self.pieces[k]
            rows = _up(count, 2 * tiles.ROWS)
            size = s.steps * rows * (max(s.units, s.wide) + max(s.units, s.inputs) + s.units)
            size += tiles.STEPS_A_PRODUCT * rows * s.gates + 2 * rows * s.units + s.gates
            tiles.backward_tile(
                s, member, first, count, rows, flat_x[0 if self.x_shared else member], packed[1][member],
                self.x_mask[member], self.masks[member], *kept.piece(k), scratch("backward", size), flat_dy[member],
                states[0], states[1], dw[k], flat_dx[member] if s.wide else dw[k], states[2], states[3],
            )  # fmt: skip

        _in_threads(len(self.pieces), piece)
        total = None if not s.wide else dx.sum(0, keepdim=True) if self.x_shared and s.members > 1 else dx
        return total, dh0, dc0, self._unpack(dw)

    def _unpack(self, dw: Floats) -> list[Tensor]:
        s = self.sizes
        gradients = []
        for layer in range(s.layers):
            columns = s.hidden if layer else s.features
            for shape in ((4 * s.hidden, columns), (4 * s.hidden, s.hidden), (4 * s.hidden,)):
                gradients.append(torch.empty(s.members, *shape))
        flat = [_rows(tensor, s.members) for tensor in gradients]
        by_member = dw.reshape(s.members, -1)

        def piece(k: int, scratch: _Scratch) -> None:
            member, layer = divmod(k, s.layers)
            parts = (tensor[member] for tensor in flat[3 * layer : 3 * layer + 3])
            tiles.unpack(s, layer, len(self.pieces) // s.members, by_member[member], *parts)

        _in_threads(s.members * s.layers, piece)
        return gradients


class _Kept:
    """What forward leaves for backward; its memory is handed on to the next step instead of back to the system."""

    _free: list[Floats] = []  # noqa: RUF012  (one, shared on purpose)

    def __init__(self, s: tiles.Sizes, pieces: int) -> None:
        area = TILE * s.units
        self.parts = (s.layers * s.steps * 4 * area, s.layers * (1 + s.steps) * area, s.layers * (1 + s.steps) * area)
        self.size = sum(self.parts)
        try:
            self.memory = self._free.pop()
        except IndexError:
            self.memory = np.empty(0, np.float32)
        if self.memory.size < pieces * self.size:
            self.memory = np.empty(pieces * self.size, np.float32)

    def piece(self, k: int) -> tuple[Floats, Floats, Floats]:
        gates, cells, _ = self.parts
        own = self.memory[k * self.size : (k + 1) * self.size]
        return own[:gates], own[gates : gates + cells], own[gates + cells :]

    def __del__(self) -> None:
        if not self._free:
            self._free.append(self.memory)


class _Scratch(threading.local):
    """A thread's working memory, kept between calls."""

    def __init__(self) -> None:
        self.arrays: dict[str, Floats] = {}

    def __call__(self, name: str, size: int) -> Floats:
        array = self.arrays.get(name)
        if array is None or array.size < size:
            array = self.arrays[name] = np.empty(size, np.float32)
        return array


_scratch = _Scratch()
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process, since threads do not survive a fork, and size


def _in_threads(count: int, piece: Callable[[int, _Scratch], None]) -> None:
    """piece(0) ... piece(count - 1) on as many threads as torch may use, the caller's among them."""
    helpers = min(torch.get_num_threads(), count) - 1
    numbers = itertools.count()  # next() on it is atomic

    def work() -> None:
        while (k := next(numbers)) < count:
            piece(k, _scratch)

    if helpers < 1:
        return work()
    pool = _pools.setdefault((os.getpid(), helpers), ThreadPoolExecutor(helpers, thread_name_prefix="evband"))
    futures = [pool.submit(work) for _ in range(helpers)]
    work()
    for future in futures:
        future.result()


def _up(count: int, whole: int) -> int:
    return -(-count // whole) * whole


def _flat(tensor: Tensor) -> Floats:
    array: Floats = tensor.detach().contiguous().numpy().reshape(-1)
    return array


def _rows(tensor: Tensor, members: int) -> Floats:
    """[members, everything else] without a copy where possible."""
    array: Floats = tensor.detach().contiguous().numpy().reshape(members, tensor.numel() // members if members else 0)
    return array
