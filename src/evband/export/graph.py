"""A small writer of ONNX graphs: nodes in the order they are written, and values that add and multiply like numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from evband.errors import require

_OPSET, _IR_VERSION = 18, 9  # read by ONNX Runtime since 1.14


class Graph:
    """Called with an operator and its inputs; arrays and numbers among them become constants."""

    def __init__(self) -> None:
        require("onnx", "export")
        import onnx

        self._onnx = onnx
        self._nodes: list[Any] = []
        self._written = 0  # nodes, those inside loops too
        self._constants: dict[tuple[bytes, str, tuple[int, ...]], Any] = {}

    def __call__(self, kind: str, *inputs: Any, n: int = 1, **attributes: Any) -> Any:
        names = [given if isinstance(given, str) else self._constant(given) for given in inputs]
        self._written += 1
        outputs = [f"{kind.lower()}_{self._written}_{j}" for j in range(n)]
        self._nodes.append(self._onnx.helper.make_node(kind, names, outputs, **attributes))
        return outputs[0] if n == 1 else outputs

    def loop(
        self,
        most: int,
        begin: list[Value],
        shape: list[int | str],  # of each of them
        step: Callable[[list[Value]], tuple[str, list[Value]]],
    ) -> list[Value]:
        """``step`` repeated on values until the condition that it gives first is false, at most so many times."""
        helper, kinds = self._onnx.helper, self._onnx.TensorProto
        outer, self._nodes = self._nodes, []
        mark = f"loop_{self._written}"
        names = [f"{mark}_in_{j}" for j in range(len(begin))]
        more, after = step([Value(self, name) for name in names])
        scalars = [(f"{mark}_count", kinds.INT64), (f"{mark}_go", kinds.BOOL)]
        body = helper.make_graph(
            self._nodes,
            mark,
            [helper.make_tensor_value_info(name, kind, []) for name, kind in scalars]
            + [helper.make_tensor_value_info(name, kinds.FLOAT, shape) for name in names],
            [helper.make_tensor_value_info(more, kinds.BOOL, [])]
            + [helper.make_tensor_value_info(one.name, kinds.FLOAT, shape) for one in after],
        )
        self._nodes = outer
        given = (np.array(most), np.array(True), *(one.name for one in begin))
        found = self("Loop", *given, n=len(begin), body=body)
        return [Value(self, name) for name in ([found] if len(begin) == 1 else found)]

    def _constant(self, value: Any) -> str:
        """Its name; equal constants are kept once."""
        array = np.asarray(value)
        kind = {"i": np.int64, "b": np.bool_}.get(array.dtype.kind, np.float32)
        array = np.ascontiguousarray(array, kind).reshape(array.shape)
        key = (array.tobytes(), array.dtype.str, array.shape)
        if key not in self._constants:
            self._constants[key] = self._onnx.numpy_helper.from_array(array, f"constant_{len(self._constants)}")
        return str(self._constants[key].name)

    def any_over(self, value: Value, limit: Value) -> str:
        """A single truth: whether any number of ``value`` is over ``limit``."""
        over = self("Cast", self("Greater", value.name, limit.name), to=self._onnx.TensorProto.FLOAT)
        most = self("ReduceMax", over, keepdims=0)
        return str(self("Cast", most, to=self._onnx.TensorProto.BOOL))

    def integers(self, value: str) -> str:
        """The value as int64, towards zero."""
        return str(self("Cast", value, to=self._onnx.TensorProto.INT64))

    def model(self, inputs: Mapping[str, list[int | str]], outputs: Mapping[str, str], facts: Mapping[str, Any]) -> Any:
        """The checked ONNX model; ``facts`` are stored in it as JSON."""
        helper, kind = self._onnx.helper, self._onnx.TensorProto.FLOAT
        shapes = {name: ["vehicles"] for name in ("lower_kw", "upper_kw")}  # no shape is inferred through a loop
        for name, source in outputs.items():
            self._nodes.append(helper.make_node("Identity", [source], [name]))
        graph = helper.make_graph(
            self._nodes,
            "evband",
            [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, kind, shapes.get(name)) for name in outputs],
            list(self._constants.values()),
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="evband")
        helper.set_model_props(model, {name: json.dumps(value) for name, value in facts.items()})
        model = self._onnx.shape_inference.infer_shapes(model)
        self._onnx.checker.check_model(model)
        return model


class Value:
    """A float tensor of a graph. Formulas that work on floats and arrays alike work on it, too, and write nodes."""

    __array_ufunc__ = None  # a NumPy number on the left leaves the operation to this class

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def _with(self, kind: str, *operands: Any) -> Value:
        names = [one.name if isinstance(one, Value) else np.asarray(one, np.float32) for one in operands]
        return Value(self.graph, self.graph(kind, *names))

    def __add__(self, other: Any) -> Value:
        return self._with("Add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self._with("Add", other, self)

    def __sub__(self, other: Any) -> Value:
        return self._with("Sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self._with("Sub", other, self)

    def __mul__(self, other: Any) -> Value:
        return self._with("Mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self._with("Mul", other, self)

    def __truediv__(self, other: Any) -> Value:
        return self._with("Div", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._with("Div", other, self)

    def __neg__(self) -> Value:
        return self._with("Neg", self)

    def __abs__(self) -> Value:
        return self._with("Abs", self)

    def exp(self) -> Value:
        return self._with("Exp", self)

    def or_else(self, default: float) -> Value:
        """Itself, and ``default`` where it is not a number."""
        unknown = self.graph("IsNaN", self.name)
        return Value(self.graph, self.graph("Where", unknown, np.float32(default), self.name))

    def within(self, low: Any, high: Any) -> Value:
        return self._with("Min", self._with("Max", self, low), high)
