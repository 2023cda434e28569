# mypy: disable-error-code="no-untyped-def"
"""Weights in the order in which kernels read them: one layout for training and for the tick engine.

A layer of one member lies as [units / LANES, 1 + inputs + units, 4, LANES]: of each vector of hidden units a line for
the bias, for each input and for each past hidden unit, with the four gates side by side. Hidden units are padded to
whole vectors with zero weights, so that their state stays zero; gates i, f and o are halved, since
sigmoid(z) = tanh(z / 2) / 2 + 1 / 2.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evband.compiled import unchecked as compiled
from evband.network.kernels.vector import LANES, ROWS


class Shape(NamedTuple):
    """Of one member. Crosses into compiled code as a plain tuple, which is told apart far faster."""

    features: int
    hidden: int
    layers: int
    inputs: int  # features, to whole blocks of rows
    wide: int  # features, to whole vectors; 0 when nobody asks for x's gradient
    units: int  # hidden, to whole vectors
    gates: int  # 4 units

    @classmethod
    def of(cls, features: int, hidden: int, layers: int, x_gradient: bool = False) -> Self:
        units = up(hidden, LANES)
        wide = up(features, LANES) if x_gradient else 0
        return cls(features, hidden, layers, up(features, ROWS), wide, units, 4 * units)

    @property
    def packed(self) -> int:
        """Numbers of a member's packed weights."""
        return int(forward_weights_at.py_func(self, self.layers))

    @property
    def packed_back(self) -> int:
        """Numbers of a member's packed transposed weights."""
        return int(backward_weights_at.py_func(self, self.layers))


def up(count: int, whole: int) -> int:
    """The next multiple of ``whole``."""
    return -(-count // whole) * whole


def aligned(*shape: int) -> NDArray[np.float32]:
    """Unset memory that begins at a cache line, so that no vector straddles two."""
    size = math.prod(shape)
    memory = np.empty(size + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4
    return memory[start : start + size].reshape(shape)


@compiled
def inputs_of(s, layer):
    return s.inputs if layer == 0 else s.units


@compiled
def forward_weights_at(s, layer):
    """Where a layer begins in a member's packed weights, and in its packed gradient: [1 + inputs + units, gates]."""
    return 0 if layer == 0 else s.gates * ((1 + s.inputs + s.units) + (layer - 1) * (1 + 2 * s.units))


@compiled
def backward_weights_at(s, layer):
    """Where a layer begins in a member's packed transposed weights: [gates, units] for h, then [gates, wide or units] for x."""
    return 0 if layer == 0 else s.gates * ((s.wide + s.units) + (layer - 1) * 2 * s.units)


@compiled
def pack(sizes, layer, w_ih, w_hh, bias, forward, backward):
    """Reorder one member's layer (weights come as [4 hidden, inputs]).

    forward: [units / LANES, 1 + inputs + units, 4, LANES], bias first, halved where a sigmoid follows, since
    sigmoid(z) = tanh(z / 2) / 2 + 1 / 2; backward: panels of two vectors' columns (``_pack_line``).
    """
    s = Shape(*sizes)
    inputs = inputs_of(s, layer)
    depth = 1 + inputs + s.units
    start, back = forward_weights_at(s, layer), backward_weights_at(s, layer)
    forward[start : forward_weights_at(s, layer + 1)] = 0.0
    backward[back : backward_weights_at(s, layer + 1)] = 0.0
    for unit in range(s.hidden):
        for gate in range(4):
            row = gate * s.hidden + unit
            scale = np.float32(1.0 if gate == 2 else 0.5)  # gates i, f, g, o
            at = start + (unit // LANES * depth * 4 + gate) * LANES + unit % LANES
            forward[at] = scale * bias[row]
            for k in range(w_ih.shape[1]):
                forward[at + (1 + k) * 4 * LANES] = scale * w_ih[row, k]
            for k in range(s.hidden):
                forward[at + (1 + inputs + k) * 4 * LANES] = scale * w_hh[row, k]
            line = (unit // LANES * 4 + gate) * LANES + unit % LANES
            _pack_line(s, w_hh[row], s.units, line, backward, back)
            if layer > 0 or s.wide > 0:
                _pack_line(s, w_ih[row], s.units if layer else s.wide, line, backward, back + s.gates * s.units)


@compiled
def _pack_line(s, w, across, line, out, at):
    """Line ``line`` of a matrix [gates, across] kept as panels of two vectors' columns, the last of one where that is left."""
    for k in range(w.size):
        left = k // (2 * LANES) * (2 * LANES)
        out[at + left * s.gates + line * min(2 * LANES, across - left) + k - left] = w[k]


@compiled
def unpack(sizes, layer, dw, dw_ih, dw_hh, dbias):
    """Sum one member's tiles, dw [tiles, packed], in their order and bring one layer back to PyTorch's layout."""
    s = Shape(*sizes)
    start, end = forward_weights_at(s, layer), forward_weights_at(s, layer + 1)
    total = dw[0, start:end]
    for tile in range(1, dw.shape[0]):
        share = dw[tile, start:end]
        for k in range(total.size):
            total[k] += share[k]
    past = 1 + inputs_of(s, layer)
    for gate in range(4):
        for unit in range(s.hidden):
            row = gate * s.hidden + unit
            at = (unit // LANES * 4 + gate) * LANES + unit % LANES
            dbias[row] = total[at]
            for k in range(dw_ih.shape[1]):
                dw_ih[row, k] = total[at + (1 + k) * s.gates]
            for k in range(s.hidden):
                dw_hh[row, k] = total[at + (past + k) * s.gates]
