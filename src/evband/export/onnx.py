"""One ONNX graph of the whole ensemble, one tick per run: for cars and servers without Python.

Inputs: ``x [vehicles, features]`` and ``r [vehicles, road terms]``, scaled as the metadata says; ``h`` and ``c``
[layers, members, vehicles, hidden], zeros at the start of a drive. Outputs: ``mean_kw``, ``aleatoric_kw`` and
``epistemic_kw`` [vehicles] (standard deviations), the members (``location_kw`` and ``scale_kw`` [members, vehicles], or
``quantiles_kw`` [vehicles, levels]), and ``h_next``, ``c_next`` to feed back. All after the calibration's stretch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evband.errors import require
from evband.features import HELD
from evband.features.road_load import FADE_S
from evband.files import whole_file
from evband.network.architecture import QUANTILE_LEVELS, SCALE_FLOOR
from evband.network.tick.engine import degrees_of_freedom
from evband.network.tick.from_model import network_settings, speaking_params
from evband.network.tick.packing import Params, Sizes

if TYPE_CHECKING:
    from evband.model import PowerModel

_OPSET, _IR_VERSION = 18, 9  # read by ONNX Runtime since 1.14
_Z95 = 1.6448536269514722


def export_onnx(path: str | Path, graph: Any) -> None:
    """Write what ``ensemble_graph`` made, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(graph.SerializeToString())


def ensemble_graph(
    params: Params,
    *,
    head: str = "t",
    y_mean: float = 0.0,
    y_std: float = 1.0,
    nu_min: float = 3.0,
    nu: float | None = None,  # fixed degrees of freedom; None = learned
    levels: ArrayLike = QUANTILE_LEVELS,
    stretch: float = 1.0,
    standing: tuple[int, float, float] | None = None,  # column of the speed, value under which it stands, stretch
    metadata: Mapping[str, Any] | None = None,  # stored as JSON beside the weights
) -> Any:
    """The ONNX model of an ensemble; arguments as those of ``evband.network.tick.Engine``."""
    sizes = Sizes.of(params)
    graph = _Graph()
    h, h_next, c_next = _lstm(graph, params, sizes)
    raw = graph(
        "Add", graph("MatMul", h, _t(params["head_w"])), params["head_b"][:, None]
    )  # [members, vehicles, outputs]
    if sizes.road:
        path = graph("MatMul", graph("Unsqueeze", "r", [0]), params["road_w"][:, :, None])  # [members, vehicles, 1]
    else:
        path = np.zeros((1, 1, 1), np.float32)
    unit = _unit(graph, float(y_std), stretch, standing)
    target = (float(y_mean), float(y_std), unit)
    facts: dict[str, Any] = {"head": head, "stretch": stretch, "y_mean": y_mean, "y_std": y_std}
    if standing:
        facts["standing"] = {"input": standing[0], "under": standing[1], "stretch": standing[2]}
    if head == "quantile":
        outputs = _quantile_head(graph, raw, path, np.asarray(levels, np.float64), target)
        facts["levels"] = np.asarray(levels, np.float64).tolist()
    else:
        degrees = degrees_of_freedom(params, head, nu_min, nu, sizes.members)
        outputs = _mixture_head(graph, raw, path, degrees, target)
        facts["nu"] = degrees.tolist() if head == "t" else None
    outputs |= {"h_next": h_next, "c_next": c_next}
    return graph.model(_inputs(sizes), outputs, {**facts, **(metadata or {})})


def model_graph(model: PowerModel) -> Any:
    """The ONNX model of a fitted model; its metadata name the inputs in order, with shift and scale of each."""
    features = model.feature_map_
    metadata = {
        "hz": features.hz,
        "fade_s": FADE_S,
        "weather_limits": {c: features.weather_limits(i) for i, c in enumerate(features.channels) if c in HELD},
        "input_names": list(features.input_names),
        "input_shift": np.asarray(features.x_shift).tolist(),
        "input_scale": np.asarray(features.x_scale).tolist(),
        "road_names": list(features.road_names) if model.architecture_.road else [],
        "road_shift": np.asarray(features.r_shift).tolist() if model.architecture_.road else [],
        "road_scale": np.asarray(features.r_scale).tolist() if model.architecture_.road else [],
        "road_limits": np.stack([features.r_low, features.r_high], -1).tolist() if model.architecture_.road else [],
    }
    return ensemble_graph(speaking_params(model), **network_settings(model), metadata=metadata)


def _inputs(s: Sizes) -> dict[str, list[int | str]]:
    state: list[int | str] = [s.layers, s.members, "vehicles", s.hidden]
    road: dict[str, list[int | str]] = {"r": ["vehicles", s.road]} if s.road else {}
    return {"x": ["vehicles", s.features], **road, "h": state, "c": state}


def _lstm(graph: _Graph, params: Params, s: Sizes) -> tuple[str, str, str]:
    """All layers, members as the batch of each product: last hidden state, and both states stacked over layers."""
    below, hs, cs = graph("Unsqueeze", "x", [0]), [], []
    for k in range(s.layers):
        past, cell = (graph("Gather", state, np.array(k, np.int64), axis=0) for state in ("h", "c"))
        drive = graph("MatMul", below, _t(params[f"w_ih.{k}"]))
        sums = graph("Add", graph("MatMul", past, _t(params[f"w_hh.{k}"])), drive)
        i, f, g, o = graph("Split", graph("Add", sums, params[f"bias.{k}"][:, None]), n=4, axis=-1, num_outputs=4)
        kept = graph("Mul", graph("Sigmoid", f), cell)
        cell = graph("Add", kept, graph("Mul", graph("Sigmoid", i), graph("Tanh", g)))
        below = graph("Mul", graph("Sigmoid", o), graph("Tanh", cell))
        hs.append(graph("Unsqueeze", below, [0]))
        cs.append(graph("Unsqueeze", cell, [0]))
    return below, graph("Concat", *hs, axis=0), graph("Concat", *cs, axis=0)


def _unit(graph: _Graph, y_std: float, stretch: float, standing: tuple[int, float, float] | None) -> str:
    """[vehicles, 1]: kW that a stretched distribution is wide where the network's is 1."""
    column, limit, at_rest = standing or (0, -np.inf, stretch)
    speed = graph("Gather", "x", np.array([column], np.int64), axis=1)
    stands = graph("Less", speed, np.float32(limit))
    return str(graph("Where", stands, np.float32(y_std * at_rest), np.float32(y_std * stretch)))


def _mixture_head(
    graph: _Graph, raw: str, path: str | NDArray, nu: NDArray, target: tuple[float, float, str]
) -> dict[str, str]:
    """Mean of mu; AU = mean of s^2 nu/(nu-2); EU = variance of mu; in kW, stretched about the mean."""
    y_mean, y_std, wide = target
    unit = graph("Squeeze", wide, [-1])
    mu_raw, s_raw = graph("Split", raw, n=2, axis=-1, num_outputs=2)
    mu = graph("Squeeze", graph("Add", mu_raw, path), [-1])  # [members, vehicles]
    s = graph("Squeeze", graph("Add", graph("Softplus", s_raw), np.float32(SCALE_FLOOR)), [-1])
    mean = graph("ReduceMean", mu, [0], keepdims=1)
    apart = graph("Sub", mu, mean)
    inflation = np.where(np.isinf(nu), 1.0, 1.0 / (1.0 - 2.0 / nu))[:, None]
    noise = graph("ReduceMean", graph("Mul", graph("Mul", s, s), inflation), [0], keepdims=0)
    spread = graph("ReduceMean", graph("Mul", apart, apart), [0], keepdims=0)
    centre = graph("Add", graph("Mul", mean, y_std), y_mean)
    return {
        "mean_kw": graph("Squeeze", centre, [0]),
        "aleatoric_kw": graph("Mul", graph("Sqrt", noise), unit),
        "epistemic_kw": graph("Mul", graph("Sqrt", spread), unit),
        "location_kw": graph("Add", graph("Mul", apart, unit), centre),
        "scale_kw": graph("Mul", s, unit),
    }


def _quantile_head(
    graph: _Graph, raw: str, path: str | NDArray, levels: NDArray, target: tuple[float, float, str]
) -> dict[str, str]:
    """Each member sorted, then averaged; the mean by the quantile function with exponential tails, as QuantileSet."""
    y_mean, y_std, wide = target
    unit = graph("Squeeze", wide, [-1])
    raw = graph("Add", raw, path)
    q = graph("TopK", raw, np.array([len(levels)]), n=2, axis=-1, largest=0, sorted=1)[0]  # [members, vehicles, levels]
    average = graph("ReduceMean", q, [0], keepdims=0)  # [vehicles, levels]
    mean = graph("MatMul", average, mean_weights(levels)[:, None])  # [vehicles, 1]
    medians = graph("MatMul", q, quantile_weights(levels, 0.5)[:, None])  # [members, vehicles, 1]
    apart = graph("Sub", medians, graph("ReduceMean", medians, [0], keepdims=1))
    spread = graph("Squeeze", graph("ReduceMean", graph("Mul", apart, apart), [0], keepdims=0), [-1])
    band = (quantile_weights(levels, 0.95) - quantile_weights(levels, 0.05)) / (2 * _Z95)
    centre = graph("Add", graph("Mul", mean, y_std), y_mean)
    return {
        "mean_kw": graph("Squeeze", centre, [-1]),
        "aleatoric_kw": graph("Mul", graph("Squeeze", graph("MatMul", average, band[:, None]), [-1]), unit),
        "epistemic_kw": graph("Mul", graph("Sqrt", spread), unit),
        "quantiles_kw": graph("Add", graph("Mul", graph("Sub", average, mean), wide), centre),
    }


def quantile_weights(levels: NDArray, p: float) -> NDArray:
    """[levels]: the p-quantile is this times the sorted quantiles (linear between, exponential tails beyond)."""
    weights = np.zeros(len(levels))
    if p < levels[0]:
        tail = np.log(p / levels[0]) / np.log(levels[1] / levels[0])
        weights[:2] = 1 - tail, tail
    elif p > levels[-1]:
        tail = np.log((1 - levels[-1]) / (1 - p)) / np.log((1 - levels[-2]) / (1 - levels[-1]))
        weights[-2:] = -tail, 1 + tail
    else:
        weights = np.array([np.interp(p, levels, unit) for unit in np.eye(len(levels))])
    return weights


def mean_weights(levels: NDArray) -> NDArray:
    """[levels]: the mean of the distribution is this times the sorted quantiles."""
    weights = np.zeros(len(levels))
    weights[:-1] += np.diff(levels) / 2
    weights[1:] += np.diff(levels) / 2
    low, high = levels[0], 1 - levels[-1]
    weights[0] += low * (1 + 1 / np.log(levels[1] / low))
    weights[1] -= low / np.log(levels[1] / low)
    weights[-1] += high * (1 + 1 / np.log((1 - levels[-2]) / high))
    weights[-2] -= high / np.log((1 - levels[-2]) / high)
    return weights


def _t(weights: NDArray) -> NDArray:
    return weights.transpose(0, 2, 1)


class _Graph:
    """Nodes in the order they are written; arrays and numbers among the inputs become constants."""

    def __init__(self) -> None:
        require("onnx", "export")
        import onnx

        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def __call__(self, kind: str, *inputs: Any, n: int = 1, **attributes: Any) -> Any:
        names = [given if isinstance(given, str) else self._constant(given) for given in inputs]
        outputs = [f"{kind.lower()}_{len(self._nodes)}_{j}" for j in range(n)]
        self._nodes.append(self._onnx.helper.make_node(kind, names, outputs, **attributes))
        return outputs[0] if n == 1 else outputs

    def _constant(self, value: Any) -> str:
        array = np.asarray(value)
        array = np.ascontiguousarray(array, np.int64 if array.dtype.kind == "i" else np.float32).reshape(array.shape)
        name = f"constant_{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def model(self, inputs: Mapping[str, list[int | str]], outputs: Mapping[str, str], facts: Mapping[str, Any]) -> Any:
        helper, kind = self._onnx.helper, self._onnx.TensorProto.FLOAT
        for name, source in outputs.items():
            self._nodes.append(helper.make_node("Identity", [source], [name]))
        graph = helper.make_graph(
            self._nodes,
            "evband",
            [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
            [helper.make_tensor_value_info(name, kind, None) for name in outputs],
            self._constants,
        )
        opsets = [helper.make_opsetid("", _OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION, producer_name="evband")
        helper.set_model_props(model, {name: json.dumps(value) for name, value in facts.items()})
        model = self._onnx.shape_inference.infer_shapes(model)
        self._onnx.checker.check_model(model)
        return model
