"""Channels in physical units to the network's inputs, inside an ONNX graph: `FeatureMap` for one tick.

Road-load terms are those of `evband.features.road_load`, called on values of the graph.
"""

from __future__ import annotations

import numpy as np

from evband.channels import EDGES
from evband.export.graph import Graph, Value
from evband.features import HELD, FeatureMap, road_load
from evband.features.map import ROAD

PAST_GRADE = "past_grade"  # in place of elevation_m: a graph has no memory of the road
SINCE_START = "seconds_since_start"


def channel_inputs(features: FeatureMap) -> list[str]:
    """Names of the graph's inputs, [vehicles] each; NaN stands for an unknown value."""
    names = [PAST_GRADE if c == "elevation_m" else c for c in features.channels]
    return [*names, *(EDGES if features.edges else ()), *([SINCE_START] if features.fade else ())]


def feature_columns(graph: Graph, features: FeatureMap) -> tuple[str, str]:
    """Scaled inputs x [vehicles, F] and road-load features r [vehicles, K]."""
    signals = _signals(graph, features)
    terms = road_load.road_terms(signals, curved=bool(features.knots))  # type: ignore[type-var]
    kept = [name for name in features.road_names if name in terms]
    hinges = [road_load.positive(terms[name] - knot) for name, knot in features.knots]  # type: ignore[type-var]
    r = _stack(graph, [*(terms[name] for name in kept), *hinges])
    r = graph("Min", graph("Max", r, _single(features.r_low)), _single(features.r_high))
    inputs = road_load.input_terms(signals)  # type: ignore[type-var]
    x = _stack(graph, [inputs[name] for name in features.input_names if not name.startswith(ROAD)])
    if features.products:
        x = graph("Concat", x, r, axis=-1)
    return _scaled(graph, x, features.x_shift, features.x_scale), _scaled(graph, r, features.r_shift, features.r_scale)


def _signals(graph: Graph, features: FeatureMap) -> dict[str, Value]:
    """As `FeatureMap.arrays`: unknown values replaced, weather kept near what training saw."""
    signals = {}
    for i, c in enumerate(features.channels):
        value = Value(graph, PAST_GRADE if c == "elevation_m" else c).or_else(float(features.typical[i]))
        signals[c] = value.within(*features.weather_limits(i)) if c in HELD else value
    if features.edges:
        start, end = (Value(graph, name) for name in EDGES)
        edges = road_load.edge_signals(start, end, features.hz)  # type: ignore[type-var]
        signals |= {name: value.or_else(0.0) for name, value in edges.items()}
    if features.fade:
        rows = features.hz * Value(graph, SINCE_START)
        signals[road_load.FADE] = (-rows / (features.hz * road_load.FADE_S)).exp()
    return signals


def _stack(graph: Graph, columns: list[Value]) -> str:
    return str(graph("Concat", *(graph("Unsqueeze", one.name, [-1]) for one in columns), axis=-1))


def _scaled(graph: Graph, columns: str, shift: np.ndarray, scale: np.ndarray) -> str:
    return str(graph("Div", graph("Sub", columns, shift), scale))


def _single(limits: np.ndarray) -> np.ndarray:
    """Limits that float32 can hold."""
    most = np.finfo(np.float32).max
    return np.asarray(np.clip(limits, -most, most))
