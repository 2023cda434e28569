"""Triton kernels of one LSTM layer of all members: the recurrence forward and backward.

A program of ``forward`` and ``backward`` owns one member and a tile of windows and runs the whole time loop itself, with
the recurrent weights (and, where ``FUSED``, the input weights) on chip. A step is a chain of small products that wait for
each other: what counts is the length of that chain and its barriers, so the four gates of a unit lie side by side in
memory (``[..., HIDDEN, 4]``: one access moves them all) and loads are left to the compiler's pipeline, a step ahead.
The gradients of inputs and weights are plain products over all rows, kept apart so that the recurrence stays small.

Hidden units and inputs are padded to powers of two (``HP``, ``FP``) by masked loads: a padded unit has zero weights and
zero state, so it adds nothing. Sequences have a slot 0 for the initial state: h of step t is at slot t + 1. Where
``RESETS``, the state is multiplied by ``carry`` (0 or 1) before each step; what is stored is the state before that.
"""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl

from evband.network.kernels._triton_products import dot


@triton.jit
def _tanh(z):
    return 1.0 - 2.0 / (1.0 + tl.exp(2.0 * z))


@triton.jit
def _gate(w, gate, units, fed, stride, HIDDEN: tl.constexpr, WIDTH: tl.constexpr):
    """Weights of one gate from [4 HIDDEN, WIDTH], at [units, fed] or [fed, units] as these indices are laid out."""
    return tl.load(w + (gate * HIDDEN + units) * WIDTH + fed * stride, mask=(units < HIDDEN) & (fed < WIDTH), other=0.0)


@triton.jit(do_not_specialize=["w_ih_member", "w_hh_member", "bias_member", "time", "steps", "batch"])
def forward(
    x,  # FUSED: inputs [members, time, batch, INPUTS]; else x W_ih' + b  [members, time, batch, 4 HIDDEN]
    w_ih,  # [members, 4 HIDDEN, INPUTS]
    w_hh,  # [members, 4 HIDDEN, HIDDEN]
    bias,  # [members, 4 HIDDEN]
    h0,  # [members, batch, HIDDEN]
    c0,
    in_mask,  # [members, batch, INPUTS]
    rec_mask,  # [members, batch, HIDDEN]
    carry,  # where RESETS: [members, time, batch]
    hs,  # out: [members, time + 1, batch, HIDDEN]
    cs,  # out where SAVE: the same shape
    gates,  # out where SAVE: activated gates [members, time, batch, HIDDEN, 4]
    h_last,  # out: [members, batch, HIDDEN]
    c_last,
    x_member,  # members' stride in x; 0 where they share it
    w_ih_member,
    w_hh_member,
    bias_member,
    time,  # of the whole sequence
    steps,  # to run; the sequences' pointers are at the first of them
    batch,
    HIDDEN: tl.constexpr,
    INPUTS: tl.constexpr,
    HP: tl.constexpr,
    FP: tl.constexpr,
    TILE: tl.constexpr,
    FUSED: tl.constexpr,
    RESIDENT: tl.constexpr,
    MASKED: tl.constexpr,
    RESETS: tl.constexpr,
    SAVE: tl.constexpr,
    EXACT: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    b = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    u = tl.arange(0, HP)[None, :]
    ku = tl.arange(0, HP)[:, None]
    q = tl.arange(0, 4 * HP)[None, :]
    own = (b < batch) & (u < HIDDEN)
    own4 = (b < batch) & (q < 4 * HIDDEN)
    at = b * HIDDEN + u
    at4 = b * 4 * HIDDEN + q
    step = batch * HIDDEN
    state = member * step
    hs += member * (time + 1) * step
    cs += member * (time + 1) * step
    gates += member * time * step * 4
    x += member * x_member
    w_hh += member * w_hh_member
    if RESETS:
        carry += member * time * batch

    h = tl.load(h0 + state + at, mask=own, other=0.0)
    c = tl.load(c0 + state + at, mask=own, other=0.0)
    tl.store(hs + at, h, mask=own)
    if SAVE:
        tl.store(cs + at, c, mask=own)
    if MASKED:
        keep = tl.load(rec_mask + state + at, mask=own, other=0.0)
    if RESIDENT:
        wi = _gate(w_hh, 0, u, ku, 1, HIDDEN, HIDDEN)  # [fed, units]
        wf = _gate(w_hh, 1, u, ku, 1, HIDDEN, HIDDEN)
        wg = _gate(w_hh, 2, u, ku, 1, HIDDEN, HIDDEN)
        wo = _gate(w_hh, 3, u, ku, 1, HIDDEN, HIDDEN)
    if FUSED:
        k = tl.arange(0, FP)[None, :]
        kf = tl.arange(0, FP)[:, None]
        seen = (b < batch) & (k < INPUTS)
        at_x = b * INPUTS + k
        w_ih += member * w_ih_member
        vi = _gate(w_ih, 0, u, kf, 1, HIDDEN, INPUTS)
        vf = _gate(w_ih, 1, u, kf, 1, HIDDEN, INPUTS)
        vg = _gate(w_ih, 2, u, kf, 1, HIDDEN, INPUTS)
        vo = _gate(w_ih, 3, u, kf, 1, HIDDEN, INPUTS)
        bias += member * bias_member
        bi = tl.load(bias + u, mask=u < HIDDEN, other=0.0)
        bf = tl.load(bias + HIDDEN + u, mask=u < HIDDEN, other=0.0)
        bg = tl.load(bias + 2 * HIDDEN + u, mask=u < HIDDEN, other=0.0)
        bo = tl.load(bias + 3 * HIDDEN + u, mask=u < HIDDEN, other=0.0)
        if MASKED:
            keep_x = tl.load(in_mask + member * batch * INPUTS + at_x, mask=seen, other=0.0)

    for _ in range(steps):
        if FUSED:
            x_now = tl.load(x + at_x, mask=seen, other=0.0)
            x += batch * INPUTS
            if MASKED:
                x_now = x_now * keep_x
            zero = tl.zeros((TILE, HP), tl.float32)
            zi = dot(x_now, vi, zero, EXACT) + bi
            zf = dot(x_now, vf, zero, EXACT) + bf
            zg = dot(x_now, vg, zero, EXACT) + bg
            zo = dot(x_now, vo, zero, EXACT) + bo
        else:
            row = x + b * 4 * HIDDEN + u
            zi = tl.load(row, mask=own, other=0.0)
            zf = tl.load(row + HIDDEN, mask=own, other=0.0)
            zg = tl.load(row + 2 * HIDDEN, mask=own, other=0.0)
            zo = tl.load(row + 3 * HIDDEN, mask=own, other=0.0)
            x += 4 * step
        if RESETS:
            carried = tl.load(carry + b, mask=b < batch, other=0.0)
            carry += batch
            h = h * carried
            c = c * carried
        past = h
        if MASKED:
            past = h * keep
        if RESIDENT:
            zi = dot(past, wi, zi, EXACT)
            zf = dot(past, wf, zf, EXACT)
            zg = dot(past, wg, zg, EXACT)
            zo = dot(past, wo, zo, EXACT)
        else:
            zi = dot(past, _gate(w_hh, 0, u, ku, 1, HIDDEN, HIDDEN), zi, EXACT)
            zf = dot(past, _gate(w_hh, 1, u, ku, 1, HIDDEN, HIDDEN), zf, EXACT)
            zg = dot(past, _gate(w_hh, 2, u, ku, 1, HIDDEN, HIDDEN), zg, EXACT)
            zo = dot(past, _gate(w_hh, 3, u, ku, 1, HIDDEN, HIDDEN), zo, EXACT)
        i = tl.sigmoid(zi)
        f = tl.sigmoid(zf)
        g = _tanh(zg)
        o = tl.sigmoid(zo)
        c = f * c + i * g
        h = o * _tanh(c)
        hs += step
        tl.store(hs + at, h, mask=own)
        if SAVE:
            cs += step
            tl.store(cs + at, c, mask=own)
            tl.store(gates + at4, tl.reshape(tl.join(tl.join(i, g), tl.join(f, o)), (TILE, 4 * HP)), mask=own4)
            gates += 4 * step
    tl.store(h_last + state + at, h, mask=own)
    tl.store(c_last + state + at, c, mask=own)


@triton.jit(do_not_specialize=["w_hh_member", "one", "time", "steps", "batch"])
def backward(
    dy,  # [members, time, batch, HIDDEN]
    gates,  # [members, time, batch, HIDDEN, 4], activated
    cs,  # [members, time + 1, batch, HIDDEN]
    w_hh,  # [members, 4 HIDDEN, HIDDEN]
    rec_mask,  # [members, batch, HIDDEN]
    carry,  # where RESETS: [members, time, batch]
    dh_last,  # [members, batch, HIDDEN]
    dc_last,
    dz,  # out: gradient before the activations [members, time, batch, HIDDEN, 4]
    dh0,  # out: [members, batch, HIDDEN]
    dc0,
    dy_member,  # members' stride in dy
    w_hh_member,
    one,  # 1, unknown to the compiler, so that it lays weight tiles out along the summed axis, as matrix units read them
    time,
    steps,
    batch,
    HIDDEN: tl.constexpr,
    HP: tl.constexpr,
    TILE: tl.constexpr,
    RESIDENT: tl.constexpr,
    MASKED: tl.constexpr,
    RESETS: tl.constexpr,
    EXACT: tl.constexpr,
):
    member = tl.program_id(1).to(tl.int64)
    b = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    u = tl.arange(0, HP)[None, :]
    ku = tl.arange(0, HP)[:, None]
    q = tl.arange(0, 4 * HP)[None, :]
    own = (b < batch) & (u < HIDDEN)
    own4 = (b < batch) & (q < 4 * HIDDEN)
    at = b * HIDDEN + u
    at4 = b * 4 * HIDDEN + q
    step = batch * HIDDEN
    state = member * step
    last = member * time + steps - 1
    cs += (last + member) * step
    gates += last * step * 4
    dz += last * step * 4
    dy += member * dy_member + (last - member * time) * step
    w_hh += member * w_hh_member
    if RESETS:
        carry += last * batch

    dh = tl.load(dh_last + state + at, mask=own, other=0.0)
    dc = tl.load(dc_last + state + at, mask=own, other=0.0)
    if MASKED:
        keep = tl.load(rec_mask + state + at, mask=own, other=0.0)
    if RESIDENT:
        wi = _gate(w_hh, 0, ku, u, one, HIDDEN, HIDDEN)  # [units, fed]
        wf = _gate(w_hh, 1, ku, u, one, HIDDEN, HIDDEN)
        wg = _gate(w_hh, 2, ku, u, one, HIDDEN, HIDDEN)
        wo = _gate(w_hh, 3, ku, u, one, HIDDEN, HIDDEN)

    for _ in range(steps):
        four = tl.load(gates + at4, mask=own4, other=0.0)
        ig, fo = tl.split(tl.reshape(four, (TILE, HP, 2, 2)))
        i, g = tl.split(ig)
        f, o = tl.split(fo)
        c_past = tl.load(cs + at, mask=own, other=0.0)
        tc = _tanh(tl.load(cs + step + at, mask=own, other=0.0))
        dh += tl.load(dy + at, mask=own, other=0.0)
        gates -= 4 * step
        cs -= step
        dy -= step
        if RESETS:
            carried = tl.load(carry + b, mask=b < batch, other=0.0)
            carry -= batch
            c_past = c_past * carried
        dc += dh * o * (1.0 - tc * tc)
        di = dc * g * i * (1.0 - i)
        df = dc * c_past * f * (1.0 - f)
        dg = dc * i * (1.0 - g * g)
        do = dh * tc * o * (1.0 - o)
        dc = dc * f
        zero = tl.zeros((TILE, HP), tl.float32)
        if RESIDENT:  # four short chains, not one long
            dh = dot(di, wi, zero, EXACT) + dot(df, wf, zero, EXACT)
            dh += dot(dg, wg, zero, EXACT) + dot(do, wo, zero, EXACT)
        else:
            dh = dot(di, _gate(w_hh, 0, ku, u, 1, HIDDEN, HIDDEN), zero, EXACT)
            dh = dot(df, _gate(w_hh, 1, ku, u, 1, HIDDEN, HIDDEN), dh, EXACT)
            dh = dot(dg, _gate(w_hh, 2, ku, u, 1, HIDDEN, HIDDEN), dh, EXACT)
            dh = dot(do, _gate(w_hh, 3, ku, u, 1, HIDDEN, HIDDEN), dh, EXACT)
        if MASKED:
            dh = dh * keep
        if RESETS:
            dh = dh * carried
            dc = dc * carried
        tl.store(dz + at4, tl.reshape(tl.join(tl.join(di, dg), tl.join(df, do)), (TILE, 4 * HP)), mask=own4)
        dz -= 4 * step
    tl.store(dh0 + state + at, dh, mask=own)
    tl.store(dc0 + state + at, dc, mask=own)
