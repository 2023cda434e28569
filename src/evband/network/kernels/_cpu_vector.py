# mypy: disable-error-code="no-untyped-def,attr-defined,no-untyped-call"
"""The innermost tiles of the CPU kernel, written in vector instructions that Numba compiles for the user's processor.

A compiler left alone keeps neither a small product's accumulators in registers nor the gates beside them. So three
tiles are spelled out in LLVM's vector types, and everything around them is ordinary Numba:

- ``cell`` (``cell_kept``, ``cell_one``): gates' sums over inputs and past h, then the LSTM cell, for a few windows and one vector of hidden units;
- ``cell_gradient``: the cell's derivative, for one window and one vector of hidden units;
- ``add_product``, ``product``, ``product_narrow``: C (+)= A B for a few rows of A and a few vectors of B's columns.

All take flat float32 arrays, each followed by the offset where the tile begins. Nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic


def _register_tile() -> tuple[int, int]:
    """(floats in a vector, rows of a tile) such that four vectors of sums a row stay in registers."""
    features = str(config.CPU_FEATURES) if config.CPU_FEATURES else llvm.get_host_cpu_features().flatten()
    if "+avx512f" in features:
        return 16, 4
    return (8, 2) if "+avx2" in features else (4, 2)


LANES, ROWS = _register_tile()
CACHE_LINE = 16  # floats

_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INDEX = ir.IntType(64)

# tanh(x) = x P(x^2) / Q(x^2) on [-8, 8], minimax in relative error (6e-9; 3e-7 after rounding), never above 1.
_TANH_LIMIT = 8.0
_TANH_P = (1.0, 0.134445013, 0.003571602, 2.18947283e-05, 1.52305125e-08)
_TANH_Q = (1.0, 0.467778286, 0.026164458, 0.000341129855, 8.52248473e-07)

Code = Any  # llvmlite ships no types: a builder, or a value it made


def _constant(value: float) -> Code:
    return ir.Constant(_VECTOR, [value] * LANES)


def _call(b: Code, name: str, *values: Code) -> Code:
    signature = ir.FunctionType(_VECTOR, [_VECTOR] * len(values))
    return b.call(cgutils.get_or_insert_function(b.module, signature, f"{name}.v{LANES}f32"), values)


def _fma(b: Code, x: Code, y: Code, z: Code) -> Code:
    return _call(b, "llvm.fmuladd", x, y, z)


def _mul(b: Code, x: Code, y: Code) -> Code:
    return b.fmul(x, y, flags=("fast",))


def _load(b: Code, at: Code) -> Code:
    return b.load(b.bitcast(at, _VECTOR.as_pointer()), align=4)


def _store(b: Code, value: Code, at: Code) -> None:
    b.store(value, b.bitcast(at, _VECTOR.as_pointer()), align=4)


def _stream(b: Code, value: Code, at: Code) -> None:
    """Store past the caches, to a whole vector's boundary: for what is read again only much later."""
    store = b.store(value, b.bitcast(at, _VECTOR.as_pointer()), align=4 * LANES)
    store.set_metadata("nontemporal", b.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))


def _broadcast(b: Code, at: Code) -> Code:
    first = b.insert_element(ir.Constant(_VECTOR, ir.Undefined), b.load(at, align=4), ir.Constant(ir.IntType(32), 0))
    return b.shuffle_vector(
        first, ir.Constant(_VECTOR, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    )


def _ahead(b: Code, at: Code, count: int | Code) -> Code:
    """The address that many floats further on."""
    return b.gep(at, [ir.Constant(_INDEX, count) if isinstance(count, int) else count])


def _tanh(b: Code, x: Code) -> Code:
    x = _call(b, "llvm.minnum", _call(b, "llvm.maxnum", x, _constant(-_TANH_LIMIT)), _constant(_TANH_LIMIT))
    square = _mul(b, x, x)
    p, q = _constant(_TANH_P[-1]), _constant(_TANH_Q[-1])
    for above, below in zip(_TANH_P[-2::-1], _TANH_Q[-2::-1], strict=True):
        p, q = _fma(b, p, square, _constant(above)), _fma(b, q, square, _constant(below))
    return b.fdiv(_mul(b, x, p), q, flags=("fast",))


def _sigmoid_of_twice(b: Code, x: Code) -> Code:
    """sigmoid(2 x) = tanh(x) / 2 + 1 / 2; packed weights carry the half."""
    half = _constant(0.5)
    return _fma(b, _tanh(b, x), half, half)


def _sum_products(
    b: Code, count: Code, sums: list[Code], term: Callable[[Code], list[tuple[Code, Code]]]
) -> list[Code]:
    """A loop over ``count`` terms that adds term(k)'s products to the sums, all held in registers."""
    before = b.block
    loop, after = b.append_basic_block(), b.append_basic_block()
    b.cbranch(b.icmp_signed(">", count, ir.Constant(_INDEX, 0)), loop, after)
    b.position_at_end(loop)
    k = b.phi(_INDEX)
    k.add_incoming(ir.Constant(_INDEX, 0), before)
    phis = [b.phi(_VECTOR) for _ in sums]
    added = [_fma(b, x, y, phi) for (x, y), phi in zip(term(k), phis, strict=True)]
    following = b.add(k, ir.Constant(_INDEX, 1))
    k.add_incoming(following, loop)
    b.cbranch(b.icmp_signed("<", following, count), loop, after)
    b.position_at_end(after)
    results = []
    for start, phi, end in zip(sums, phis, added, strict=True):
        phi.add_incoming(start, before)
        phi.add_incoming(end, loop)
        result = b.phi(_VECTOR)
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
                values.append(argument if array is None else _ahead(b, array, argument))
                array = None
        emit(b, *values)
        return context.get_dummy_value()

    return types.void(*(kind if isinstance(kind, types.Array) else types.intp for kind in kinds)), generate


def _cell(rows: int, kept: bool = False) -> Callable[..., None]:
    def emit(b: Code, w: Code, x: Code, inputs: Code, past: Code, hidden: Code, *state: Code) -> None:
        sums = [_load(b, _ahead(b, w, gate * LANES)) for gate in range(4)] * rows
        w = _ahead(b, w, 4 * LANES)
        sums = _add_row_products(b, sums, rows, 4, (x, inputs), w, inputs)
        w = _ahead(b, w, b.mul(inputs, ir.Constant(_INDEX, 4 * LANES)))
        sums = _add_row_products(b, sums, rows, 4, (past, hidden), w, hidden)
        gates, c_past, c, h = state
        for row in range(rows):
            i, f, g, o = (
                _tanh(b, s) if gate == 2 else _sigmoid_of_twice(b, s)
                for gate, s in enumerate(sums[4 * row : 4 * row + 4])
            )
            at = b.mul(hidden, ir.Constant(_INDEX, row))
            cell = _fma(b, f, _load(b, _ahead(b, c_past, at)), _mul(b, i, g))
            _store(b, cell, _ahead(b, c, at))
            _store(b, _mul(b, o, _tanh(b, cell)), _ahead(b, h, at))
            gate_row = _ahead(b, gates, b.mul(hidden, ir.Constant(_INDEX, 4 * row)))
            for gate, value in enumerate((i, f, g, o)):
                (_stream if kept else _store)(b, value, _ahead(b, gate_row, gate * LANES))

    return emit


def _add_row_products(
    b: Code, sums: list[Code], rows: int, vectors: int, left: tuple[Code, Code], right: Code, count: Code
) -> list[Code]:
    """sums[row, vector] += sum over k of left[row, k] right[k, vector]; left = (address, row stride), right is packed."""
    at, stride = left
    starts = [_ahead(b, at, b.mul(stride, ir.Constant(_INDEX, row))) for row in range(rows)]

    def term(k: Code) -> list[tuple[Code, Code]]:
        line = _ahead(b, right, b.mul(k, ir.Constant(_INDEX, vectors * LANES)))
        columns = [_load(b, _ahead(b, line, v * LANES)) for v in range(vectors)]
        return [
            (value, column) for start in starts for value in [_broadcast(b, _ahead(b, start, k))] for column in columns
        ]

    return _sum_products(b, count, sums, term)


@intrinsic
def cell(typingctx, w, w0, x, x0, inputs, past, past0, hidden, gates, gates0, c_past, c_past0, c, c0, h, h0):
    """The LSTM cell for ROWS windows and LANES hidden units.

    w: [1 + inputs + hidden, 4, LANES], bias first, gates i, f, o halved; x: [ROWS, inputs]; past: [ROWS, hidden]. Out
    go gates [ROWS, 4 hidden] (after their functions), c and h [ROWS, hidden].
    """
    return _tile(_cell(ROWS), w, w0, x, x0, inputs, past, past0, hidden, gates, gates0, c_past, c_past0, c, c0, h, h0)


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
    one = _constant(1.0)
    i, f, g, o = (_load(b, _ahead(b, gates, gate * LANES)) for gate in range(4))
    curved = _tanh(b, _load(b, c))
    d_h = b.fadd(_load(b, dy), _load(b, dh))
    d_o = _mul(b, d_h, curved)
    d_c = _fma(b, _mul(b, d_h, o), b.fsub(one, _mul(b, curved, curved), flags=("fast",)), _load(b, dc))
    _store(b, _mul(b, d_c, f), dc)
    slope = {gate: _mul(b, s, b.fsub(one, s)) for gate, s in ((0, i), (1, f), (3, o))}
    slope[2] = b.fsub(one, _mul(b, g, g), flags=("fast",))
    outer = (_mul(b, d_c, g), _mul(b, d_c, _load(b, c_past)), _mul(b, d_c, i), d_o)
    for gate in range(4):
        value = _mul(b, outer[gate], slope[gate])
        _store(b, value, _ahead(b, d, gate * LANES))
        total = _ahead(b, sums, gate * LANES)
        _store(b, b.fadd(_load(b, total), value), total)


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
            _ahead(b, _ahead(b, c, b.mul(c_stride, ir.Constant(_INDEX, row))), v * LANES)
            for row in range(ROWS)
            for v in range(4)
        ]

        def term(k: Code) -> list[tuple[Code, Code]]:
            left, right = _ahead(b, a, b.mul(k, a_stride)), _ahead(b, d, b.mul(k, c_stride))
            columns = [_load(b, _ahead(b, right, v * LANES)) for v in range(4)]
            return [
                (value, column)
                for row in range(ROWS)
                for value in [_broadcast(b, _ahead(b, left, row))]
                for column in columns
            ]

        for place, value in zip(places, _sum_products(b, count, [_load(b, at) for at in places], term), strict=True):
            _store(b, value, place)

    return _tile(emit, c, c0, c_stride, a, a0, a_stride, d, d0, count)


def _product(vectors: int) -> Callable[..., None]:
    def emit(b: Code, c: Code, c_stride: Code, a: Code, w: Code, count: Code) -> None:
        rows = 2 * ROWS
        sums = _add_row_products(b, [_constant(0.0)] * (rows * vectors), rows, vectors, (a, count), w, count)
        for k, value in enumerate(sums):
            start = _ahead(b, c, b.mul(c_stride, ir.Constant(_INDEX, k // vectors)))
            _store(b, value, _ahead(b, start, k % vectors * LANES))

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
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        signature = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        prefetch = cgutils.get_or_insert_function(b.module, signature, "llvm.prefetch.p0")
        line = ir.Constant(_INDEX, CACHE_LINE)
        with cgutils.for_range_slice(b, ir.Constant(_INDEX, 0), size, line) as (k, _):
            b.call(prefetch, [b.bitcast(_ahead(b, at, k), byte), *(ir.Constant(flag, v) for v in (0, 2, 1))])

    return _tile(emit, array, at, size)
