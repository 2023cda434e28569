# mypy: disable-error-code="no-untyped-def,attr-defined,no-untyped-call,untyped-decorator,import-untyped"
"""Vectors of float32 inside Numba: what training's blocks and the tick engine are written in.

Numba has no vector type, and a compiler left alone keeps neither a small product's accumulators in registers nor the
gates beside them. Here a vector is an LLVM vector value: a kernel says which numbers share a register, and LLVM only
has to pick the instructions of the user's processor. Two levels:

- functions of a builder ``b`` and addresses or values emit code, for blocks spelled out in LLVM (``_cpu_blocks``);
- ``load``, ``store``, ``splat``, ``fma``, ``total``, ``tanh_ratio``, ``prefetch`` and + - * / are called in Numba.

Arrays are flat and addressed by element from their data pointer. Nothing is checked.
"""

from __future__ import annotations

import operator
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import config, extending, types
from numba.core import cgutils
from numba.extending import models, overload, register_model

intrinsic: Any = extending.intrinsic  # Numba annotates it for its own use


def _register_tile() -> tuple[int, int]:
    """(floats in a vector, rows of a tile) such that four vectors of sums per row stay in registers."""
    features = str(config.CPU_FEATURES) if config.CPU_FEATURES else llvm.get_host_cpu_features().flatten()
    if "+avx512f" in features:
        return 16, 4
    return (8, 2) if "+avx2" in features else (4, 2)


LANES, ROWS = _register_tile()
CACHE_LINE = 16  # floats

FLOAT = ir.FloatType()
VECTOR = ir.VectorType(FLOAT, LANES)
INDEX = ir.IntType(64)

# tanh(x) = x P(x^2) / Q(x^2) on [-8, 8], minimax in relative error (6e-9; 3e-7 after rounding), never above 1.
_TANH_LIMIT = 8.0
_TANH_P = (1.0, 0.134445013, 0.003571602, 2.18947283e-05, 1.52305125e-08)
_TANH_Q = (1.0, 0.467778286, 0.026164458, 0.000341129855, 8.52248473e-07)

Code = Any  # llvmlite ships no types: a builder, or a value it made


def constant(value: float) -> Code:
    return ir.Constant(VECTOR, [value] * LANES)


def call(b: Code, name: str, *values: Code) -> Code:
    signature = ir.FunctionType(VECTOR, [VECTOR] * len(values))
    return b.call(cgutils.get_or_insert_function(b.module, signature, f"{name}.v{LANES}f32"), values)


def fused(b: Code, x: Code, y: Code, z: Code) -> Code:
    return call(b, "llvm.fmuladd", x, y, z)


def multiply(b: Code, x: Code, y: Code) -> Code:
    return b.fmul(x, y, flags=("fast",))


def load_at(b: Code, at: Code, half: bool = False) -> Code:
    """LANES numbers; ``half``: float16, widened on the way."""
    if half:
        narrow = ir.VectorType(ir.HalfType(), LANES)
        return b.fpext(b.load(b.bitcast(at, narrow.as_pointer()), align=2), VECTOR)
    return b.load(b.bitcast(at, VECTOR.as_pointer()), align=4)


def store_at(b: Code, value: Code, at: Code) -> None:
    b.store(value, b.bitcast(at, VECTOR.as_pointer()), align=4)


def stream_at(b: Code, value: Code, at: Code) -> None:
    """Store past the caches, to a whole vector's boundary: for what is read again only much later."""
    store = b.store(value, b.bitcast(at, VECTOR.as_pointer()), align=4 * LANES)
    store.set_metadata("nontemporal", b.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))


def broadcast(b: Code, at: Code) -> Code:
    """The number at an address, in every lane."""
    return everywhere(b, b.load(at, align=4))


def everywhere(b: Code, number: Code) -> Code:
    first = b.insert_element(ir.Constant(VECTOR, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return b.shuffle_vector(
        first, ir.Constant(VECTOR, ir.Undefined), ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    )


def ahead(b: Code, at: Code, count: int | Code) -> Code:
    """The address that many floats further on."""
    return b.gep(at, [ir.Constant(INDEX, count) if isinstance(count, int) else count])


def tanh_ratio_of(b: Code, x: Code) -> tuple[Code, Code]:
    """Numerator and denominator of tanh(x)."""
    x = call(b, "llvm.minnum", call(b, "llvm.maxnum", x, constant(-_TANH_LIMIT)), constant(_TANH_LIMIT))
    square = multiply(b, x, x)
    p, q = constant(_TANH_P[-1]), constant(_TANH_Q[-1])
    for above, below in zip(_TANH_P[-2::-1], _TANH_Q[-2::-1], strict=True):
        p, q = fused(b, p, square, constant(above)), fused(b, q, square, constant(below))
    return multiply(b, x, p), q


def tanh_of(b: Code, x: Code) -> Code:
    return b.fdiv(*tanh_ratio_of(b, x), flags=("fast",))


def sigmoid_of_twice(b: Code, x: Code) -> Code:
    """sigmoid(2 x) = tanh(x) / 2 + 1 / 2; packed weights carry the half."""
    half = constant(0.5)
    return fused(b, tanh_of(b, x), half, half)


def address(context: Code, b: Code, kind: Code, array: Code, index: Code) -> Code:
    return b.gep(context.make_array(kind)(context, b, array).data, [index])


class Lanes(types.Type):
    """The Numba type of a vector of LANES float32."""

    def __init__(self) -> None:
        super().__init__(name=f"Lanes{LANES}")


lanes = Lanes()


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, VECTOR)


@intrinsic
def load(typingctx, array, index):
    """array[index : index + LANES] as a vector."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:
        return load_at(b, address(context, b, signature.args[0], *values))

    return lanes(array, types.int64), emit


@intrinsic
def store(typingctx, array, index, vector):
    """array[index : index + LANES] = vector."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:
        store_at(b, values[2], address(context, b, signature.args[0], values[0], values[1]))
        return context.get_dummy_value()

    return types.void(array, types.int64, vector), emit


@intrinsic
def splat(typingctx, scalar):
    """The same number in every lane."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:
        return everywhere(b, values[0])

    return lanes(types.float32), emit


@intrinsic
def total(typingctx, vector):
    """The sum over lanes."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:
        kind = ir.FunctionType(FLOAT, [FLOAT, VECTOR])
        function = cgutils.get_or_insert_function(b.module, kind, f"llvm.vector.reduce.fadd.v{LANES}f32")
        return b.call(function, [ir.Constant(FLOAT, 0.0), values[0]], fastmath=("reassoc",))

    return types.float32(vector), emit


@intrinsic
def fma(typingctx, x, y, z):
    """x y + z."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:
        return fused(b, *values)

    return lanes(lanes, lanes, lanes), emit


@intrinsic
def tanh_ratio(typingctx, x):
    """Numerator and denominator of tanh(x), undivided, so that gates can share divisions."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:
        return context.make_tuple(b, signature.return_type, tanh_ratio_of(b, values[0]))

    return types.UniTuple(lanes, 2)(lanes), emit


def _operator(symbol: Any, instruction: str) -> None:
    """Let kernels write a + b on vectors."""

    @intrinsic
    def function(typingctx, x, y):
        def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:
            return getattr(b, instruction)(*values)

        return lanes(lanes, lanes), emit

    def typed(a: Any, b: Any) -> Any:
        return (lambda a, b: function(a, b)) if a == lanes and b == lanes else None

    overload(symbol, strict=False)(typed)


_operator(operator.add, "fadd")
_operator(operator.mul, "fmul")
_operator(operator.truediv, "fdiv")


def prefetch_at(b: Code, at: Code, locality: int) -> None:
    """Ask for the cache line of an address; a hint, without effect on results."""
    byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
    signature = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
    function = cgutils.get_or_insert_function(b.module, signature, "llvm.prefetch.p0")
    b.call(function, [b.bitcast(at, byte), flag(0), flag(locality), flag(1)])


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for the cache line of array[index]."""

    def emit(context: Any, b: Any, signature: Any, values: Any) -> Any:
        prefetch_at(b, address(context, b, signature.args[0], *values), 3)
        return context.get_dummy_value()

    return types.void(array, types.int64), emit
