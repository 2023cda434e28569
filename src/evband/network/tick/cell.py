"""One step of one member for a tile of vehicles: every layer, gates fused with the products.

    i, f, g, o = W_ih x + W_hh h + b;  c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)

A block is LANES hidden units. One vehicle streams its weights (``kernels.pack``) once, a tile of vehicles reuses them
from the first cache. The four gate sums of a block never leave the registers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.compiled import compiled
from evband.network.kernels._cpu_blocks import gate_sums
from evband.network.kernels.pack import forward_weights_at
from evband.network.kernels.vector import LANES, fma, load, prefetch, splat, store, tanh_ratio, total

Floats = NDArray[np.float32]
Vector = Any  # of LANES float32, see kernels.vector

TILE = 6 if LANES == 16 else 2  # vehicles whose four gates fit the register file together: 4 TILE + 5 <= 32 registers
HALF = np.float32(0.5)


class Network(NamedTuple):
    """Shape and weights of all members. This and other named tuples cross into compiled code as plain tuples, which
    are told apart far faster, and get their names there.
    """

    features: int
    hidden: int
    layers: int
    inputs: int  # lines of packed weights for the features
    units: int  # hidden units, padded to whole vectors
    gates: int  # 4 units
    members: int
    outputs: int
    pitch: int  # numbers from one vehicle's state to the next
    packed: int  # numbers of one member's packed weights
    weights: NDArray  # flat [members, packed], float32, or float16 as uint16
    bias: Floats  # flat [members, layers, gates]
    head: Floats  # flat [members, outputs, units]
    head_bias: Floats  # [members, outputs]
    road: Floats  # [road, members]


class Work(NamedTuple):
    """Scratch for one group of vehicles."""

    hiddens: Floats  # [3, max(group, members) * units]: below, above, before
    sums: Floats  # flat [TILE, 4, LANES]
    raw: Floats  # [group, members, outputs]: what the heads give
    x: Floats  # [group, features]
    r: Floats  # [group, road]
    rows: NDArray[np.int64]  # [group]: where each vehicle's state begins in the arena
    slots: NDArray[np.int64]  # [group]: its place in the batch


@compiled()
def gates(i: Vector, f: Vector, g: Vector, o: Vector, c: Vector) -> tuple[Vector, Vector]:
    """New h and c of a block from its gate sums; i, f and o come halved. Two divisions instead of five."""
    ni, di = tanh_ratio(i)
    nf, df = tanh_ratio(f)
    ng, dg = tanh_ratio(g)
    no, do = tanh_ratio(o)
    dig = di * dg
    c = splat(HALF) * fma((df + nf) * c, dig, (di + ni) * ng * df) / (df * dig)
    nc, dc = tanh_ratio(c)
    return splat(HALF) * (do + no) * nc / (do * dc), c


@compiled(forceinline=True)
def layer_step(
    net: Network,
    k: int,  # which layer
    m: int,  # of which member
    x: Floats,  # flat: what enters the layer, row v at x_at + v step
    x_at: int,
    step: int,
    new: Floats,  # flat: the hidden state after, row v at new_at + v units
    new_at: int,
    old: Floats,  # flat [tile, units], scratch: the hidden state before
    arena: Floats,  # flat; of each vehicle [member, layer, (h, c), units]
    work: Work,
    count: int,  # vehicles
) -> None:
    """One layer of one member for the vehicles of a tile; h and c go on in the arena."""
    units, rows, sums = net.units, work.rows, work.sums
    inputs, lines = (net.hidden, units) if k else (net.features, net.inputs)
    start = m * net.packed + forward_weights_at(net, k)
    panel = (1 + lines + units) * 4 * LANES
    offset, bias = (m * net.layers + k) * 2 * units, (m * net.layers + k) * net.gates
    for v in range(count):
        for lane in range(0, units, LANES):
            store(old, v * units + lane, load(arena, rows[v] + offset + lane))
    for block in range(units // LANES):
        lane = block * LANES
        b, w_x = bias + 4 * lane, start + block * panel + 4 * LANES
        w_h = w_x + lines * 4 * LANES
        v = 0
        while v < count:
            if v + TILE <= count:
                gate_sums(TILE, sums, 0, net.bias, b, net.weights, w_h, old, v * units, units, net.hidden,
                          net.weights, w_x, x, x_at + v * step, step, inputs)  # fmt: skip
                n = TILE
            else:
                gate_sums(1, sums, 0, net.bias, b, net.weights, w_h, old, v * units, units, net.hidden,
                          net.weights, w_x, x, x_at + v * step, step, inputs)  # fmt: skip
                n = 1
            for j in range(n):
                s, spot = j * 4 * LANES, rows[v + j] + offset + lane
                i, f, g, o = load(sums, s), load(sums, s + LANES), load(sums, s + 2 * LANES), load(sums, s + 3 * LANES)
                h, c = gates(i, f, g, o, load(arena, spot + units))
                store(arena, spot, h)
                store(arena, spot + units, c)
                store(new, new_at + (v + j) * units + lane, h)
                prefetch(arena, spot + 2 * units)  # the next layer's
                prefetch(arena, spot + 3 * units)
            v += n


@compiled(forceinline=True)
def head_step(net: Network, m: int, h: Floats, h_at: int, count: int, raw: Floats) -> None:
    """raw [tile, members, outputs] = head [member, outputs, units] times h, without the bias; all flat."""
    for v in range(count):
        for j in range(net.outputs):
            dot = splat(np.float32(0.0))
            for lane in range(0, net.units, LANES):
                weights = load(net.head, (m * net.outputs + j) * net.units + lane)
                dot = fma(weights, load(h, h_at + v * net.units + lane), dot)
            raw[(v * net.members + m) * net.outputs + j] = total(dot)


@compiled()
def network_step(net: Network, work: Work, arena: Floats, count: int) -> None:
    """All members for the vehicles of a tile. One vehicle goes layer by layer, so that the products of a member fill the
    time in which the gates of another are waited for; many go member by member, so that its weights stay in the cache.
    """
    x, raw, units, old = work.x.reshape(-1), work.raw.reshape(-1), net.units, work.hiddens[2]
    if count == 1:
        for k in range(net.layers):
            new, below = work.hiddens[k % 2], work.hiddens[(k + 1) % 2]
            for m in range(net.members):
                if k == 0:
                    layer_step(net, k, m, x, 0, 0, new, m * units, old, arena, work, 1)
                else:
                    layer_step(net, k, m, below, m * units, 0, new, m * units, old, arena, work, 1)
        for m in range(net.members):
            head_step(net, m, work.hiddens[(net.layers - 1) % 2], m * units, 1, raw)
        return
    for m in range(net.members):
        source, step = x, net.features
        for k in range(net.layers):
            new = work.hiddens[k % 2]
            layer_step(net, k, m, source, 0, step, new, 0, old, arena, work, count)
            source, step = new, units
        head_step(net, m, source, 0, count, raw)
