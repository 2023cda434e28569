"""One step of one member for a tile of vehicles: every layer, gates fused with the products.

    i, f, g, o = W_ih x + W_hh h + b;  c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)

A block is LANES hidden units. Its weights lie in the order of use, [hidden then inputs, gate, lane], so that one vehicle
streams them once from start to end and a tile of vehicles reuses them from the first cache. The four gate sums of a
block never leave the registers. Rows of i, f and o are halved when packed, since sigmoid(x) = (1 + tanh(x/2)) / 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evband.network.tick.compiling import compiled
from evband.network.tick.simd import LANES, TILE, fma, gate_sums, load, maximum, minimum, prefetch, splat, store, total

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
def layer_step(
    sizes: tuple[int, int, int, int, int, int],  # features, hidden, padded hidden, layers, outputs, members
    k: int,  # which layer
    m: int,  # of which member
    weights: Array,  # flat [member, layer, block, hidden + inputs, 4, LANES]
    bias: Array,  # flat [member, layer, block, 4, LANES]
    x: Array,  # flat: what enters the layer, row v at x_at + v step
    x_at: int,
    step: int,
    new: Array,  # flat: the hidden state after, row v at new_at + v padded
    new_at: int,
    old: Array,  # flat [tile, padded], scratch: the hidden state before
    arena: Array,  # flat; of each vehicle [member, layer, (h, c), padded]
    rows: Array,  # [tile] where each vehicle's part of the arena starts
    count: int,  # vehicles
    sums: Array,  # flat [TILE, 4, LANES], scratch
) -> None:
    """One layer of one member for the vehicles of a tile; h and c go on in the arena."""
    features, hidden, padded, layers, _, _ = sizes
    inputs = hidden if k else features
    below = (features + hidden + (k - 1) * 2 * hidden) if k else 0
    start = 4 * padded * (m * (features + hidden + (layers - 1) * 2 * hidden) + below)
    offset = (m * layers + k) * 2 * padded
    for v in range(count):
        for lane in range(0, padded, LANES):
            store(old, v * padded + lane, load(arena, rows[v] + offset + lane))
    for lane in range(0, padded, LANES):
        w, b = start + lane * 4 * (inputs + hidden), 4 * padded * (m * layers + k) + 4 * lane
        v = 0
        while v < count:
            from_x, from_h = x_at + v * step, v * padded
            if v + TILE <= count:
                gate_sums(TILE, sums, bias, b, weights, w, x, from_x, step, inputs, old, from_h, padded, hidden)
                n = TILE
            else:
                gate_sums(1, sums, bias, b, weights, w, x, from_x, step, inputs, old, from_h, padded, hidden)
                n = 1
            for j in range(n):
                s, spot = j * 4 * LANES, rows[v + j] + offset + lane
                i, f, g, o = load(sums, s), load(sums, s + LANES), load(sums, s + 2 * LANES), load(sums, s + 3 * LANES)
                h, c = gates(i, f, g, o, load(arena, spot + padded))
                store(arena, spot, h)
                store(arena, spot + padded, c)
                store(new, new_at + (v + j) * padded + lane, h)
                prefetch(arena, spot + 2 * padded)  # the next layer's
                prefetch(arena, spot + 3 * padded)
            v += n


@compiled()
def head_step(
    sizes: tuple[int, int, int, int, int, int], m: int, head: Array, h: Array, h_at: int, count: int, raw: Array
) -> None:
    """raw [tile, members, outputs] = head [member, outputs, padded] times h, without the bias; all flat."""
    _, _, padded, _, outputs, members = sizes
    for v in range(count):
        for j in range(outputs):
            dot = splat(np.float32(0.0))
            for lane in range(0, padded, LANES):
                dot = fma(load(head, (m * outputs + j) * padded + lane), load(h, h_at + v * padded + lane), dot)
            raw[(v * members + m) * outputs + j] = total(dot)


@compiled()
def network_step(
    sizes: tuple[int, int, int, int, int, int],
    weights: Array,
    bias: Array,
    head: Array,
    x: Array,  # flat [tile, features]
    arena: Array,
    rows: Array,
    count: int,
    hiddens: Array,  # [3, max(tile, members) * padded], scratch
    sums: Array,
    raw: Array,  # flat [tile, members, outputs]
) -> None:
    """All members for the vehicles of a tile. One vehicle goes layer by layer, so that the products of a member fill the
    time in which the gates of another are waited for; many go member by member, so that its weights stay in the cache.
    """
    features, _, padded, layers, _, members = sizes
    old = hiddens[2]
    if count == 1:
        for k in range(layers):
            new, below = hiddens[k % 2], hiddens[(k + 1) % 2]
            for m in range(members):
                at = m * padded
                if k == 0:
                    layer_step(sizes, k, m, weights, bias, x, 0, 0, new, at, old, arena, rows, 1, sums)
                else:
                    layer_step(sizes, k, m, weights, bias, below, at, 0, new, at, old, arena, rows, 1, sums)
        for m in range(members):
            head_step(sizes, m, head, hiddens[(layers - 1) % 2], m * padded, 1, raw)
        return
    for m in range(members):
        source, step = x, features
        for k in range(layers):
            new = hiddens[k % 2]
            layer_step(sizes, k, m, weights, bias, source, 0, step, new, 0, old, arena, rows, count, sums)
            source, step = new, padded
        head_step(sizes, m, head, source, 0, count, raw)
