"""One ONNX graph of a fitted model, one tick per run: for cars and servers without Python (docs/guides/onnx.md).

Inputs: each channel in its own unit, ``[vehicles]``, NaN where unknown; ``level [1]`` of the band; ``h`` and ``c``
[layers, members, vehicles, hidden], zeros at the start of a drive. Outputs: ``mean_kw``, ``lower_kw``, ``upper_kw``,
``aleatoric_kw`` and ``epistemic_kw`` [vehicles] (standard deviations), the members (``location_kw`` and ``scale_kw``
[members, vehicles], or ``quantiles_kw`` [vehicles, levels]), and ``h_next``, ``c_next`` to feed back. All after the
calibration's stretch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.export.graph import Graph
from evband.export.onnx_bands import mixture_head, quantile_head, unit_of
from evband.export.onnx_features import channel_inputs, feature_columns
from evband.features import HELD
from evband.files import write_whole
from evband.network.ensemble import Ensemble, ensemble_of

if TYPE_CHECKING:
    from evband.model import PowerModel


def export_onnx(path: str | Path, graph: Any) -> None:
    """Write what ``ensemble_graph`` made, whole or not at all."""
    write_whole(path, graph.SerializeToString())


def ensemble_graph(ensemble: Ensemble, ends: bool = True) -> Any:
    """The graph of an ensemble on scaled inputs ``x`` and ``r``; ``ends``: with those of the band, at a level that is an input."""
    graph, arch = Graph(), ensemble.arch
    outputs, facts = _network(graph, ensemble, ("x", "r"), ends)
    scaled: dict[str, list[int | str]] = {"x": ["vehicles", arch.inputs]}
    if arch.road:
        scaled["r"] = ["vehicles", arch.road]
    return graph.model({**scaled, **_carried(ensemble, ends)}, outputs, facts)


def model_graph(model: PowerModel) -> Any:
    """The graph of a fitted model, from channels in physical units to the band; its metadata name ranges and grid."""
    features, ensemble, graph = model.feature_map_, ensemble_of(model), Graph()
    outputs, facts = _network(graph, ensemble, feature_columns(graph, features), True)
    ranges = zip(features.channels, zip(features.low.tolist(), features.high.tolist(), strict=True), strict=True)
    facts |= {
        "hz": features.hz,
        "channels": list(features.channels),
        "training_ranges": dict(ranges),
        "held_channels": [c for c in features.channels if c in HELD],
    }
    inputs: dict[str, list[int | str]] = {name: ["vehicles"] for name in channel_inputs(features)}
    return graph.model({**inputs, **_carried(ensemble, True)}, outputs, facts)


def _network(
    graph: Graph,
    ensemble: Ensemble,
    columns: tuple[str, str],  # names of x and r
    ends: bool,
) -> tuple[dict[str, str], dict[str, Any]]:
    """Outputs of all members on scaled columns, and facts for the metadata."""
    arch, params, steps, (x, r) = ensemble.arch, ensemble.params, ensemble.steps, columns
    y_mean, y_std = float(ensemble.y_mean), float(ensemble.y_std)
    h, h_next, c_next = _lstm(graph, ensemble, x)
    raw = graph(
        "Add", graph("MatMul", h, _t(params["head_w"])), params["head_b"][:, None]
    )  # [members, vehicles, outputs]
    path: str | NDArray = np.zeros((1, 1, 1), np.float32)
    if arch.road:
        path = graph("MatMul", graph("Unsqueeze", r, [0]), params["road_w"][:, :, None])  # [members, vehicles, 1]
    target = (y_mean, y_std, unit_of(graph, x, y_std, steps))
    facts: dict[str, Any] = {"head": ensemble.head, "stretch": steps._asdict(), "y_mean": y_mean, "y_std": y_std}
    if not arch.distribution.scaled:
        outputs = quantile_head(graph, raw, path, np.array(arch.levels), target, ends)
        facts["levels"] = list(arch.levels)
    else:
        standard = ensemble.standard
        outputs = mixture_head(graph, raw, path, standard, target, ends)
        facts |= {k: v.tolist() if np.isfinite(v).all() else None for k, v in standard.parameters.items()}
    return outputs | {"h_next": h_next, "c_next": c_next}, facts


def _carried(ensemble: Ensemble, ends: bool) -> dict[str, list[int | str]]:
    state: list[int | str] = [ensemble.arch.layers, ensemble.members, "vehicles", ensemble.arch.hidden]
    level: dict[str, list[int | str]] = {"level": [1]} if ends else {}
    return {**level, "h": state, "c": state}


def _lstm(graph: Graph, ensemble: Ensemble, x: str) -> tuple[str, str, str]:
    """All layers, members as the batch of each product: last hidden state, and both states stacked over layers."""
    below, hs, cs, params = graph("Unsqueeze", x, [0]), [], [], ensemble.params
    for k in range(ensemble.arch.layers):
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


def _t(weights: NDArray) -> NDArray:
    return weights.transpose(0, 2, 1)
