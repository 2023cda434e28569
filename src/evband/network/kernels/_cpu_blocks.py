# mypy: disable-error-code="no-untyped-def,attr-defined,no-untyped-call"
"""The innermost tiles of the CPU kernel, written in vector instructions that Numba compiles for the user's processor.

A compiler left alone keeps neither a small product's accumulators in registers nor the gates beside them. So three
tiles are spelled out in vectors (``vector``), and everything around them is ordinary Numba:

- ``cell`` (``cell_kept``, ``cell_one``): gates' sums over inputs and past h, then the LSTM cell, for a few windows and one vector of hidden units;
- ``gate_sums``: the sums alone, of the tick engine;
- ``cell_gradient``: the cell's derivative, for one window and one vector of hidden units;
- ``add_product``, ``product``, ``product_narrow``: C (+)= A B for a few rows of A and a few vectors of B's columns.

All take flat float32 arrays, each followed by the offset where the tile begins. Nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from evband.network.kernels.vector import (
    CACHE_LINE,
    INDEX,
    LANES,
    ROWS,
    VECTOR,
    Code,
    ahead,
    broadcast,
    constant,
    fused,
    intrinsic,
    load_at,
    multiply,
    prefetch_at,
    sigmoid_of_twice,
    store_at,
    stream_at,
    tanh_of,
)


def _sum_products(
    b: Code, count: Code, sums: list[Code], term: Callable[[Code], list[tuple[Code, Code]]]
) -> list[Code]:
    """A loop over ``count`` terms that adds term(k)'s products to the sums, all held in registers."""
    before = b.block
    loop, after = b.append_basic_block(), b.append_basic_block()
    b.cbranch(b.icmp_signed(">", count, ir.Constant(INDEX, 0)), loop, after)
    b.position_at_end(loop)
    k = b.phi(INDEX)
    k.add_incoming(ir.Constant(INDEX, 0), before)
    phis = [b.phi(VECTOR) for _ in sums]
    added = [fused(b, x, y, phi) for (x, y), phi in zip(term(k), phis, strict=True)]
    following = b.add(k, ir.Constant(INDEX, 1))
    k.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", following, count), loop, after)
    b.position_at_end(after)
    results = []
    for start, phi, end in zip(sums, phis, added, strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(end, loop)
        result = b.phi(VECTOR)
        result.add_incoming(start, before)
        result.add_incoming(end, loop)
        results.append(result)
    return results


def _tile(emit: Callable[..., None], *kinds: Any) -> tuple[Any, Any]:
    """What Numba asks of an intrinsic: its signature, and how it becomes code.

    An array and the offset after it reach ``emit`` as one address, a lone number as it is.
    """

    def generate(context: Any, b: Any, signature: Any, arguments: Any) -> Any:
        values, array = [], None
        for kind, argument in zip(signature.args, arguments, strict=True):
            if isinstance(kind, types.Array):
                array = context.make_array(kind)(context, b, argument).data
            else:
                values.append(argument if array is None else ahead(b, array, argument))
                array = None
        emit(b, *values)
        return context.get_dummy_value()

    return types.void(*(kind if isinstance(kind, types.Array) else types.intp for kind in kinds)), generate


def _cell(rows: int, kept: bool = False) -> Callable[..., None]:
    def emit(b: Code, w: Code, x: Code, inputs: Code, past: Code, hidden: Code, *state: Code) -> None:
        sums = [load_at(b, ahead(b, w, gate * LANES)) for gate in range(4)] * rows
        w = ahead(b, w, 4 * LANES)
        sums = _add_row_products(b, sums, rows, 4, (x, inputs), w, inputs)
        w = ahead(b, w, b.mul(inputs, ir.Constant(INDEX, 4 * LANES)))
        sums = _add_row_products(b, sums, rows, 4, (past, hidden), w, hidden)
        gates, c_past, c, h = state
        for row in range(rows):
            i, f, g, o = (
                tanh_of(b, s) if gate == 2 else sigmoid_of_twice(b, s)
                for gate, s in enumerate(sums[4 * row : 4 * row + 4])
            )
            at = b.mul(hidden, ir.Constant(INDEX, row))
            cell = fused(b, f, load_at(b, ahead(b, c_past, at)), multiply(b, i, g))
            store_at(b, cell, ahead(b, c, at))
            store_at(b, multiply(b, o, tanh_of(b, cell)), ahead(b, h, at))
            gate_row = ahead(b, gates, b.mul(hidden, ir.Constant(INDEX, 4 * row)))
            for gate, value in enumerate((i, f, g, o)):
                (stream_at if kept else store_at)(b, value, ahead(b, gate_row, gate * LANES))

    return emit


def _add_row_products(
    b: Code,
    sums: list[Code],
    rows: int,
    vectors: int,
    left: tuple[Code, Code],
    right: Code,
    count: Code,
    half: bool = False,
) -> list[Code]:
    """sums[row, vector] += sum over k of left[row, k] right[k, vector]; left = (address, row stride), right is packed."""
    at, stride = left
    starts = [ahead(b, at, b.mul(stride, ir.Constant(INDEX, row))) for row in range(rows)]

    def term(k: Code) -> list[tuple[Code, Code]]:
        line = ahead(b, right, b.mul(k, ir.Constant(INDEX, vectors * LANES)))
        columns = [load_at(b, ahead(b, line, v * LANES), half) for v in range(vectors)]
        return [
            (value, column) for start in starts for value in [broadcast(b, ahead(b, start, k))] for column in columns
        ]

    return _sum_products(b, count, sums, term)


@intrinsic
def cell(typingctx, w, w0, x, x0, inputs, past, past0, hidden, gates, gates0, c_past, c_past0, c, c0, h, h0):
    """The LSTM cell for ROWS windows and LANES hidden units.

    w: [1 + inputs + hidden, 4, LANES], bias first, gates i, f, o halved; x: [ROWS, inputs]; past: [ROWS, hidden]. Out
    go gates [ROWS, 4 hidden] (after their functions), c and h [ROWS, hidden].
    """
    return _tile(_cell(ROWS), w, w0, x, x0, inputs, past, past0, hidden, gates, gates0, c_past, c_past0, c, c0, h, h0)


@intrinsic(prefer_literal=True)
def gate_sums(
    typingctx, rows, sums, sums0, bias, bias0, w_h, w_h0, h, h0, h_step, hidden, w_x, w_x0, x, x0, x_step, inputs
):
    """The four gates' sums of ``rows`` (a literal) windows or vehicles and LANES hidden units, into sums [rows, 4, LANES].

    As ``cell`` before its functions, with bias and weights apart, rows of h and x any steps apart, and weights that may
    be float16 (an array of uint16). The past state comes first, since it does not wait for the layer below.
    """
    half = w_h.dtype == types.uint16

    def emit(
        b: Code, out: Code, bias: Code, w_h: Code, h: Code, h_step: Code, hidden: Code, w_x: Code, *rest: Code
    ) -> None:
        x, x_step, inputs = rest
        count = rows.literal_value
        total = [load_at(b, ahead(b, bias, gate * LANES)) for gate in range(4)] * count
        total = _add_row_products(b, total, count, 4, (h, h_step), w_h, hidden, half)
        total = _add_row_products(b, total, count, 4, (x, x_step), w_x, inputs, half)
        for k, value in enumerate(total):
            store_at(b, value, ahead(b, out, k * LANES))

    signature, generate = _tile(
        emit, sums, sums0, bias, bias0, w_h, w_h0, h, h0, h_step, hidden, w_x, w_x0, x, x0, x_step, inputs
    )
    return types.void(rows, *signature.args), lambda context, b, _, given: generate(context, b, signature, given[1:])


@intrinsic
def cell_kept(typingctx, w, w0, x, x0, inputs, past, past0, hidden, gates, gates0, c_past, c_past0, c, c0, h, h0):
    """``cell`` whose gates wait for the backward pass."""
    return _tile(
        _cell(ROWS, kept=True), w, w0, x, x0, inputs, past, past0, hidden, gates, gates0, c_past, c_past0, c, c0, h, h0
    )


@intrinsic
def cell_one(typingctx, w, w0, x, x0, inputs, past, past0, hidden, gates, gates0, c_past, c_past0, c, c0, h, h0):
    """``cell`` for one window."""
    return _tile(_cell(1), w, w0, x, x0, inputs, past, past0, hidden, gates, gates0, c_past, c_past0, c, c0, h, h0)


def _cell_gradient(
    b: Code, gates: Code, c_past: Code, c: Code, dy: Code, dh: Code, dc: Code, sums: Code, d: Code
) -> None:
    one = constant(1.0)
    i, f, g, o = (load_at(b, ahead(b, gates, gate * LANES)) for gate in range(4))
    curved = tanh_of(b, load_at(b, c))
    d_h = b.fadd(load_at(b, dy), load_at(b, dh))
    d_o = multiply(b, d_h, curved)
    d_c = fused(b, multiply(b, d_h, o), b.fsub(one, multiply(b, curved, curved), flags=("fast",)), load_at(b, dc))
    store_at(b, multiply(b, d_c, f), dc)
    slope = {gate: multiply(b, s, b.fsub(one, s)) for gate, s in ((0, i), (1, f), (3, o))}
    slope[2] = b.fsub(one, multiply(b, g, g), flags=("fast",))
    outer = (multiply(b, d_c, g), multiply(b, d_c, load_at(b, c_past)), multiply(b, d_c, i), d_o)
    for gate in range(4):
        value = multiply(b, outer[gate], slope[gate])
        store_at(b, value, ahead(b, d, gate * LANES))
        total = ahead(b, sums, gate * LANES)
        store_at(b, b.fadd(load_at(b, total), value), total)


@intrinsic
def cell_gradient(typingctx, gates, gates0, c_past, c_past0, c, c0, dy, dy0, dh, dh0, dc, dc0, sums, sums0, d, d0):
    """The gradient of the gates' sums for one window and LANES hidden units.

    h's gradient is dy (from above) + dh (from the next step). Replaces dc by the past cell's gradient, writes d [4, LANES] and
    adds it to sums, the bias's gradient.
    """
    return _tile(_cell_gradient, gates, gates0, c_past, c_past0, c, c0, dy, dy0, dh, dh0, dc, dc0, sums, sums0, d, d0)


@intrinsic
def add_product(typingctx, c, c0, c_stride, a, a0, a_stride, d, d0, count):
    """c[ROWS, 4 LANES] += a' d over ``count`` rows of a [count, ROWS] (stride a_stride) and d [count, 4 LANES] (stride c_stride)."""

    def emit(b: Code, c: Code, c_stride: Code, a: Code, a_stride: Code, d: Code, count: Code) -> None:
        places = [
            ahead(b, ahead(b, c, b.mul(c_stride, ir.Constant(INDEX, row))), v * LANES)
            for row in range(ROWS)
            for v in range(4)
        ]

        def term(k: Code) -> list[tuple[Code, Code]]:
            left, right = ahead(b, a, b.mul(k, a_stride)), ahead(b, d, b.mul(k, c_stride))
            columns = [load_at(b, ahead(b, right, v * LANES)) for v in range(4)]
            return [
                (value, column)
                for row in range(ROWS)
                for value in [broadcast(b, ahead(b, left, row))]
                for column in columns
            ]

        for place, value in zip(places, _sum_products(b, count, [load_at(b, at) for at in places], term), strict=True):
            store_at(b, value, place)

    return _tile(emit, c, c0, c_stride, a, a0, a_stride, d, d0, count)


def _product(vectors: int) -> Callable[..., None]:
    def emit(b: Code, c: Code, c_stride: Code, a: Code, w: Code, count: Code) -> None:
        rows = 2 * ROWS
        sums = _add_row_products(b, [constant(0.0)] * (rows * vectors), rows, vectors, (a, count), w, count)
        for k, value in enumerate(sums):
            start = ahead(b, c, b.mul(c_stride, ir.Constant(INDEX, k // vectors)))
            store_at(b, value, ahead(b, start, k % vectors * LANES))

    return emit


@intrinsic
def product(typingctx, c, c0, c_stride, a, a0, w, w0, count):
    """c[2 ROWS, 2 LANES] = a[2 ROWS, count] w[count, 2 LANES]; a and w packed."""
    return _tile(_product(2), c, c0, c_stride, a, a0, w, w0, count)


@intrinsic
def product_narrow(typingctx, c, c0, c_stride, a, a0, w, w0, count):
    """c[2 ROWS, LANES] = a[2 ROWS, count] w[count, LANES]; a and w packed."""
    return _tile(_product(1), c, c0, c_stride, a, a0, w, w0, count)


@intrinsic
def fetch(typingctx, array, at, size):
    """Ask for ``size`` floats to be brought near the processor; addresses outside the array do no harm."""

    def emit(b: Code, at: Code, size: Code) -> None:
        line = ir.Constant(INDEX, CACHE_LINE)
        with cgutils.for_range_slice(b, ir.Constant(INDEX, 0), size, line) as (k, _):
            prefetch_at(b, ahead(b, at, k), 2)

    return _tile(emit, array, at, size)
