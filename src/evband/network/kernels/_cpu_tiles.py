"""One member on one tile of windows, forward and backward, in Numba: the loops around the vector tiles.

A tile's windows run through all steps of a layer, then of the next. Nothing here knows of other members or tiles, so
a member's numbers do not depend on who trains beside it, nor on the number of threads.

Arrays are flat float32. Hidden units are padded with zero weights to whole vectors: their h and gradients stay zero.
A row of gates is ordered [hidden / LANES, 4, LANES], so that a unit's four gates sit side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np

from evband.network.kernels._cpu_vector import (
    LANES,
    ROWS,
    add_product,
    cell,
    cell_gradient,
    cell_one,
    product,
    product_narrow,
)

STEPS_A_PRODUCT = 4  # steps whose gradients of gates are gathered before they meet the weights' gradient


class Sizes(NamedTuple):
    """Everything that shapes memory; ``inputs`` to ``gates`` are padded."""

    steps: int
    batch: int
    features: int
    hidden: int
    layers: int
    members: int
    inputs: int  # features, to whole tiles of rows
    wide: int  # features, to whole vectors; 0 when nobody asks for x's gradient
    units: int  # hidden, to whole vectors
    gates: int  # 4 units
    masked: bool


def _compiled(function: Callable[..., None]) -> Any:
    return numba.njit(nogil=True, cache=True, error_model="numpy", boundscheck=False)(function)


@_compiled
def _inputs(s, layer):  # type: ignore[no-untyped-def]
    return s.inputs if layer == 0 else s.units


@_compiled
def forward_weights_at(s, layer):  # type: ignore[no-untyped-def]
    """Where a layer begins in a member's packed weights, and in its packed gradient: [1 + inputs + units, gates]."""
    if layer == 0:
        return 0
    return s.gates * ((1 + s.inputs + s.units) + (layer - 1) * (1 + 2 * s.units))


@_compiled
def backward_weights_at(s, layer):  # type: ignore[no-untyped-def]
    """Where a layer begins in a member's packed transposed weights: [gates, units] for h, then [gates, wide or units] for x."""
    if layer == 0:
        return 0
    return s.gates * ((s.wide + s.units) + (layer - 1) * 2 * s.units)


@_compiled
def pack(s, layer, w_ih, w_hh, bias, forward, backward):  # type: ignore[no-untyped-def]
    """Reorder one member's layer: forward [unit vector, 1 + inputs + units, 4, LANES], halved where a sigmoid follows; backward in panels."""
    columns = s.features if layer == 0 else s.hidden
    inputs = _inputs(s, layer)
    depth = 1 + inputs + s.units
    start, back = forward_weights_at(s, layer), backward_weights_at(s, layer)
    across = s.wide if layer == 0 else s.units
    for unit in range(s.hidden):
        for gate in range(4):
            row = gate * s.hidden + unit
            scale = np.float32(1.0 if gate == 2 else 0.5)
            at = start + (unit // LANES * depth * 4 + gate) * LANES + unit % LANES
            forward[at] = scale * bias[row]
            for k in range(columns):
                forward[at + (1 + k) * 4 * LANES] = scale * w_ih[row * columns + k]
            for k in range(s.hidden):
                forward[at + (1 + inputs + k) * 4 * LANES] = scale * w_hh[row * s.hidden + k]
            line = (unit // LANES * 4 + gate) * LANES + unit % LANES
            _pack_panels(backward, back, line, s.gates, s.units, w_hh, row * s.hidden, s.hidden)
            if across:
                _pack_panels(backward, back + s.gates * s.units, line, s.gates, across, w_ih, row * columns, columns)


@_compiled
def _pack_panels(out, at, line, lines, across, w, w0, columns):  # type: ignore[no-untyped-def]
    """Line ``line`` of a [lines, across] matrix kept as panels of two vectors' columns, the last of one where that is left."""
    panel = 2 * LANES
    for k in range(columns):
        left = k // panel * panel
        width = min(panel, across - left)
        out[at + left * lines + line * width + k - left] = w[w0 + k]


@_compiled
def _load_windows(s, first, count, rows, begin, steps, x, masked, mask, out):  # type: ignore[no-untyped-def]
    """out[steps, rows, inputs] = the tile's windows of x, times their mask, zero in padding."""
    out[: steps * rows * s.inputs] = 0.0
    for t in range(steps):
        for b in range(count):
            from_x, from_mask = ((begin + t) * s.batch + first + b) * s.features, (first + b) * s.features
            to = (t * rows + b) * s.inputs
            for k in range(s.features):
                out[to + k] = x[from_x + k] * mask[from_mask + k] if masked else x[from_x + k]


@_compiled
def _mask_steps(s, first, count, rows, steps, source, source0, mask, mask0, out, out0):  # type: ignore[no-untyped-def]
    """out[steps, rows, units] = source times mask [batch, units] number mask0, held over the steps."""
    for t in range(steps):
        for b in range(rows):
            at = (t * rows + b) * s.units
            m = (mask0 * s.batch + first + min(b, count - 1)) * s.units
            for k in range(s.units):
                out[out0 + at + k] = source[source0 + at + k] * mask[m + k]


@_compiled
def _load_state(s, layer, member, first, count, rows, state, out, out0):  # type: ignore[no-untyped-def]
    """out[rows, units] = the tile's part of state [layers, members, batch, hidden]."""
    out[out0 : out0 + rows * s.units] = 0.0
    for b in range(count):
        at = ((layer * s.members + member) * s.batch + first + b) * s.hidden
        for k in range(s.hidden):
            out[out0 + b * s.units + k] = state[at + k]


@_compiled
def _save_state(s, layer, member, first, count, source, source0, state):  # type: ignore[no-untyped-def]
    for b in range(count):
        at = ((layer * s.members + member) * s.batch + first + b) * s.hidden
        for k in range(s.hidden):
            state[at + k] = source[source0 + b * s.units + k]


@_compiled
def forward_tile(
    s,
    member,
    first,
    count,
    rows,
    chunk,
    gate_step,
    x,
    w,
    h0,
    c0,
    x_mask,
    mask,
    gates,
    cells,
    hs,
    scratch,
    y,
    h_end,
    c_end,
):  # type: ignore[no-untyped-def]
    """All layers over all steps, ``chunk`` steps at a time.

    gates [layers, chunk, rows, gates], cells and hs [layers, 1 + chunk, rows, units] keep what backward needs when
    chunk covers every step; with gate_step = 0 gates are written to one step's place and forgotten.
    """
    area = rows * s.units
    length = (1 + chunk) * area
    masked_in, masked_past = chunk * rows * s.inputs, chunk * rows * s.inputs + chunk * area
    for begin in range(0, s.steps, chunk):
        steps = min(chunk, s.steps - begin)
        _load_windows(s, first, count, rows, begin, steps, x, s.masked, x_mask, scratch)
        for layer in range(s.layers):
            own = layer * length
            if begin == 0:
                _load_state(s, layer, member, first, count, rows, h0, hs, own)
                _load_state(s, layer, member, first, count, rows, c0, cells, own)
            else:
                hs[own : own + area] = hs[own + chunk * area : own + length]
                cells[own : own + area] = cells[own + chunk * area : own + length]
            source, source0 = (scratch, 0) if layer == 0 else (hs, own - length + area)
            if layer > 0 and s.masked:
                _mask_steps(s, first, count, rows, steps, hs, source0, mask, s.layers + layer - 1, scratch, masked_in)
                source, source0 = scratch, masked_in
            inputs = _inputs(s, layer)
            for t in range(steps):
                past, past0 = hs, own + t * area
                if s.masked:
                    _mask_steps(s, first, count, rows, 1, hs, past0, mask, layer, scratch, masked_past)
                    past, past0 = scratch, masked_past
                _step(
                    s,
                    rows,
                    w,
                    forward_weights_at(s, layer),
                    source,
                    source0 + t * rows * inputs,
                    inputs,
                    past,
                    past0,
                    gates,
                    (layer * chunk + t) * gate_step,
                    cells,
                    hs,
                    own + t * area,
                )
        _save_outputs(s, first, count, rows, begin, steps, hs, (s.layers - 1) * length + area, mask, y)
    for layer in range(s.layers):
        last = layer * length + ((s.steps - 1) % chunk + 1) * area
        _save_state(s, layer, member, first, count, hs, last, h_end)
        _save_state(s, layer, member, first, count, cells, last, c_end)


@_compiled
def _step(s, rows, w, w0, x, x0, inputs, past, past0, gates, gates0, cells, hs, own):  # type: ignore[no-untyped-def]
    """One layer, one step: vectors of units outside, so that their weights stay in the first-level cache over the windows."""
    area = rows * s.units
    panel = (1 + inputs + s.units) * 4 * LANES
    whole = rows // ROWS * ROWS
    for v in range(s.units // LANES):
        for r in range(0, whole, ROWS):
            at = own + r * s.units + v * LANES
            cell(
                w,
                w0 + v * panel,
                x,
                x0 + r * inputs,
                inputs,
                past,
                past0 + r * s.units,
                s.units,
                gates,
                gates0 + r * s.gates + v * 4 * LANES,
                cells,
                at,
                cells,
                at + area,
                hs,
                at + area,
            )
        for r in range(whole, rows):
            at = own + r * s.units + v * LANES
            cell_one(
                w,
                w0 + v * panel,
                x,
                x0 + r * inputs,
                inputs,
                past,
                past0 + r * s.units,
                s.units,
                gates,
                gates0 + r * s.gates + v * 4 * LANES,
                cells,
                at,
                cells,
                at + area,
                hs,
                at + area,
            )


@_compiled
def _save_outputs(s, first, count, rows, begin, steps, hs, hs0, mask, y):  # type: ignore[no-untyped-def]
    for t in range(steps):
        for b in range(count):
            to, at = ((begin + t) * s.batch + first + b) * s.hidden, hs0 + (t * rows + b) * s.units
            m = ((2 * s.layers - 1) * s.batch + first + b) * s.units
            for k in range(s.hidden):
                y[to + k] = hs[at + k] * mask[m + k] if s.masked else hs[at + k]


@_compiled
def backward_tile(
    s, member, first, count, rows, x, w, x_mask, mask, gates, cells, hs, scratch, dy, dh_end, dc_end, dw, dx, dh0, dc0
):  # type: ignore[no-untyped-def]
    """Gradients of one tile from what ``forward_tile`` kept: dw is this tile's share, packed as the weights are.

    Layers from the top, steps from the end. The gradient that reaches a layer's h from above lies in ``above``
    [steps, rows, units] and is replaced, step by step, by what the layer hands down.
    """
    area, length = rows * s.units, (1 + s.steps) * rows * s.units
    d_above = 0
    d_gates = s.steps * rows * max(s.units, s.wide)
    d_h = d_gates + STEPS_A_PRODUCT * rows * s.gates
    d_c, sums = d_h + area, d_h + 2 * area
    source_at = sums + s.gates
    past_at = source_at + s.steps * rows * max(s.inputs, s.units)
    dw[:] = 0.0
    _load_output_gradient(s, first, count, rows, dy, mask, scratch, d_above)
    for layer in range(s.layers - 1, -1, -1):
        own, inputs = layer * length, _inputs(s, layer)
        _load_state(s, layer, member, first, count, rows, dh_end, scratch, d_h)
        _load_state(s, layer, member, first, count, rows, dc_end, scratch, d_c)
        source, source0 = hs, own - length + area
        past, past0 = hs, own
        if layer == 0:
            source, source0 = scratch, source_at
            _load_windows(s, first, count, rows, 0, s.steps, x, s.masked, x_mask, scratch[source_at:])
        elif s.masked:
            _mask_steps(s, first, count, rows, s.steps, hs, source0, mask, s.layers + layer - 1, scratch, source_at)
            source, source0 = scratch, source_at
        if s.masked:
            _mask_steps(s, first, count, rows, s.steps, hs, own, mask, layer, scratch, past_at)
            past, past0 = scratch, past_at
        across = s.wide if layer == 0 else s.units
        w0, dw0 = backward_weights_at(s, layer), forward_weights_at(s, layer)
        for end in range(s.steps, 0, -STEPS_A_PRODUCT):
            begin = max(0, end - STEPS_A_PRODUCT)
            scratch[sums : sums + s.gates] = 0.0
            for t in range(end - 1, begin - 1, -1):
                here = d_gates + (t - begin) * rows * s.gates
                _step_gradient(
                    s,
                    rows,
                    gates,
                    (layer * s.steps + t) * rows * s.gates,
                    cells,
                    own + t * area,
                    scratch,
                    d_above + t * area,
                    d_h,
                    d_c,
                    sums,
                    here,
                )
                _multiply(scratch, d_h, s.units, rows, scratch, here, s.gates, w, w0)
                if across:
                    to = d_above + t * (rows * s.wide if layer == 0 and s.wide > s.units else area)
                    _multiply(scratch, to, across, rows, scratch, here, s.gates, w, w0 + s.gates * s.units)
                if s.masked:
                    _mask_steps(s, first, count, rows, 1, scratch, d_h, mask, layer, scratch, d_h)
                    if layer > 0:
                        to = d_above + t * area
                        _mask_steps(s, first, count, rows, 1, scratch, to, mask, s.layers + layer - 1, scratch, to)
            for k in range(s.gates):
                dw[dw0 + k] += scratch[sums + k]
            terms = (end - begin) * rows
            _add_outer(s, dw, dw0 + s.gates, inputs, source, source0 + begin * rows * inputs, scratch, d_gates, terms)
            _add_outer(
                s, dw, dw0 + (1 + inputs) * s.gates, s.units, past, past0 + begin * area, scratch, d_gates, terms
            )
        _save_state(s, layer, member, first, count, scratch, d_h, dh0)
        _save_state(s, layer, member, first, count, scratch, d_c, dc0)
    if s.wide:
        _save_input_gradient(s, first, count, rows, scratch, d_above, x_mask, dx)


@_compiled
def _load_output_gradient(s, first, count, rows, dy, mask, out, out0):  # type: ignore[no-untyped-def]
    """out[steps, rows, units] = the tile's part of dy [steps, batch, hidden], through the output mask, zero in padding."""
    out[out0 : out0 + s.steps * rows * s.units] = 0.0
    for t in range(s.steps):
        for b in range(count):
            to, at = out0 + (t * rows + b) * s.units, (t * s.batch + first + b) * s.hidden
            m = ((2 * s.layers - 1) * s.batch + first + b) * s.units
            for k in range(s.hidden):
                out[to + k] = dy[at + k] * mask[m + k] if s.masked else dy[at + k]


@_compiled
def _step_gradient(s, rows, gates, gates0, cells, past, scratch, d_above, d_h, d_c, sums, d_gates):  # type: ignore[no-untyped-def]
    area = rows * s.units
    for v in range(s.units // LANES):
        for r in range(rows):
            at, gate = r * s.units + v * LANES, r * s.gates + v * 4 * LANES
            cell_gradient(
                gates,
                gates0 + gate,
                cells,
                past + at,
                cells,
                past + area + at,
                scratch,
                d_above + at,
                scratch,
                d_h + at,
                scratch,
                d_c + at,
                scratch,
                sums + v * 4 * LANES,
                scratch,
                d_gates + gate,
            )


@_compiled
def _multiply(out, out0, across, rows, a, a0, depth, w, w0):  # type: ignore[no-untyped-def]
    """out[rows, across] = a[rows, depth] w, with w [depth, across] in panels."""
    panel = 2 * LANES
    for left in range(0, across, panel):
        for r in range(0, rows, 2 * ROWS):
            to, at = out0 + r * across + left, a0 + r * depth
            if left + panel <= across:
                product(out, to, across, a, at, w, w0 + left * depth, depth)
            else:
                product_narrow(out, to, across, a, at, w, w0 + left * depth, depth)


@_compiled
def _add_outer(s, dw, dw0, columns, a, a0, d, d0, terms):  # type: ignore[no-untyped-def]
    """dw[columns, gates] += a[terms, columns]' d[terms, gates]."""
    for v in range(0, s.gates, 4 * LANES):
        for k in range(0, columns, ROWS):
            add_product(dw, dw0 + k * s.gates + v, s.gates, a, a0 + k, columns, d, d0 + v, terms)


@_compiled
def _save_input_gradient(s, first, count, rows, source, source0, mask, dx):  # type: ignore[no-untyped-def]
    step = rows * max(s.wide, s.units)
    for t in range(s.steps):
        for b in range(count):
            to, m = (t * s.batch + first + b) * s.features, (first + b) * s.features
            for k in range(s.features):
                value = source[source0 + t * step + b * s.wide + k]
                dx[to + k] = value * mask[m + k] if s.masked else value


@_compiled
def unpack(s, layer, tiles, dw, dw_ih, dw_hh, dbias):  # type: ignore[no-untyped-def]
    """Sum one member's tiles [tiles, packed] in their order and bring one layer back to PyTorch's layout."""
    start, size = forward_weights_at(s, layer), forward_weights_at(s, s.layers)
    columns = s.features if layer == 0 else s.hidden
    past = 1 + _inputs(s, layer)
    for tile in range(1, tiles):
        for k in range(start, forward_weights_at(s, layer + 1)):
            dw[k] += dw[tile * size + k]
    for gate in range(4):
        for unit in range(s.hidden):
            row = gate * s.hidden + unit
            at = start + (unit // LANES * 4 + gate) * LANES + unit % LANES
            dbias[row] = dw[at]
            for k in range(columns):
                dw_ih[row * columns + k] = dw[at + (1 + k) * s.gates]
            for k in range(s.hidden):
                dw_hh[row * s.hidden + k] = dw[at + (past + k) * s.gates]
