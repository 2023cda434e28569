"""One step of one member for a tile of vehicles: every layer, gates fused with the products.

    i, f, g, o = W_ih x + W_hh h + b;  c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)

A block is LANES hidden units. Its weights lie in the order of use, [hidden then inputs, gate, lane], so that one vehicle
streams them once from start to end and a tile of vehicles reuses them from the first cache. The four gate sums of a
block never leave the registers. Rows of i, f and o are halved when packed, since sigmoid(x) = (1 + tanh(x/2)) / 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evband.tick.compiling import compiled
from evband.tick.simd import LANES, TILE, fma, gate_sums, load, maximum, minimum, prefetch, splat, store, total

Array = np.ndarray
Vector = Any  # of LANES float32, see simd.py

# tanh(x) = x P(x^2) / Q(x^2) on [-9, 9]: minimax to 2e-8, 3e-7 in float32; beyond, tanh is 1 to 3e-8
_BOUND = 9.0
_P = (0.9999998807907104, 0.13373196125030518, 0.003486580913886428, 2.0471814423217438e-05, 1.318420395080011e-08)
_Q = (1.0, 0.4670649468898773, 0.025841975584626198, 0.0003271383757237345, 7.702654443164647e-07)
BOUND, HALF = np.float32(_BOUND), np.float32(0.5)
P0, P1, P2, P3, P4 = (np.float32(a) for a in _P)
Q1, Q2, Q3, Q4 = (np.float32(a) for a in _Q[1:])


@compiled()
def tanh_ratio(x: Vector) -> tuple[Vector, Vector]:
    """Numerator and denominator of tanh(x), undivided: the gates below share two divisions instead of five."""
    x = minimum(maximum(x, splat(-BOUND)), splat(BOUND))
    t = x * x
    p = fma(fma(fma(fma(splat(P4), t, splat(P3)), t, splat(P2)), t, splat(P1)), t, splat(P0))
    q = fma(fma(fma(fma(splat(Q4), t, splat(Q3)), t, splat(Q2)), t, splat(Q1)), t, splat(np.float32(1.0)))
    return x * p, q


@compiled()
def gates(i: Vector, f: Vector, g: Vector, o: Vector, c: Vector) -> tuple[Vector, Vector]:
    """New h and c of a block from its gate sums; i, f and o come halved."""
    ni, di = tanh_ratio(i)
    nf, df = tanh_ratio(f)
    ng, dg = tanh_ratio(g)
    no, do = tanh_ratio(o)
    dig = di * dg
    c = splat(HALF) * fma((df + nf) * c, dig, (di + ni) * ng * df) / (df * dig)
    nc, dc = tanh_ratio(c)
    return splat(HALF) * (do + no) * nc / (do * dc), c


@compiled()
def layer(
    shape: tuple[int, int, int, int],  # inputs, hidden, padded hidden, vehicles in this tile
    weights: Array,  # flat [..., block, hidden + inputs, 4, LANES], this layer at `w`
    w: int,
    bias: Array,  # flat [..., block, 4, LANES], this layer at `b`
    b: int,
    x: Array,  # flat [tile, step]: what enters the layer
    step: int,
    h: Array,  # flat [tile, padded]: hidden state before
    new: Array,  # flat [tile, padded]: hidden state after
    arena: Array,  # flat; h and then c of this layer, padded each, at rows[v] + offset
    rows: Array,  # [tile]
    offset: int,
    sums: Array,  # flat [TILE, 4, LANES], scratch
) -> None:
    """One layer of one member for the vehicles of a tile; c is updated in the arena, h into ``new``."""
    inputs, hidden, padded, count = shape
    for lane in range(0, padded, LANES):
        at, beta = w + lane * 4 * (inputs + hidden), b + lane * 4
        v = 0
        while v < count:
            if v + TILE <= count:
                gate_sums(TILE, sums, bias, beta, weights, at, x, v * step, step, inputs, h, v * padded, padded, hidden)
                n = TILE
            else:
                gate_sums(1, sums, bias, beta, weights, at, x, v * step, step, inputs, h, v * padded, padded, hidden)
                n = 1
            for j in range(n):
                s, spot = j * 4 * LANES, rows[v + j] + offset + padded + lane
                i, f, g, o = load(sums, s), load(sums, s + LANES), load(sums, s + 2 * LANES), load(sums, s + 3 * LANES)
                out, c = gates(i, f, g, o, load(arena, spot))
                store(arena, spot, c)
                store(new, (v + j) * padded + lane, out)
                prefetch(arena, spot + padded)
                prefetch(arena, spot + 2 * padded)
            v += n


@compiled()
def member_step(
    sizes: tuple[int, int, int, int, int],  # features, hidden, padded hidden, layers, outputs
    weights: Array,
    w: int,  # where this member's weights start
    bias: Array,
    b: int,
    head: Array,  # flat [..., outputs, padded], this member at `head_at`
    head_at: int,
    x: Array,  # flat [tile, features]
    count: int,
    arena: Array,
    rows: Array,  # [tile] where each vehicle's states start
    offset: int,  # of this member within a vehicle's states
    scratch: Array,  # [3, tile * padded]
    sums: Array,
    raw: Array,  # flat [tile, members, outputs]; written at raw_at + v raw_step
    raw_at: int,
    raw_step: int,
) -> None:
    """All layers and the head of one member; the hidden state returns to the arena layer by layer."""
    features, hidden, padded, layers, outputs = sizes
    old, source, step = scratch[2], x, features
    for k in range(layers):
        inputs = features if k == 0 else hidden
        new = scratch[k % 2]
        for v in range(count):
            for lane in range(0, padded, LANES):
                store(old, v * padded + lane, load(arena, rows[v] + offset + lane))
        layer((inputs, hidden, padded, count), weights, w, bias, b, source, step, old, new, arena, rows, offset, sums)
        for v in range(count):
            for lane in range(0, padded, LANES):
                store(arena, rows[v] + offset + lane, load(new, v * padded + lane))
        w += padded * 4 * (inputs + hidden)
        b += padded * 4
        offset += 2 * padded
        source, step = new, padded
    for v in range(count):
        for j in range(outputs):
            dot = splat(np.float32(0.0))
            for lane in range(0, padded, LANES):
                dot = fma(load(head, head_at + j * padded + lane), load(source, v * padded + lane), dot)
            raw[raw_at + v * raw_step + j] = total(dot)
