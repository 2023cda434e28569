"""The ensemble as exporters write it: one ONNX LSTM node for each layer of each member. A peer for the tick benchmark."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

ORDER = [0, 3, 1, 2]  # ONNX has the gates as i, o, f, g; PyTorch as i, f, g, o


def lstm_nodes(params: dict[str, np.ndarray], layers: int) -> Any:
    """Inputs x, r and states h, c [members layers, vehicles, hidden]; outputs mean and both variances, standardised."""
    members, _, hidden = params["head_w"].shape
    nodes: list[Any] = []
    constants: list[Any] = []

    def constant(array: np.ndarray) -> str:
        constants.append(numpy_helper.from_array(np.ascontiguousarray(array), f"constant_{len(constants)}"))
        return str(constants[-1].name)

    def node(kind: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> list[str]:
        names = [f"{kind}_{len(nodes)}_{j}" for j in range(outputs)]
        nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names

    def gates(weights: np.ndarray) -> np.ndarray:
        return weights.reshape(4, hidden, -1)[ORDER].reshape(4 * hidden, -1)

    time, direction = constant(np.array([0])), constant(np.array([1]))
    states = [node("Split", [name], members * layers, axis=0, num_outputs=members * layers) for name in ("h", "c")]
    ends: tuple[list[str], list[str]] = ([], [])
    locations, scales = [], []
    for m in range(members):
        below = node("Unsqueeze", ["x", time])[0]
        for k in range(layers):
            bias = np.concatenate([gates(params[f"bias.{k}"][m]).ravel(), np.zeros(4 * hidden, np.float32)])[None]
            weights = [constant(gates(params[f"{name}.{k}"][m])[None]) for name in ("w_ih", "w_hh")]
            past = [state[m * layers + k] for state in states]
            y, h, c = node("LSTM", [below, *weights, constant(bias), "", *past], 3, hidden_size=hidden)
            ends[0].append(h)
            ends[1].append(c)
            below = node("Squeeze", [y, direction])[0]
        head = [node("Squeeze", [below, time])[0], constant(params["head_w"][m].T), constant(params["head_b"][m])]
        mu, s = node("Split", node("Gemm", head), 2, axis=1, num_outputs=2)
        locations += node("Add", [mu, *node("MatMul", ["r", constant(params["road_w"][m][:, None])])])
        scales += node("Softplus", [s])
    mu, s = (node("Concat", each, axis=1)[0] for each in (locations, scales))
    mean = node("ReduceMean", [mu, direction])[0]
    apart = node("Sub", [mu, mean])[0]
    outputs = [mean, *(node("ReduceMean", [*node("Mul", [a, a]), direction])[0] for a in (s, apart))]
    outputs += [node("Concat", each, axis=0)[0] for each in ends]
    shapes = {"x": ["vehicles", params["w_ih.0"].shape[2]], "r": ["vehicles", params["road_w"].shape[1]]}
    shapes |= {name: [members * layers, "vehicles", hidden] for name in ("h", "c")}
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "nodes",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()],
        [helper.make_tensor_value_info(name, kind, None) for name in outputs],
        constants,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
