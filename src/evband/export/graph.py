"""A small writer of ONNX graphs: nodes in the order they are written, and values that add and multiply like numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

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
        """``step`` repeated on values until the condition that it gives first is false, at most ``most`` times."""
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
        most = self("ReduceMax", self.floats(self("Greater", value.name, limit.name)), keepdims=0)
        return self.truths(most)

    def floats(self, truths: str) -> str:
        """1 where true, 0 where not."""
        return str(self("Cast", truths, to=self._onnx.TensorProto.FLOAT))

    def truths(self, value: str) -> str:
        """Whether each number is other than 0."""
        return str(self("Cast", value, to=self._onnx.TensorProto.BOOL))

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


OPERATORS = {
    np.add: "Add", np.subtract: "Sub", np.multiply: "Mul", np.true_divide: "Div", np.negative: "Neg",
    np.absolute: "Abs", np.exp: "Exp",
}  # fmt: skip


class Value(NDArrayOperatorsMixin):
    """A float tensor of a graph. Formulas that work on floats and arrays alike work on it, too, and write nodes."""

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def __array_ufunc__(self, operator: np.ufunc, method: str, *operands: Any) -> Value:
        if operator is np.log1p:
            return self._with("Log", 1.0 + self)
        if operator is np.equal:
            return Value(self.graph, self.graph.floats(self._with("Equal", *operands).name))
        return self._with(OPERATORS[operator], *operands)

    def __array_function__(self, function: Any, types: Any, operands: tuple[Any, ...], options: Any) -> Value:
        if function is not np.where:
            raise NotImplementedError(f"{function} in a graph")
        truth, *sides = operands
        return self._with("Where", Value(self.graph, self.graph.truths(truth.name)), *sides)

    def _with(self, kind: str, *operands: Any) -> Value:
        names = [one.name if isinstance(one, Value) else np.asarray(one, np.float32) for one in operands]
        return Value(self.graph, self.graph(kind, *names))

    def or_else(self, default: float) -> Value:
        """Itself, and ``default`` where it is not a number."""
        unknown = Value(self.graph, self.graph("IsNaN", self.name))
        return self._with("Where", unknown, default, self)

    def within(self, low: Any, high: Any) -> Value:
        return self._with("Min", self._with("Max", self, low), high)
