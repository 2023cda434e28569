"""Channels in physical units to the network's inputs, inside an ONNX graph: `FeatureMap` for one tick.

Road-load terms are those of `evband.features.road_load`, called on values of the graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from evband.channels import AGE, EDGES, READINGS, SENSED
from evband.export.graph import Graph, Value
from evband.features import HELD, FeatureMap, road_load
from evband.features.map import ROAD

PAST_GRADE = "past_grade"  # in place of elevation_m: a graph has no memory of the road
SINCE_START = "seconds_since_start"


def channel_inputs(features: FeatureMap) -> list[str]:
    """Names of the graph's inputs, [vehicles] each; NaN stands for an unknown value."""
    names = [PAST_GRADE if c == "elevation_m" else c for c in features.channels]
    more = {EDGES: features.edges, (SINCE_START,): features.fade, (AGE,): features.ages}
    more |= {(READINGS,): features.dense, (SENSED,): features.sensed}
    return [*names, *(name for group, asked in more.items() if asked for name in group)]


def feature_columns(graph: Graph, features: FeatureMap) -> tuple[str, str]:
    """Scaled inputs x [vehicles, F] and road-load features r [vehicles, K]."""
    inputs, terms = features.terms(_signals(graph, features))
    kept = [name for name in features.road_names if name in terms]
    hinges = [road_load.positive(terms[name] - knot) for name, knot in features.knots]
    r = _stack(graph, [*(terms[name] for name in kept), *hinges])
    r = graph("Min", graph("Max", r, _single(features.r_low)), _single(features.r_high))
    x = _stack(graph, [inputs[name] for name in features.input_names if not name.startswith(ROAD)])
    if features.products:
        x = graph("Concat", x, r, axis=-1)
    x, r = _scaled(graph, x, features.x_shift, features.x_scale), _scaled(graph, r, features.r_shift, features.r_scale)
    return Value(graph, x).within(*_single(np.array([-features.farthest, features.farthest]))).name, r


def _signals(graph: Graph, features: FeatureMap) -> dict[str, Any]:
    """As `FeatureMap.arrays`: unknown values replaced, weather kept near what training saw."""
    signals: dict[str, Any] = {}
    for i, c in enumerate(features.channels):
        value: Any = Value(graph, PAST_GRADE if c == "elevation_m" else c)
        known: Any = value.or_else(float(features.typical[i]))
        if c in HELD:
            known = known.within(*features.weather_limits(i))
        signals[c] = np.where(value == value, known, np.nan) if c in features.optional else known
    row = features.hz * Value(graph, SINCE_START) if features.fade else None
    readings = Value(graph, READINGS).or_else(1.0) if features.dense else None
    sensed = Value(graph, SENSED).or_else(0.0) if features.sensed else None
    made = features.made(row, [Value(graph, name) for name in EDGES], Value(graph, AGE), readings, sensed)
    return signals | {name: value.or_else(0.0) for name, value in made.items()}


def _stack(graph: Graph, columns: list[Value]) -> str:
    return str(graph("Concat", *(graph("Unsqueeze", one.name, [-1]) for one in columns), axis=-1))


def _scaled(graph: Graph, columns: str, shift: np.ndarray, scale: np.ndarray) -> str:
    return str(graph("Div", graph("Sub", columns, shift), scale))


def _single(limits: np.ndarray) -> np.ndarray:
    """Limits that float32 can hold."""
    most = np.finfo(np.float32).max
    return np.asarray(np.clip(limits, -most, most))
