"""The CPU kernel: forward and backward of all members, compiled by Numba for the user's processor.

Work is cut into (member, tile of windows) and handed to plain threads; compiled code holds no lock. The cut depends on
shapes only and each piece is summed in a fixed order, so results are the same to the bit on any number of threads.
Without gradients only a few steps are kept in memory, so a sequence may be as long as it likes. Arrays in, arrays out:
prediction calls it without torch, training through ``cpu_autograd``.
"""

from __future__ import annotations

import itertools
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from evband.network.kernels import _cpu_layout as layout
from evband.network.kernels import _cpu_tiles as tiles
from evband.network.kernels import pack as packing
from evband.network.kernels.pack import aligned, up
from evband.network.kernels.vector import ROWS
from evband.network.lstm import LayerWeights, Masks, State
from evband.network.threads import kernel_threads

Floats = NDArray[np.float32]

TILE = 32  # windows; a tile's step of one layer fits the first-level cache, its whole layer the second
CHUNK = 64  # steps kept in memory when no gradient is wanted


def run(x: Floats, layers: list[LayerWeights], state: State | None, masks: Masks | None) -> tuple[Floats, State]:
    """As ``reference.run``, of arrays and without gradients."""
    weights = [array for layer in layers for array in (layer.w_ih, layer.w_hh, layer.bias)]
    if state is None:
        zeros = np.zeros((len(layers), len(weights[1]), x.shape[2], weights[1].shape[2]), np.float32)
        state = State(zeros, zeros)
    plan = Plan(x, weights, masks, keep=False, x_gradient=False)
    (y, h, c), _ = plan.forward(x, state.h, state.c, *weights)
    return y, State(h, c)


class Plan:
    """The shapes of one call, and the passes over its tiles."""

    def __init__(
        self,
        x: Floats,
        weights: Sequence[Floats],
        masks: Masks | None,
        keep: bool,
        x_gradient: bool,
        carry: Floats | None = None,  # [members, steps, batch]: 0 where the state is reset before a step, else 1
    ) -> None:
        shared, steps, batch, features = x.shape
        self.members, _, hidden = weights[1].shape
        self.shape = shape = packing.Shape.of(features, hidden, len(weights) // 3, x_gradient)
        self.sizes = layout.Sizes(
            steps=steps,
            batch=batch,
            features=features,
            hidden=hidden,
            layers=shape.layers,
            masked=int(masks is not None),
            resets=int(carry is not None),
            inputs=shape.inputs,
            wide=shape.wide,
            units=shape.units,
            gates=shape.gates,
        )
        self.x_of = (lambda member: 0) if shared == 1 else (lambda member: member)
        self.keep = keep
        self.tiles = [
            layout.Tile(member, first, count, up(count, 2 * ROWS) if keep else count)
            for member in range(self.members)
            for first in range(0, batch, TILE)
            for count in [min(TILE, batch - first)]
        ]
        self.x_mask, self.mask = self._masks(masks)
        none = np.zeros((self.members, 1, 1), np.float32)
        self.carry = none if carry is None else np.ascontiguousarray(carry)

    def _masks(self, masks: Masks | None) -> tuple[Floats, Floats]:
        """Of x [members, batch, features]; of the rest [members, 2 layers, batch, units]: recurrent, inputs, output."""
        if masks is None:
            return np.zeros((self.members, 1, 1), np.float32), np.zeros((self.members, 1, 1, 1), np.float32)
        rest = np.stack([*masks.recurrent, *masks.inputs[1:], masks.output], axis=1)
        padding = [(0, 0)] * 3 + [(0, self.sizes.units - self.sizes.hidden)]
        return np.ascontiguousarray(masks.inputs[0]), np.pad(rest, padding)

    def _each_layer(self, work: Callable[[int, int], None]) -> None:
        """work(member, layer) for all of them."""
        layers = self.sizes.layers
        in_threads(self.members * layers, lambda k, _: work(*divmod(k, layers)))

    def forward(
        self, x: Floats, h0: Floats, c0: Floats, *weights: Floats
    ) -> tuple[tuple[Floats, Floats, Floats], Floats]:
        """(y, h, c), and the block of memory that backward needs."""
        s = self.sizes
        chunk = s.steps if self.keep else min(CHUNK, s.steps)
        memory = _Memory(self)
        arrays = [np.ascontiguousarray(array) for array in weights]

        def pack(member: int, layer: int) -> None:
            own = (array[member] for array in arrays[3 * layer : 3 * layer + 3])
            packing.pack(tuple(self.shape), layer, *own, memory.weights[member], memory.weights_back[member])

        self._each_layer(pack)
        xs, h, c = (np.ascontiguousarray(array) for array in (x, h0, c0))
        y, h_last, c_last = (
            np.empty(shape, np.float32) for shape in ((self.members, s.steps, s.batch, s.hidden), h0.shape, c0.shape)
        )

        def run_tile(k: int, scratch: _Scratch) -> None:
            tile = self.tiles[k]
            area = tile.rows * s.units
            kept = memory.kept(k) if self.keep else _steps_only(scratch, area, s.layers * (1 + chunk) * area)
            tiles.forward_tile(
                tuple(s), tuple(tile), chunk, 4 * area if self.keep else 0, xs[self.x_of(tile.member)], memory.weights[tile.member],
                h, c, self.x_mask[tile.member], self.mask[tile.member], self.carry[tile.member], *kept,
                scratch("work", chunk * tile.rows * (s.inputs + s.units) + 2 * area), y[tile.member], h_last, c_last,
            )  # fmt: skip

        in_threads(len(self.tiles), run_tile)
        return (y, h_last, c_last), memory.block

    def backward(
        self, block: Floats, x: Floats, dy: Floats, dh: Floats, dc: Floats
    ) -> tuple[Floats | None, Floats, Floats, list[Floats]]:
        """Gradients of x, h0, c0 and the weights."""
        s, memory = self.sizes, _Memory(self, block)
        xs, d_y, d_h, d_c = (np.ascontiguousarray(array) for array in (x, dy, dh, dc))
        d_x = aligned(self.members if s.wide else 0, s.steps, s.batch, s.features)
        d_h0, d_c0 = aligned(*dh.shape), aligned(*dc.shape)
        unwanted = np.empty((1, 1, 1), np.float32)

        def run_tile(k: int, scratch: _Scratch) -> None:
            tile = self.tiles[k]
            tiles.backward_tile(
                tuple(s), tuple(tile), xs[self.x_of(tile.member)], memory.weights_back[tile.member],
                self.x_mask[tile.member], self.mask[tile.member], self.carry[tile.member], *memory.kept(k),
                scratch("work", tiles.backward_scratch.py_func(s, tile.rows)[-1]), d_y[tile.member], d_h, d_c,
                memory.gradient[k], d_x[tile.member] if s.wide else unwanted, d_h0, d_c0,
            )  # fmt: skip

        in_threads(len(self.tiles), run_tile)
        if s.wide and x.shape[0] < self.members:
            d_x = d_x.sum(0, keepdims=True)
        return d_x if s.wide else None, d_h0, d_c0, self._unpack(memory)

    def _unpack(self, memory: _Memory) -> list[Floats]:
        s = self.sizes
        gradients = [
            aligned(self.members, *shape)
            for layer in range(s.layers)
            for shape in ((4 * s.hidden, s.hidden if layer else s.features), (4 * s.hidden, s.hidden), (4 * s.hidden,))
        ]
        by_member = memory.gradient.reshape(self.members, -1, self.shape.packed)

        def unpack(member: int, layer: int) -> None:
            own = (array[member] for array in gradients[3 * layer : 3 * layer + 3])
            packing.unpack(tuple(self.shape), layer, by_member[member], *own)

        self._each_layer(unpack)
        return gradients


class _Memory:
    """One block: packed weights and, when activations are kept, those and the tiles' shares of the weights' gradient."""

    def __init__(self, plan: Plan, block: Floats | None = None) -> None:
        s, count = plan.sizes, len(plan.tiles)
        area = max(tile.rows for tile in plan.tiles) * s.units
        self.parts = (s.layers * s.steps * 4 * area, s.layers * (1 + s.steps) * area, s.layers * (1 + s.steps) * area)
        sizes = [plan.members * plan.shape.packed, plan.members * plan.shape.packed_back]
        sizes += [count * plan.shape.packed, count * sum(self.parts)] if plan.keep else []
        self.block = _lend(sum(sizes)) if block is None else block
        parts = np.split(self.block, np.cumsum(sizes[:-1]))
        self.weights, self.weights_back = (part.reshape(plan.members, -1) for part in parts[:2])
        if plan.keep:
            self.gradient, self.activations = (part.reshape(count, -1) for part in parts[2:])

    def kept(self, k: int) -> tuple[Floats, Floats, Floats]:
        """Gates, cells and hs of tile k."""
        gates, cells, _ = self.parts
        own = self.activations[k]
        return own[:gates], own[gates : gates + cells], own[gates + cells :]


_free: list[Floats] = []  # at most one block


def _lend(size: int) -> Floats:
    """A block that comes back when nobody holds it, which autograd does until backward is through.

    A training step needs hundreds of megabytes; they cost more to get from the system than to fill.
    """
    try:
        block = _free.pop()
    except IndexError:
        block = aligned(0)
    if block.size < size:
        block = aligned(size)
    lent = block[:size]
    weakref.finalize(lent, _take_back, block).atexit = False
    return lent


def _take_back(block: Floats) -> None:
    if not _free:
        _free.append(block)


def _steps_only(scratch: _Scratch, area: int, length: int) -> tuple[Floats, Floats, Floats]:
    return scratch("gates", 4 * area), scratch("cells", length), scratch("hs", length)


class _Scratch(threading.local):
    """A thread's working memory, kept between calls."""

    def __init__(self) -> None:
        self.arrays: dict[str, Floats] = {}

    def __call__(self, name: str, size: int) -> Floats:
        array = self.arrays.get(name)
        if array is None or array.size < size:
            array = self.arrays[name] = aligned(size)
        return array


_scratch = _Scratch()
_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process, since threads do not survive a fork, and size


def in_threads(count: int, piece: Callable[[int, _Scratch], None]) -> None:
    """piece(0) ... piece(count - 1) on as many threads as kernels may use, the caller's among them."""
    helpers = min(kernel_threads(), count) - 1
    numbers = itertools.count()  # next() on it is atomic

    def work() -> None:
        while (k := next(numbers)) < count:
            piece(k, _scratch)

    if helpers < 1:
        return work()
    key = (os.getpid(), helpers)
    if key not in _pools:
        _pools[key] = ThreadPoolExecutor(helpers, thread_name_prefix="evband")
    futures = [_pools[key].submit(work) for _ in range(helpers)]
    work()
    for future in futures:
        future.result()
