"""A vector of float32 lanes inside Numba: the few operations that the tick engine's kernels are written in.

Numba has no vector type, and its automatic vectoriser will not keep a tile of accumulators in registers. Here a vector
is an LLVM vector value, so a kernel says which numbers share a register and LLVM only has to pick the instructions of
the user's CPU. Arrays are addressed by a flat element index from their data pointer, without bounds checks.
"""

# mypy: disable-error-code="no-untyped-call, untyped-decorator, import-untyped"
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import extending, types
from numba.core import cgutils as code_generation
from numba.extending import models, overload, register_model

# Numba annotates these for its own use; a kernel calls an intrinsic without its typing argument
intrinsic: Any = extending.intrinsic
cgutils: Any = code_generation

WIDE = bool(binding.get_host_cpu_features().get("avx512f", False))
LANES = 16 if WIDE else 8  # float32 in one vector
TILE = 6 if WIDE else 2  # vehicles whose four gates fit the register file together: 4 TILE + 5 <= 32 registers
_FLOAT = ir.FloatType()
_VECTOR = ir.VectorType(_FLOAT, LANES)
_INDEX = ir.IntType(64)


class Lanes(types.Type):
    """The Numba type of a vector of LANES float32."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes{LANES}")


lanes = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)


def _pointer(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [index])


def _splat(builder: Any, scalar: Any) -> Any:
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), mask)


def _load(builder: Any, kind: Any, pointer: Any) -> Any:
    """LANES weights as float32; an array of uint16 holds float16 bits and is widened on the way."""
    if kind.dtype == types.float32:
        return builder.load(builder.bitcast(pointer, _VECTOR.as_pointer()), align=4)
    half = ir.VectorType(ir.HalfType(), LANES)
    return builder.fpext(builder.load(builder.bitcast(pointer, half.as_pointer()), align=2), _VECTOR)


def _call(builder: Any, name: str, operands: list[Any]) -> Any:
    kind = ir.FunctionType(_VECTOR, [_VECTOR] * len(operands))
    function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.{name}.v{LANES}f32")
    return builder.call(function, operands)


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """array[index : index + LANES] as a vector."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _load(builder, signature.args[0], _pointer(context, builder, signature.args[0], *values))

    return lanes(array, types.int64), emit


@intrinsic
def store(typing: Any, array: Any, index: Any, vector: Any) -> Any:
    """array[index : index + LANES] = vector."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], values[0], values[1])
        builder.store(values[2], builder.bitcast(pointer, _VECTOR.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), emit


@intrinsic
def splat(typing: Any, scalar: Any) -> Any:
    """The same number in every lane."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return _splat(builder, values[0])

    return lanes(types.float32), emit


@intrinsic
def total(typing: Any, vector: Any) -> Any:
    """The sum over lanes."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(_FLOAT, [_FLOAT, _VECTOR])
        function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f32")
        return builder.call(function, [ir.Constant(_FLOAT, 0.0), values[0]], fastmath=("reassoc",))

    return types.float32(vector), emit


def _elementwise(arity: int, emit_one: Callable[[Any, list[Any]], Any]) -> Any:
    """An intrinsic of ``arity`` vectors; made for each arity since Numba reads the signature."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return emit_one(builder, list(values))

    def two(typing: Any, a: Any, b: Any) -> Any:
        return lanes(lanes, lanes), emit

    def three(typing: Any, a: Any, b: Any, c: Any) -> Any:
        return lanes(lanes, lanes, lanes), emit

    return intrinsic(two if arity == 2 else three)


fma = _elementwise(3, lambda builder, operands: _call(builder, "fma", operands))
minimum = _elementwise(2, lambda builder, operands: _call(builder, "minnum", operands))
maximum = _elementwise(2, lambda builder, operands: _call(builder, "maxnum", operands))


def _operator(symbol: Any, instruction: str) -> None:
    """Let kernels write a + b on vectors."""
    function = _elementwise(2, lambda builder, operands: getattr(builder, instruction)(*operands))

    def typed(a: Any, b: Any) -> Any:
        return (lambda a, b: function(a, b)) if a == lanes and b == lanes else None

    overload(symbol, strict=False)(typed)


_operator(operator.add, "fadd")
_operator(operator.sub, "fsub")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


@intrinsic
def prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of array[index]; a hint, without effect on results."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0i8")
        pointer = builder.bitcast(_pointer(context, builder, signature.args[0], *values), byte)
        builder.call(function, [pointer, flag(0), flag(3), flag(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


@intrinsic(prefer_literal=True)
def gate_sums(
    typing: Any, count: Any, sums: Any, bias: Any, b: Any, weights: Any, w: Any, x: Any, x_at: Any, x_step: Any,
    inputs: Any, h: Any, h_at: Any, h_step: Any, hidden: Any,
) -> Any:  # fmt: skip
    """The four gate sums of one block of LANES hidden units for ``count`` (a literal) vehicles, into sums[v, gate, lane].

        sums[v, gate] = bias[b + gate] + sum_k weights[w + 4 k + gate] h[v, k] + sum_k weights[... + 4 k + gate] x[v, k]

    indices of bias and weights counted in vectors; row v of x starts at x_at + v x_step, of h at h_at + v h_step. Each
    weight vector is loaded once for all vehicles, each input once for all gates, and partial sums stay in registers.
    """
    n = count.literal_value

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kinds = signature.args
        gate = [_INDEX(g * LANES) for g in range(4)]
        b_base = _pointer(context, builder, kinds[2], values[2], values[3])
        start = [_load(builder, kinds[2], builder.gep(b_base, [g])) for g in gate]
        held = [cgutils.alloca_once_value(builder, start[j % 4]) for j in range(4 * n)]
        w_base = _pointer(context, builder, kinds[4], values[4], values[5])
        for at in (
            10,
            6,
        ):  # the array, its offset, step and length: first the past hidden state, which does not have to
            # wait for the layer below, then the inputs
            base = _pointer(context, builder, kinds[at], values[at], values[at + 1])
            rows = [builder.gep(base, [builder.mul(values[at + 2], _INDEX(v))]) for v in range(n)]
            length = values[at + 3]
            with cgutils.for_range(builder, length, intp=_INDEX) as loop:
                here = builder.gep(w_base, [builder.mul(loop.index, _INDEX(4 * LANES))])
                four = [_load(builder, kinds[4], builder.gep(here, [g])) for g in gate]
                for v in range(n):
                    value = _splat(builder, builder.load(builder.gep(rows[v], [loop.index])))
                    for g in range(4):
                        spot = held[4 * v + g]
                        builder.store(_call(builder, "fma", [value, four[g], builder.load(spot)]), spot)
            w_base = builder.gep(w_base, [builder.mul(length, _INDEX(4 * LANES))])
        out = _pointer(context, builder, kinds[1], values[1], _INDEX(0))
        for j, spot in enumerate(held):
            pointer = builder.bitcast(builder.gep(out, [_INDEX(j * LANES)]), _VECTOR.as_pointer())
            builder.store(builder.load(spot), pointer, align=4)
        return context.get_dummy_value()

    i = types.int64
    return types.void(count, sums, bias, i, weights, i, x, i, i, i, h, i, i, i), emit
