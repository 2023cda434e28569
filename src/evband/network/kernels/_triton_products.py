"""Triton kernels for the products that need no recurrence: gradients of an LSTM layer's inputs and weights."""
# mypy: ignore-errors

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _tf32_part(a):
    """The float32 rounded to the bits a tf32 product keeps."""
    return ((a.to(tl.int32, bitcast=True) + 4096) & -8192).to(tl.float32, bitcast=True)


@triton.jit
def dot(a, w, acc, EXACT: tl.constexpr):
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


@triton.jit(do_not_specialize=["w_ih_member", "time", "batch", "rows"])
def input_gradient(
    dz,  # [members, time, batch, HIDDEN, 4]
    w_ih,  # [members, 4 HIDDEN, INPUTS]
    in_mask,  # [members, batch, INPUTS]
    dx,  # out: [members, time, batch, INPUTS]
    w_ih_member,
    time,
    batch,
    rows,  # (step and window) to do; the sequences' pointers are at the first of them
    HIDDEN: tl.constexpr,
    INPUTS: tl.constexpr,
    FP: tl.constexpr,
    BLOCK: tl.constexpr,
    ROWS: tl.constexpr,
    MASKED: tl.constexpr,
    EXACT: tl.constexpr,
):
    """dx = dz W_ih."""
    member = tl.program_id(1).to(tl.int64)
    r = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    k = tl.arange(0, FP)[None, :]
    dz += member * time * batch * 4 * HIDDEN
    dx += member * time * batch * INPUTS
    w_ih += member * w_ih_member
    at = r.to(tl.int64)
    d_x = tl.zeros((ROWS, FP), tl.float32)
    for start in range(0, 4 * HIDDEN, BLOCK):
        q = start + tl.arange(0, BLOCK)
        own = q < 4 * HIDDEN
        d = tl.load(dz + at * 4 * HIDDEN + q[None, :], mask=(r < rows) & own[None, :], other=0.0)
        row = ((q % 4) * HIDDEN + q // 4)[:, None]
        w = tl.load(w_ih + row * INPUTS + k, mask=own[:, None] & (k < INPUTS), other=0.0)
        d_x += dot(d, w, tl.zeros((ROWS, FP), tl.float32), EXACT)
    seen = (r < rows) & (k < INPUTS)
    if MASKED:
        d_x *= tl.load(in_mask + (member * batch + r % batch) * INPUTS + k, mask=seen, other=0.0)
    tl.store(dx + at * INPUTS + k, d_x, mask=seen)


@triton.jit(do_not_specialize=["time", "batch", "rows", "rows_each"])
def weight_gradient(
    dz,  # [members, time, batch, HIDDEN, 4]
    fed,  # [members, time, batch, INPUTS]
    hs,  # [members, time + 1, batch, HIDDEN]
    in_mask,  # [members, batch, INPUTS]
    rec_mask,  # [members, batch, HIDDEN]
    carry,  # where RESETS: [members, time, batch]
    out,  # [members, parts, 4 HIDDEN INPUTS + 4 HIDDEN HIDDEN + 4 HIDDEN]: of w_ih, w_hh and bias
    fed_member,  # members' stride in fed
    parts,
    time,
    batch,
    rows,  # (step and window) to do; the sequences' pointers are at the first of them
    rows_each,  # of a part
    HIDDEN: tl.constexpr,
    INPUTS: tl.constexpr,
    HP: tl.constexpr,
    FP: tl.constexpr,
    BLOCK: tl.constexpr,
    STEP: tl.constexpr,
    MASKED: tl.constexpr,
    RESETS: tl.constexpr,
    EXACT: tl.constexpr,
):
    """dz' [fed, h, 1], summed over rows. Parts are added outside, in a fixed order: equal runs, equal bits."""
    part = tl.program_id(0)
    member = tl.program_id(2).to(tl.int64)
    q = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    k = tl.arange(0, FP)[None, :]
    u = tl.arange(0, HP)[None, :]
    dz += member * time * batch * 4 * HIDDEN
    fed += member * fed_member
    hs += member * (time + 1) * batch * HIDDEN
    if RESETS:
        carry += member * time * batch
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
        if RESETS:
            h *= tl.load(carry + r, mask=r < end, other=0.0)
        d_t = tl.trans(d)
        # Matrix units cut the bits a sum cannot hold, they do not round: long sums are kept outside them.
        dw_ih += dot(d_t, x, tl.zeros((BLOCK, FP), tl.float32), EXACT)
        dw_hh += dot(d_t, h, tl.zeros((BLOCK, HP), tl.float32), EXACT)
        db += d
    out += (member * parts + part) * 4 * HIDDEN * (INPUTS + HIDDEN + 1)
    row = ((q % 4) * HIDDEN + q // 4)[:, None]
    there = q[:, None] < 4 * HIDDEN
    tl.store(out + row * INPUTS + k, dw_ih, mask=there & (k < INPUTS))
    out += 4 * HIDDEN * INPUTS
    tl.store(out + row * HIDDEN + u, dw_hh, mask=there & (u < HIDDEN))
    out += 4 * HIDDEN * HIDDEN
    tl.store(out + row, tl.sum(db, axis=0)[:, None], mask=there)
