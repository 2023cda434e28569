"""Triton kernels of one LSTM layer of all members: forward, backward, weight gradients.

A program of ``forward`` and ``backward`` owns one member and a tile of windows and runs the whole time loop itself, with
the recurrent weights (and, where ``FUSED``, the input weights) on chip. A step is a chain of small products that wait for
each other: what counts is the length of that chain and its barriers, so the four gates of a unit lie side by side in
memory (``[..., HIDDEN, 4]``: one access moves them all) and loads are left to the compiler's pipeline, a step ahead.
``weight_gradient`` is a plain long product over all rows.

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
def _tf32_part(a):
    """The float32 rounded to the bits a tf32 product keeps."""
    return ((a.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def _dot(a, w, acc, EXACT: tl.constexpr):
    """acc + a w; EXACT to float32 by three tf32 products (what is left out is the product of the two remainders)."""
    if EXACT:
        a_head = _tf32_part(a)
        w_head = _tf32_part(w)
        acc = tl.dot(a - a_head, w_head, acc, input_precision="tf32")
        acc = tl.dot(a_head, w - w_head, acc, input_precision="tf32")
        acc = tl.dot(a_head, w_head, acc, input_precision="tf32")
    else:
        acc = tl.dot(a, w, acc, input_precision="tf32")
    return acc


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
            zi = _dot(x_now, vi, zero, EXACT) + bi
            zf = _dot(x_now, vf, zero, EXACT) + bf
            zg = _dot(x_now, vg, zero, EXACT) + bg
            zo = _dot(x_now, vo, zero, EXACT) + bo
        else:
            row = x + b * 4 * HIDDEN + u
            zi = tl.load(row, mask=own, other=0.0)
            zf = tl.load(row + HIDDEN, mask=own, other=0.0)
            zg = tl.load(row + 2 * HIDDEN, mask=own, other=0.0)
            zo = tl.load(row + 3 * HIDDEN, mask=own, other=0.0)
            x += 4 * step
        past = h
        if MASKED:
            past = h * keep
        if RESIDENT:
            zi = _dot(past, wi, zi, EXACT)
            zf = _dot(past, wf, zf, EXACT)
            zg = _dot(past, wg, zg, EXACT)
            zo = _dot(past, wo, zo, EXACT)
        else:
            zi = _dot(past, _gate(w_hh, 0, u, ku, 1, HIDDEN, HIDDEN), zi, EXACT)
            zf = _dot(past, _gate(w_hh, 1, u, ku, 1, HIDDEN, HIDDEN), zf, EXACT)
            zg = _dot(past, _gate(w_hh, 2, u, ku, 1, HIDDEN, HIDDEN), zg, EXACT)
            zo = _dot(past, _gate(w_hh, 3, u, ku, 1, HIDDEN, HIDDEN), zo, EXACT)
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


@triton.jit(do_not_specialize=["w_ih_member", "w_hh_member", "one", "time", "steps", "batch"])
def backward(
    dy,  # [members, time, batch, HIDDEN]
    gates,  # [members, time, batch, HIDDEN, 4], activated
    cs,  # [members, time + 1, batch, HIDDEN]
    w_ih,  # [members, 4 HIDDEN, INPUTS]
    w_hh,  # [members, 4 HIDDEN, HIDDEN]
    in_mask,  # [members, batch, INPUTS]
    rec_mask,  # [members, batch, HIDDEN]
    dh_last,  # [members, batch, HIDDEN]
    dc_last,
    dz,  # out: gradient before the activations [members, time, batch, HIDDEN, 4]
    dx,  # out where FUSED: [members, time, batch, INPUTS]
    dh0,  # out: [members, batch, HIDDEN]
    dc0,
    dy_member,  # members' stride in dy
    w_ih_member,
    w_hh_member,
    one,  # 1, unknown to the compiler, so that it lays weight tiles out along the summed axis, as matrix units read them
    time,
    steps,
    batch,
    HIDDEN: tl.constexpr,
    INPUTS: tl.constexpr,
    HP: tl.constexpr,
    FP: tl.constexpr,
    TILE: tl.constexpr,
    FUSED: tl.constexpr,
    RESIDENT: tl.constexpr,
    MASKED: tl.constexpr,
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

    dh = tl.load(dh_last + state + at, mask=own, other=0.0)
    dc = tl.load(dc_last + state + at, mask=own, other=0.0)
    if MASKED:
        keep = tl.load(rec_mask + state + at, mask=own, other=0.0)
    if RESIDENT:
        wi = _gate(w_hh, 0, ku, u, one, HIDDEN, HIDDEN)  # [units, fed]
        wf = _gate(w_hh, 1, ku, u, one, HIDDEN, HIDDEN)
        wg = _gate(w_hh, 2, ku, u, one, HIDDEN, HIDDEN)
        wo = _gate(w_hh, 3, ku, u, one, HIDDEN, HIDDEN)
    if FUSED:
        k = tl.arange(0, FP)[None, :]
        seen = (b < batch) & (k < INPUTS)
        at_x = b * INPUTS + k
        w_ih += member * w_ih_member
        dx += last * batch * INPUTS
        vi = _gate(w_ih, 0, ku, k, one, HIDDEN, INPUTS)
        vf = _gate(w_ih, 1, ku, k, one, HIDDEN, INPUTS)
        vg = _gate(w_ih, 2, ku, k, one, HIDDEN, INPUTS)
        vo = _gate(w_ih, 3, ku, k, one, HIDDEN, INPUTS)
        if MASKED:
            keep_x = tl.load(in_mask + member * batch * INPUTS + at_x, mask=seen, other=0.0)

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
        dc += dh * o * (1.0 - tc * tc)
        di = dc * g * i * (1.0 - i)
        df = dc * c_past * f * (1.0 - f)
        dg = dc * i * (1.0 - g * g)
        do = dh * tc * o * (1.0 - o)
        dc = dc * f
        zero = tl.zeros((TILE, HP), tl.float32)
        if RESIDENT:  # four short chains, not one long
            dh = _dot(di, wi, zero, EXACT) + _dot(df, wf, zero, EXACT)
            dh += _dot(dg, wg, zero, EXACT) + _dot(do, wo, zero, EXACT)
        else:
            dh = _dot(di, _gate(w_hh, 0, ku, u, 1, HIDDEN, HIDDEN), zero, EXACT)
            dh = _dot(df, _gate(w_hh, 1, ku, u, 1, HIDDEN, HIDDEN), dh, EXACT)
            dh = _dot(dg, _gate(w_hh, 2, ku, u, 1, HIDDEN, HIDDEN), dh, EXACT)
            dh = _dot(do, _gate(w_hh, 3, ku, u, 1, HIDDEN, HIDDEN), dh, EXACT)
        if MASKED:
            dh = dh * keep
        tl.store(dz + at4, tl.reshape(tl.join(tl.join(di, dg), tl.join(df, do)), (TILE, 4 * HP)), mask=own4)
        dz -= 4 * step
        if FUSED:
            zero_x = tl.zeros((TILE, FP), tl.float32)
            d = _dot(di, vi, zero_x, EXACT) + _dot(df, vf, zero_x, EXACT)
            d += _dot(dg, vg, zero_x, EXACT) + _dot(do, vo, zero_x, EXACT)
            if MASKED:
                d = d * keep_x
            tl.store(dx + at_x, d, mask=seen)
            dx -= batch * INPUTS
    tl.store(dh0 + state + at, dh, mask=own)
    tl.store(dc0 + state + at, dc, mask=own)


@triton.jit(do_not_specialize=["time", "batch", "rows_each"])
def weight_gradient(
    dz,  # [members, time, batch, HIDDEN, 4]
    fed,  # [members, time, batch, INPUTS]
    hs,  # [members, time + 1, batch, HIDDEN]
    in_mask,  # [members, batch, INPUTS]
    rec_mask,  # [members, batch, HIDDEN]
    out,  # [members, parts, 4 HIDDEN INPUTS + 4 HIDDEN HIDDEN + 4 HIDDEN]: of w_ih, w_hh and bias
    fed_member,  # members' stride in fed
    time,
    batch,
    rows_each,  # rows (step and window) of a part
    HIDDEN: tl.constexpr,
    INPUTS: tl.constexpr,
    HP: tl.constexpr,
    FP: tl.constexpr,
    BLOCK: tl.constexpr,
    STEP: tl.constexpr,
    MASKED: tl.constexpr,
    EXACT: tl.constexpr,
):
    """dz' [fed, h, 1], summed over rows. Parts are added outside, in a fixed order: equal runs, equal bits."""
    part = tl.program_id(0)
    member = tl.program_id(2).to(tl.int64)
    q = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, FP)[None, :]
    u = tl.arange(0, HP)[None, :]
    rows = time * batch
    dz += member * rows * 4 * HIDDEN
    fed += member * fed_member
    hs += member * (rows + batch) * HIDDEN
    dw_ih = tl.zeros((BLOCK, FP), tl.float32)
    dw_hh = tl.zeros((BLOCK, HP), tl.float32)
    db = tl.zeros((STEP, BLOCK), tl.float32)
    end = tl.minimum(rows, (part + 1) * rows_each)
    for start in range(part * rows_each, end, STEP):
        r = (start + tl.arange(0, STEP)[:, None]).to(tl.int64)
        d = tl.load(dz + r * 4 * HIDDEN + q[None, :], mask=(r < end) & (q[None, :] < 4 * HIDDEN), other=0.0)
        x = tl.load(fed + r * INPUTS + k, mask=(r < end) & (k < INPUTS), other=0.0)
        h = tl.load(hs + r * HIDDEN + u, mask=(r < end) & (u < HIDDEN), other=0.0)
        if MASKED:
            window = member * batch + r % batch
            x *= tl.load(in_mask + window * INPUTS + k, mask=(r < end) & (k < INPUTS), other=0.0)
            h *= tl.load(rec_mask + window * HIDDEN + u, mask=(r < end) & (u < HIDDEN), other=0.0)
        d_t = tl.trans(d)
        # Matrix units cut the bits a sum cannot hold, they do not round: long sums are kept outside them.
        dw_ih += _dot(d_t, x, tl.zeros((BLOCK, FP), tl.float32), EXACT)
        dw_hh += _dot(d_t, h, tl.zeros((BLOCK, HP), tl.float32), EXACT)
        db += d
    out += (member * tl.num_programs(0) + part) * 4 * HIDDEN * (INPUTS + HIDDEN + 1)
    row = ((q % 4) * HIDDEN + q // 4)[:, None]
    there = q[:, None] < 4 * HIDDEN
    tl.store(out + row * INPUTS + k, dw_ih, mask=there & (k < INPUTS))
    out += 4 * HIDDEN * INPUTS
    tl.store(out + row * HIDDEN + u, dw_hh, mask=there & (u < HIDDEN))
    out += 4 * HIDDEN * HIDDEN
    tl.store(out + row, tl.sum(db, axis=0)[:, None], mask=there)
