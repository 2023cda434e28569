# mypy: disable-error-code="no-untyped-def"
"""How the CPU kernel lays out memory, and the moves between PyTorch's layout and its own.

A tile is one member's run of up to some dozens of windows. Its arrays are flat float32, [steps, rows, columns], where

- rows are the tile's windows, padded with empty ones to whole blocks;
- hidden units are padded to whole vectors with zero weights, so that their h and gradients stay zero;
- a row of gates is ordered [units / LANES, 4, LANES]: the four gates of a vector of units sit side by side (``pack``).
"""

from __future__ import annotations

from typing import NamedTuple

from evband.compiled import unchecked as compiled


class Sizes(NamedTuple):
    """What shapes memory; the last four are padded. Crosses into compiled code as a plain tuple, which is told apart far faster."""

    steps: int
    batch: int
    features: int
    hidden: int
    layers: int
    masked: int
    resets: int  # whether the state is reset inside windows
    inputs: int  # features, to whole blocks of rows
    wide: int  # features, to whole vectors; 0 when nobody asks for x's gradient
    units: int  # hidden, to whole vectors
    gates: int  # 4 units


class Tile(NamedTuple):
    """Windows first ... first + windows - 1 of one member, padded to ``rows``."""

    member: int
    first: int
    windows: int
    rows: int


@compiled
def load_windows(s, tile, begin, steps, x, mask, out, out0):
    """out[steps, rows, inputs] = the tile's windows of x [steps, batch, features], times their mask, zero in padding."""
    out[out0 : out0 + steps * tile.rows * s.inputs] = 0.0
    for t in range(steps):
        for b in range(tile.windows):
            at = out0 + (t * tile.rows + b) * s.inputs
            for k in range(s.features):
                out[at + k] = x[begin + t, tile.first + b, k] * (mask[tile.first + b, k] if s.masked else 1)


@compiled
def save_input_gradient(s, tile, source, mask, dx):
    """dx [steps, batch, features] from source [steps, rows, wide], whose steps lie ``max(wide, units)`` columns apart."""
    for t in range(s.steps):
        for b in range(tile.windows):
            at = t * tile.rows * max(s.wide, s.units) + b * s.wide
            for k in range(s.features):
                dx[t, tile.first + b, k] = source[at + k] * (mask[tile.first + b, k] if s.masked else 1)


@compiled
def save_outputs(s, tile, begin, steps, hs, hs0, mask, y):
    """y [steps, batch, hidden] = the last layer's h, through the output mask."""
    for t in range(steps):
        for b in range(tile.windows):
            at = hs0 + (t * tile.rows + b) * s.units
            out, h = y[begin + t, tile.first + b], hs[at : at + s.hidden]
            _copy(h, out, s.masked, mask[2 * s.layers - 1, tile.first + b])


@compiled
def load_output_gradient(s, tile, dy, mask, out, out0):
    """out[steps, rows, units] = the tile's part of dy [steps, batch, hidden], through the output mask, zero in padding."""
    out[out0 : out0 + s.steps * tile.rows * s.units] = 0.0
    for t in range(s.steps):
        for b in range(tile.windows):
            at = out0 + (t * tile.rows + b) * s.units
            d = out[at : at + s.hidden]
            _copy(dy[t, tile.first + b], d, s.masked, mask[2 * s.layers - 1, tile.first + b])


@compiled
def _copy(source, out, masked, mask):
    if masked:
        for k in range(out.size):
            out[k] = source[k] * mask[k]
    else:
        for k in range(out.size):
            out[k] = source[k]


@compiled
def move(source, source0, out, out0, size):
    """As `out[out0:][:size] = source[source0:][:size]`, whose check of shapes takes 60 ms to load."""
    for k in range(size):
        out[out0 + k] = source[source0 + k]


@compiled
def mask_steps(s, tile, steps, source, source0, mask, out, out0):
    """out[steps, rows, units] = source times mask [batch, units], held over the steps."""
    for t in range(steps):
        for b in range(tile.rows):
            at = (t * tile.rows + b) * s.units
            keep = mask[tile.first + min(b, tile.windows - 1)]
            _copy(source[source0 + at : source0 + at + s.units], out[out0 + at : out0 + at + s.units], True, keep)


@compiled
def resets_at(tile, carry):
    """Whether the state of any of the tile's windows is reset before this step, of carry [batch]."""
    lowest = carry[tile.first]
    for b in range(1, tile.windows):
        lowest = min(lowest, carry[tile.first + b])
    return lowest == 0.0


@compiled
def clear_resets(s, tile, carry, out, out0):
    """out[rows, units] = 0 where a window's state is reset before this step, of carry [batch]."""
    for b in range(tile.windows):
        if carry[tile.first + b] == 0.0:
            at = out0 + b * s.units
            out[at : at + s.units] = 0.0


@compiled
def load_state(s, tile, state, out, out0):
    """out[rows, units] = the tile's part of one layer's state [members, batch, hidden], zero in padding."""
    out[out0 : out0 + tile.rows * s.units] = 0.0
    for b in range(tile.windows):
        for k in range(s.hidden):
            out[out0 + b * s.units + k] = state[tile.member, tile.first + b, k]


@compiled
def save_state(s, tile, source, source0, state):
    for b in range(tile.windows):
        for k in range(s.hidden):
            state[tile.member, tile.first + b, k] = source[source0 + b * s.units + k]
