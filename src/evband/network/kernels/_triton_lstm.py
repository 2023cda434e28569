"""Triton kernels of one LSTM layer of all members: forward, backward, weight gradients.

A program of ``forward`` and ``backward`` owns one member and a tile of windows and runs the whole time loop itself, with
the recurrent weights (and, where ``FUSED``, the input weights) on chip. A step is a chain of small products that wait for
each other, so what it loads is asked for one step ahead. ``weight_gradient`` is a plain long product over all rows.

Hidden units and inputs are padded to powers of two (``HP``, ``FP``) by masked loads: a padded unit has zero weights and
zero state, so it adds nothing. Sequences have a slot 0 for the initial state: h of step t is at slot t + 1.
"""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _tanh(z):
    return 1.0 - 2.0 / (1.0 + tl.exp(2.0 * z))


@triton.jit
def _gate(w, gate, rows, columns, HIDDEN: tl.constexpr, WIDTH: tl.constexpr):
    """Weights of one gate at [rows = hidden unit, columns = what it is fed], in either orientation."""
    return tl.load(w + (gate * HIDDEN + rows) * WIDTH + columns, mask=(rows < HIDDEN) & (columns < WIDTH), other=0.0)


@triton.jit(do_not_specialize=["time", "batch"])
def forward(
    x,  # FUSED: inputs [members, time, batch, INPUTS]; else x W_ih' + b  [members, time, batch, 4 HIDDEN]
    w_ih,  # [members, 4 HIDDEN, INPUTS]
    w_hh,  # [members, 4 HIDDEN, HIDDEN]
    bias,  # [members, 4 HIDDEN]
    h0,  # [members, batch, HIDDEN]
    c0,
    in_mask,  # [members, batch, INPUTS]
    rec_mask,  # [members, batch, HIDDEN]
    hs,  # out: [members, time + 1, batch, HIDDEN]
    cs,  # out where SAVE: the same shape
    gates,  # out where SAVE: activated gates [members, time, batch, 4 HIDDEN]
    h_last,  # out: [members, batch, HIDDEN]
    c_last,
    x_member,  # members' stride in x; 0 where they share it
    time,
    batch,
    HIDDEN: tl.constexpr,
    INPUTS: tl.constexpr,
    HP: tl.constexpr,
    FP: tl.constexpr,
    TILE: tl.constexpr,
    FUSED: tl.constexpr,
    RESIDENT: tl.constexpr,
    MASKED: tl.constexpr,
    SAVE: tl.constexpr,
    PRECISION: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    b = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    u = tl.arange(0, HP)[None, :]
    ku = tl.arange(0, HP)[:, None]
    own = (b < batch) & (u < HIDDEN)
    at = b * HIDDEN + u
    at4 = b * 4 * HIDDEN + u
    step = batch * HIDDEN
    state = member * step
    w_hh += member * 4 * HIDDEN * HIDDEN
    hs += member * (time + 1) * step
    cs += member * (time + 1) * step
    gates += member * time * step * 4
    x += member * x_member

    h = tl.load(h0 + state + at, mask=own, other=0.0)
    c = tl.load(c0 + state + at, mask=own, other=0.0)
    tl.store(hs + at, h, mask=own)
    if SAVE:
        tl.store(cs + at, c, mask=own)
    if MASKED:
        keep = tl.load(rec_mask + state + at, mask=own, other=0.0)
    if RESIDENT:
        wi = _gate(w_hh, 0, u, ku, HIDDEN, HIDDEN)  # [fed, unit]
        wf = _gate(w_hh, 1, u, ku, HIDDEN, HIDDEN)
        wg = _gate(w_hh, 2, u, ku, HIDDEN, HIDDEN)
        wo = _gate(w_hh, 3, u, ku, HIDDEN, HIDDEN)
    if FUSED:
        f = tl.arange(0, FP)[None, :]
        kf = tl.arange(0, FP)[:, None]
        seen = (b < batch) & (f < INPUTS)
        at_x = b * INPUTS + f
        w_ih += member * 4 * HIDDEN * INPUTS
        vi = _gate(w_ih, 0, u, kf, HIDDEN, INPUTS)
        vf = _gate(w_ih, 1, u, kf, HIDDEN, INPUTS)
        vg = _gate(w_ih, 2, u, kf, HIDDEN, INPUTS)
        vo = _gate(w_ih, 3, u, kf, HIDDEN, INPUTS)
        bias += member * 4 * HIDDEN
        bi = tl.load(bias + u, mask=u < HIDDEN, other=0.0)
        bf = tl.load(bias + HIDDEN + u, mask=u < HIDDEN, other=0.0)
        bg = tl.load(bias + 2 * HIDDEN + u, mask=u < HIDDEN, other=0.0)
        bo = tl.load(bias + 3 * HIDDEN + u, mask=u < HIDDEN, other=0.0)
        if MASKED:
            keep_x = tl.load(in_mask + member * batch * INPUTS + at_x, mask=seen, other=0.0)
        x_next = tl.load(x + at_x, mask=seen, other=0.0)
    else:
        zi_next = tl.load(x + at4, mask=own, other=0.0)
        zf_next = tl.load(x + at4 + HIDDEN, mask=own, other=0.0)
        zg_next = tl.load(x + at4 + 2 * HIDDEN, mask=own, other=0.0)
        zo_next = tl.load(x + at4 + 3 * HIDDEN, mask=own, other=0.0)

    for t in range(time):
        ahead = tl.minimum(time - 1 - t, 1)  # what is loaded after the last step is not used
        if FUSED:
            x_now = x_next
            x += ahead * batch * INPUTS
            x_next = tl.load(x + at_x, mask=seen, other=0.0)
            if MASKED:
                x_now = x_now * keep_x
            zi = tl.dot(x_now, vi, input_precision=PRECISION) + bi
            zf = tl.dot(x_now, vf, input_precision=PRECISION) + bf
            zg = tl.dot(x_now, vg, input_precision=PRECISION) + bg
            zo = tl.dot(x_now, vo, input_precision=PRECISION) + bo
        else:
            zi = zi_next
            zf = zf_next
            zg = zg_next
            zo = zo_next
            x += ahead * 4 * step
            zi_next = tl.load(x + at4, mask=own, other=0.0)
            zf_next = tl.load(x + at4 + HIDDEN, mask=own, other=0.0)
            zg_next = tl.load(x + at4 + 2 * HIDDEN, mask=own, other=0.0)
            zo_next = tl.load(x + at4 + 3 * HIDDEN, mask=own, other=0.0)
        past = h
        if MASKED:
            past = h * keep
        if RESIDENT:
            zi = tl.dot(past, wi, zi, input_precision=PRECISION)
            zf = tl.dot(past, wf, zf, input_precision=PRECISION)
            zg = tl.dot(past, wg, zg, input_precision=PRECISION)
            zo = tl.dot(past, wo, zo, input_precision=PRECISION)
        else:
            zi = tl.dot(past, _gate(w_hh, 0, u, ku, HIDDEN, HIDDEN), zi, input_precision=PRECISION)
            zf = tl.dot(past, _gate(w_hh, 1, u, ku, HIDDEN, HIDDEN), zf, input_precision=PRECISION)
            zg = tl.dot(past, _gate(w_hh, 2, u, ku, HIDDEN, HIDDEN), zg, input_precision=PRECISION)
            zo = tl.dot(past, _gate(w_hh, 3, u, ku, HIDDEN, HIDDEN), zo, input_precision=PRECISION)
        i = tl.sigmoid(zi)
        f_ = tl.sigmoid(zf)
        g = _tanh(zg)
        o = tl.sigmoid(zo)
        c = f_ * c + i * g
        h = o * _tanh(c)
        hs += step
        tl.store(hs + at, h, mask=own)
        if SAVE:
            cs += step
            tl.store(cs + at, c, mask=own)
            tl.store(gates + at4, i, mask=own)
            tl.store(gates + at4 + HIDDEN, f_, mask=own)
            tl.store(gates + at4 + 2 * HIDDEN, g, mask=own)
            tl.store(gates + at4 + 3 * HIDDEN, o, mask=own)
            gates += 4 * step
    tl.store(h_last + state + at, h, mask=own)
    tl.store(c_last + state + at, c, mask=own)


@triton.jit(do_not_specialize=["time", "batch"])
def backward(
    dy,  # [members, time, batch, HIDDEN]
    gates,  # [members, time, batch, 4 HIDDEN], activated
    cs,  # [members, time + 1, batch, HIDDEN]
    w_ih,  # [members, 4 HIDDEN, INPUTS]
    w_hh,  # [members, 4 HIDDEN, HIDDEN]
    in_mask,  # [members, batch, INPUTS]
    rec_mask,  # [members, batch, HIDDEN]
    dh_last,  # [members, batch, HIDDEN]
    dc_last,
    dz,  # out: gradient before the activations [members, time, batch, 4 HIDDEN]
    dx,  # out where FUSED: [members, time, batch, INPUTS]
    dh0,  # out: [members, batch, HIDDEN]
    dc0,
    dy_member,  # members' stride in dy
    time,
    batch,
    HIDDEN: tl.constexpr,
    INPUTS: tl.constexpr,
    HP: tl.constexpr,
    FP: tl.constexpr,
    TILE: tl.constexpr,
    FUSED: tl.constexpr,
    RESIDENT: tl.constexpr,
    MASKED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    b = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    u = tl.arange(0, HP)[None, :]
    ku = tl.arange(0, HP)[:, None]
    own = (b < batch) & (u < HIDDEN)
    at = b * HIDDEN + u
    at4 = b * 4 * HIDDEN + u
    step = batch * HIDDEN
    state = member * step
    w_hh += member * 4 * HIDDEN * HIDDEN
    cs += (member * (time + 1) + time) * step
    gates += (member * time + time - 1) * step * 4
    dz += (member * time + time - 1) * step * 4
    dy += member * dy_member + (member * 0 + time - 1) * step

    dh = tl.load(dh_last + state + at, mask=own, other=0.0)
    dc = tl.load(dc_last + state + at, mask=own, other=0.0)
    if MASKED:
        keep = tl.load(rec_mask + state + at, mask=own, other=0.0)
    if RESIDENT:
        wi = _gate(w_hh, 0, ku, u, HIDDEN, HIDDEN)  # [unit, fed]
        wf = _gate(w_hh, 1, ku, u, HIDDEN, HIDDEN)
        wg = _gate(w_hh, 2, ku, u, HIDDEN, HIDDEN)
        wo = _gate(w_hh, 3, ku, u, HIDDEN, HIDDEN)
    if FUSED:
        f = tl.arange(0, FP)[None, :]
        seen = (b < batch) & (f < INPUTS)
        at_x = b * INPUTS + f
        w_ih += member * 4 * HIDDEN * INPUTS
        dx += (member * time + time - 1) * batch * INPUTS
        vi = _gate(w_ih, 0, ku, f, HIDDEN, INPUTS)
        vf = _gate(w_ih, 1, ku, f, HIDDEN, INPUTS)
        vg = _gate(w_ih, 2, ku, f, HIDDEN, INPUTS)
        vo = _gate(w_ih, 3, ku, f, HIDDEN, INPUTS)
        if MASKED:
            keep_x = tl.load(in_mask + member * batch * INPUTS + at_x, mask=seen, other=0.0)
    c_now = tl.load(cs + at, mask=own, other=0.0)
    i_next = tl.load(gates + at4, mask=own, other=0.0)
    f_next = tl.load(gates + at4 + HIDDEN, mask=own, other=0.0)
    g_next = tl.load(gates + at4 + 2 * HIDDEN, mask=own, other=0.0)
    o_next = tl.load(gates + at4 + 3 * HIDDEN, mask=own, other=0.0)
    dy_next = tl.load(dy + at, mask=own, other=0.0)
    cs -= step
    c_next = tl.load(cs + at, mask=own, other=0.0)

    for t in range(time):
        ahead = tl.minimum(time - 1 - t, 1)
        i = i_next
        f_ = f_next
        g = g_next
        o = o_next
        c_past = c_next
        dh += dy_next
        gates -= ahead * 4 * step
        cs -= ahead * step
        dy -= ahead * step
        i_next = tl.load(gates + at4, mask=own, other=0.0)
        f_next = tl.load(gates + at4 + HIDDEN, mask=own, other=0.0)
        g_next = tl.load(gates + at4 + 2 * HIDDEN, mask=own, other=0.0)
        o_next = tl.load(gates + at4 + 3 * HIDDEN, mask=own, other=0.0)
        dy_next = tl.load(dy + at, mask=own, other=0.0)
        c_next = tl.load(cs + at, mask=own, other=0.0)

        tc = _tanh(c_now)
        c_now = c_past
        dc += dh * o * (1.0 - tc * tc)
        di = dc * g * i * (1.0 - i)
        df = dc * c_past * f_ * (1.0 - f_)
        dg = dc * i * (1.0 - g * g)
        do = dh * tc * o * (1.0 - o)
        dc = dc * f_
        if RESIDENT:
            dh = tl.dot(di, wi, input_precision=PRECISION) + tl.dot(df, wf, input_precision=PRECISION)
            dh += tl.dot(dg, wg, input_precision=PRECISION) + tl.dot(do, wo, input_precision=PRECISION)
        else:
            dh = tl.dot(di, _gate(w_hh, 0, ku, u, HIDDEN, HIDDEN), input_precision=PRECISION)
            dh = tl.dot(df, _gate(w_hh, 1, ku, u, HIDDEN, HIDDEN), dh, input_precision=PRECISION)
            dh = tl.dot(dg, _gate(w_hh, 2, ku, u, HIDDEN, HIDDEN), dh, input_precision=PRECISION)
            dh = tl.dot(do, _gate(w_hh, 3, ku, u, HIDDEN, HIDDEN), dh, input_precision=PRECISION)
        if MASKED:
            dh = dh * keep
        tl.store(dz + at4, di, mask=own)
        tl.store(dz + at4 + HIDDEN, df, mask=own)
        tl.store(dz + at4 + 2 * HIDDEN, dg, mask=own)
        tl.store(dz + at4 + 3 * HIDDEN, do, mask=own)
        dz -= 4 * step
        if FUSED:
            d = tl.dot(di, vi, input_precision=PRECISION) + tl.dot(df, vf, input_precision=PRECISION)
            d += tl.dot(dg, vg, input_precision=PRECISION) + tl.dot(do, vo, input_precision=PRECISION)
            if MASKED:
                d = d * keep_x
            tl.store(dx + at_x, d, mask=seen)
            dx -= batch * INPUTS
    tl.store(dh0 + state + at, dh, mask=own)
    tl.store(dc0 + state + at, dc, mask=own)


@triton.jit(do_not_specialize=["rows", "batch", "rows_each"])
def weight_gradient(
    dz,  # [members, rows, columns]
    fed,  # [members, rows, WIDTH]: what the weights were fed
    fed_mask,  # [members, batch, WIDTH]
    dw,  # out, a part each of ``parts``: [members, parts, columns, WIDTH]
    db,  # out where BIAS: [members, parts, columns]
    fed_member,  # members' stride in fed
    rows,
    batch,
    rows_each,
    columns,
    WIDTH: tl.constexpr,
    WP: tl.constexpr,
    BLOCK: tl.constexpr,
    STEP: tl.constexpr,
    MASKED: tl.constexpr,
    BIAS: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """dw = sum over rows of dz' fed; db = sum of dz. Parts are added outside, in a fixed order: the same run, the same bits."""
    part = tl.program_id(0)
    member = tl.program_id(2).to(tl.int64)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, WP)[None, :]
    dz += member * rows * columns
    fed += member * fed_member
    acc = tl.zeros((BLOCK, WP), tl.float32)
    acc_b = tl.zeros((STEP, BLOCK), tl.float32)
    end = tl.minimum(rows, (part + 1) * rows_each)
    for start in range(part * rows_each, end, STEP):
        r = (start + tl.arange(0, STEP)[:, None]).to(tl.int64)
        d = tl.load(dz + r * columns + n[None, :], mask=(r < end) & (n[None, :] < columns), other=0.0)
        v = tl.load(fed + r * WIDTH + k, mask=(r < end) & (k < WIDTH), other=0.0)
        if MASKED:
            v *= tl.load(fed_mask + (member * batch + r % batch) * WIDTH + k, mask=(r < end) & (k < WIDTH), other=0.0)
        acc = tl.dot(tl.trans(d), v, acc, input_precision=PRECISION)
        if BIAS:
            acc_b += d
    parts = tl.num_programs(0)
    out = (member * parts + part) * columns
    tl.store(dw + (out + n[:, None]) * WIDTH + k, acc, mask=(n[:, None] < columns) & (k < WIDTH))
    if BIAS:
        tl.store(db + out + n, tl.sum(acc_b, axis=0), mask=n < columns)
