# mypy: disable-error-code="no-untyped-def,call-arg"
"""One member on one tile of windows, forward and backward: the loops around the vector blocks.

A tile runs through all steps of a layer, then of the next. Nothing here knows of other members or tiles, so a member's
numbers depend neither on who trains beside it nor on the number of threads.
"""

from __future__ import annotations

from evband.compiled import unchecked as compiled
from evband.network.kernels._cpu_blocks import (
    add_product,
    cell,
    cell_gradient,
    cell_kept,
    cell_one,
    fetch,
    product,
    product_narrow,
)
from evband.network.kernels._cpu_layout import (
    Sizes,
    Tile,
    clear_resets,
    load_output_gradient,
    load_state,
    load_windows,
    mask_steps,
    move,
    resets_at,
    save_input_gradient,
    save_outputs,
    save_state,
)
from evband.network.kernels.pack import backward_weights_at, forward_weights_at, inputs_of
from evband.network.kernels.vector import LANES, ROWS

GATHERED = 4  # steps whose gates' gradients are gathered before they meet the weights' gradient

# fmt: off


@compiled
def forward_tile(sizes, place, chunk, gate_step, x, w, h0, c0, x_mask, mask, carry, gates, cells, hs, scratch, y, h_end, c_end):
    """All layers over all steps, ``chunk`` steps at a time.

    gates [layers, chunk, rows, gates], cells and hs [layers, 1 + chunk, rows, units] are what backward needs when
    chunk covers every step; with gate_step = 0 gates are written to one step's place and forgotten.
    """
    s, tile = Sizes(*sizes), Tile(*place)
    area = tile.rows * s.units
    length = (1 + chunk) * area
    masked_in = chunk * tile.rows * s.inputs
    masked_past = masked_in + chunk * area
    cleared = masked_past + area
    for begin in range(0, s.steps, chunk):
        steps = min(chunk, s.steps - begin)
        load_windows(s, tile, begin, steps, x, x_mask, scratch, 0)
        for layer in range(s.layers):
            own, inputs = layer * length, inputs_of(s, layer)
            if begin == 0:
                load_state(s, tile, h0[layer], hs, own)
                load_state(s, tile, c0[layer], cells, own)
            else:
                move(hs, own + chunk * area, hs, own, area)
                move(cells, own + chunk * area, cells, own, area)
            source, source0 = (scratch, 0) if layer == 0 else (hs, own - length + area)
            if layer > 0 and s.masked:
                mask_steps(s, tile, steps, hs, source0, mask[s.layers + layer - 1], scratch, masked_in)
                source, source0 = scratch, masked_in
            for t in range(steps):
                past, past0, c_past, c_past0 = hs, own + t * area, cells, own + t * area
                reset = s.resets > 0 and resets_at(tile, carry[begin + t])
                if s.masked:
                    mask_steps(s, tile, 1, hs, past0, mask[layer], scratch, masked_past)
                elif reset:
                    move(hs, past0, scratch, masked_past, area)
                if reset:
                    move(cells, c_past0, scratch, cleared, area)
                    clear_resets(s, tile, carry[begin + t], scratch, masked_past)
                    clear_resets(s, tile, carry[begin + t], scratch, cleared)
                    c_past, c_past0 = scratch, cleared
                if s.masked or reset:
                    past, past0 = scratch, masked_past
                _step(s, tile.rows, w, forward_weights_at(s, layer), source, source0 + t * tile.rows * inputs, inputs,
                      past, past0, c_past, c_past0, gates, (layer * chunk + t) * gate_step,
                      cells, hs, own + (t + 1) * area, gate_step > 0)
        save_outputs(s, tile, begin, steps, hs, (s.layers - 1) * length + area, mask, y)
    for layer in range(s.layers):
        last = layer * length + ((s.steps - 1) % chunk + 1) * area
        save_state(s, tile, hs, last, h_end[layer])
        save_state(s, tile, cells, last, c_end[layer])


@compiled
def _step(s, rows, w, w0, x, x0, inputs, past, past0, c_past, c_past0, gates, gates0, cells, hs, own, kept):
    """One layer, one step: vectors of units outside, so that their weights stay in the first-level cache over the rows."""
    panel = (1 + inputs + s.units) * 4 * LANES
    whole = rows // ROWS * ROWS
    for v in range(s.units // LANES):
        for r in range(0, whole, ROWS):
            at = r * s.units + v * LANES
            if kept:
                cell_kept(w, w0 + v * panel, x, x0 + r * inputs, inputs, past, past0 + r * s.units, s.units,
                          gates, gates0 + r * s.gates + v * 4 * LANES, c_past, c_past0 + at, cells, own + at, hs, own + at)
            else:
                cell(w, w0 + v * panel, x, x0 + r * inputs, inputs, past, past0 + r * s.units, s.units,
                     gates, gates0 + r * s.gates + v * 4 * LANES, c_past, c_past0 + at, cells, own + at, hs, own + at)
        for r in range(whole, rows):
            at = r * s.units + v * LANES
            cell_one(w, w0 + v * panel, x, x0 + r * inputs, inputs, past, past0 + r * s.units, s.units,
                     gates, gates0 + r * s.gates + v * 4 * LANES, c_past, c_past0 + at, cells, own + at, hs, own + at)


@compiled
def backward_scratch(s, rows):
    """Where the parts of backward's working memory begin: gates', h's and c's gradients, bias sums, inputs, past h, past c; and its end."""
    d_gates = s.steps * rows * max(s.units, s.wide)  # before it: the gradient from above
    d_h = d_gates + GATHERED * rows * s.gates
    d_c = d_h + rows * s.units
    sums = d_c + rows * s.units
    source = sums + s.gates
    past = source + s.steps * rows * max(s.inputs, s.units)
    c_past = past + s.steps * rows * s.units
    return d_gates, d_h, d_c, sums, source, past, c_past, c_past + rows * s.units


@compiled
def backward_tile(sizes, place, x, w, x_mask, mask, carry, gates, cells, hs, scratch, dy, dh_end, dc_end, dw, dx, dh0, dc0):
    """Gradients of one tile from what ``forward_tile`` kept: dw is the tile's share, packed [1 + inputs + units, gates] a layer.

    Layers from the top, steps from the end. The gradient that reaches a layer's h from above lies at the start of
    scratch and is replaced, step by step, by what the layer hands down.
    """
    s, tile = Sizes(*sizes), Tile(*place)
    area, length = tile.rows * s.units, (1 + s.steps) * tile.rows * s.units
    _, d_h, d_c, _, source_at, past_at, _, _ = backward_scratch(s, tile.rows)
    dw[:] = 0.0
    load_output_gradient(s, tile, dy, mask, scratch, 0)
    for layer in range(s.layers - 1, -1, -1):
        own = layer * length
        load_state(s, tile, dh_end[layer], scratch, d_h)
        load_state(s, tile, dc_end[layer], scratch, d_c)
        source, source0, past, past0 = hs, own - length + area, hs, own
        if layer == 0:
            load_windows(s, tile, 0, s.steps, x, x_mask, scratch, source_at)
            source, source0 = scratch, source_at
        elif s.masked:
            mask_steps(s, tile, s.steps, hs, source0, mask[s.layers + layer - 1], scratch, source_at)
            source, source0 = scratch, source_at
        if s.masked:
            mask_steps(s, tile, s.steps, hs, own, mask[layer], scratch, past_at)
        elif s.resets:
            move(hs, own, scratch, past_at, s.steps * area)
        if s.resets:
            for t in range(s.steps):
                clear_resets(s, tile, carry[t], scratch, past_at + t * area)
        if s.masked or s.resets:
            past, past0 = scratch, past_at
        for end in range(s.steps, 0, -GATHERED):
            begin = max(0, end - GATHERED)
            _steps_back(s, tile, layer, begin, end, w, mask, carry, gates, cells, own, scratch,
                        dw[forward_weights_at(s, layer) :], source, source0, past, past0)
        save_state(s, tile, scratch, d_h, dh0[layer])
        save_state(s, tile, scratch, d_c, dc0[layer])
    if s.wide > 0:
        save_input_gradient(s, tile, scratch, x_mask, dx)


@compiled
def _steps_back(s, tile, layer, begin, end, w, mask, carry, gates, cells, own, scratch, dw, source, source0, past, past0):
    """One layer from step ``end`` back to ``begin``; dw [1 + inputs + units, gates] takes the products of all of them at once."""
    rows, area, inputs = tile.rows, tile.rows * s.units, inputs_of(s, layer)
    d_gates, d_h, d_c, sums, _, _, cleared, _ = backward_scratch(s, rows)
    across = s.wide if layer == 0 else s.units
    w0 = backward_weights_at(s, layer)
    scratch[sums : sums + s.gates] = 0.0
    for t in range(end - 1, begin - 1, -1):
        here, gates0 = d_gates + (t - begin) * rows * s.gates, (layer * s.steps + t) * rows * s.gates
        above = t * (rows * max(s.wide, s.units) if layer == 0 else area)
        c_past, c_past0 = cells, own + t * area
        reset = s.resets > 0 and resets_at(tile, carry[t])
        if reset:
            move(cells, c_past0, scratch, cleared, area)
            clear_resets(s, tile, carry[t], scratch, cleared)
            c_past, c_past0 = scratch, cleared
        _step_gradient(s, rows, gates, gates0, c_past, c_past0, cells, own + (t + 1) * area, scratch, t * area, d_h, d_c, sums, here)
        _multiply(scratch, d_h, s.units, rows, scratch, here, s.gates, w, w0,
                  gates, gates0 - rows * s.gates, rows * s.gates, cells, own + (t - 1) * area, area)
        if across > 0:
            _multiply(scratch, above, across, rows, scratch, here, s.gates, w, w0 + s.gates * s.units,
                      past, past0 + (t - GATHERED) * area, area, source, source0 + (t - GATHERED) * rows * inputs, rows * inputs)
        if s.masked:
            mask_steps(s, tile, 1, scratch, d_h, mask[layer], scratch, d_h)
            if layer > 0:
                mask_steps(s, tile, 1, scratch, above, mask[s.layers + layer - 1], scratch, above)
        if reset:
            clear_resets(s, tile, carry[t], scratch, d_h)
            clear_resets(s, tile, carry[t], scratch, d_c)
    for k in range(s.gates):
        dw[k] += scratch[sums + k]
    terms = (end - begin) * rows
    _add_outer(s, dw, s.gates, inputs, source, source0 + begin * rows * inputs, scratch, d_gates, terms)
    _add_outer(s, dw, (1 + inputs) * s.gates, s.units, past, past0 + begin * area, scratch, d_gates, terms)


@compiled
def _step_gradient(s, rows, gates, gates0, c_past, c_past0, cells, own, scratch, above, d_h, d_c, sums, d_gates):
    for v in range(s.units // LANES):
        for r in range(rows):
            at, gate = r * s.units + v * LANES, r * s.gates + v * 4 * LANES
            cell_gradient(gates, gates0 + gate, c_past, c_past0 + at, cells, own + at, scratch, above + at,
                          scratch, d_h + at, scratch, d_c + at, scratch, sums + v * 4 * LANES, scratch, d_gates + gate)


@compiled
def _multiply(out, out0, across, rows, a, a0, depth, w, w0, ahead, ahead0, size, also, also0, also_size):
    """out[rows, across] = a[rows, depth] w, with w [depth, across] in panels; meanwhile fetch what is read next.

    What forward kept has left the caches by now, and a processor does not foresee a walk backwards in time.
    """
    panel = 2 * LANES
    blocks = -(-across // panel) * (rows // (2 * ROWS))
    share, also_share = -(-size // blocks), -(-also_size // blocks)
    for left in range(0, across, panel):
        for r in range(0, rows, 2 * ROWS):
            to, at = out0 + r * across + left, a0 + r * depth
            if left + panel <= across:
                product(out, to, across, a, at, w, w0 + left * depth, depth)
            else:
                product_narrow(out, to, across, a, at, w, w0 + left * depth, depth)
            fetch(ahead, ahead0, share)
            fetch(also, also0, also_share)
            ahead0 += share
            also0 += also_share


@compiled
def _add_outer(s, dw, dw0, columns, a, a0, d, d0, terms):
    """dw[columns, gates] += a[terms, columns]' d[terms, gates]."""
    for v in range(0, s.gates, 4 * LANES):
        for k in range(0, columns, ROWS):
            add_product(dw, dw0 + k * s.gates + v, s.gates, a, a0 + k, columns, d, d0 + v, terms)
