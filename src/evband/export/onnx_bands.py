"""From what members give to mean, parts and band, inside an ONNX graph.

A mixture's quantile has no formula, and the level of the band is an input. As in the tick engine each member's tail is
a table of cubics; both ends are found at once by Newton's method, kept between the members' own quantiles, in a loop of
a few steps. Ends are mirrored, so that both are the upper one: in float32 a tail is exact, one minus a tail is not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evband.export.graph import Graph, Value
from evband.network.heads import SCALE_FLOOR
from evband.network.quantiles import deviation_weights, mean_weights, quantile_weights
from evband.network.standard import Standard
from evband.network.steps import Steps
from evband.network.tick.mixture import CELLS, WIDTH, tail_cubics

STEPS = 60  # of Newton at most; four or five are usual
LEAST_TAIL, NODES = (
    1e-6,
    64,
)  # a tabulated quantile: probabilities over it from 1/2 down to this, evenly in the logarithm
MARGIN = 0.02  # by which the bracket exceeds the tabulated quantiles

Target = tuple[
    float, float, str
]  # mean and deviation of the power; [vehicles, 1] kW per unit of a stretched distribution


def unit_of(graph: Graph, x: str, y_std: float, steps: Steps) -> str:
    """[vehicles, 1]: kW that a stretched distribution is wide where the network's is 1."""
    value = graph("Gather", x, np.array([steps.column], np.int64), axis=1)
    unit: str | np.float32 = np.float32(y_std * steps.factors[-1])
    for limit, factor in zip(steps.limits[::-1] or (-np.inf,), steps.factors[-2::-1] or (1.0,), strict=True):
        unit = graph("Where", graph("Less", value, np.float32(limit)), np.float32(y_std * factor), unit)
    return str(unit)


def mixture_head(
    graph: Graph, raw: str, path: str | NDArray, standard: Standard, target: Target, ends: bool
) -> dict[str, str]:
    """Mean of mu; AU = mean of s^2 times the standard variance; EU = variance of mu; in kW, stretched about the mean."""
    y_mean, y_std, wide = target
    unit = graph("Squeeze", wide, [-1])
    mu_raw, s_raw = graph("Split", raw, n=2, axis=-1, num_outputs=2)
    mu = graph("Squeeze", graph("Add", mu_raw, path), [-1])  # [members, vehicles]
    s = graph("Squeeze", graph("Add", graph("Softplus", s_raw), np.float32(SCALE_FLOOR)), [-1])
    mean = graph("ReduceMean", mu, [0], keepdims=1)
    apart = graph("Sub", mu, mean)
    inflation = standard.variance[:, None]
    noise = graph("ReduceMean", graph("Mul", graph("Mul", s, s), inflation), [0], keepdims=0)
    spread = graph("ReduceMean", graph("Mul", apart, apart), [0], keepdims=0)
    centre = graph("Add", graph("Mul", mean, y_std), y_mean)
    centre_kw = graph("Squeeze", centre, [0])
    band = _ends_kw(graph, centre_kw, unit, *_mixture_ends(graph, apart, s, standard)) if ends else {}
    return {
        "mean_kw": centre_kw,
        **band,
        "aleatoric_kw": graph("Mul", graph("Sqrt", noise), unit),
        "epistemic_kw": graph("Mul", graph("Sqrt", spread), unit),
        "location_kw": graph("Add", graph("Mul", apart, unit), centre),
        "scale_kw": graph("Mul", s, unit),
    }


def _ends_kw(graph: Graph, centre: str, unit: str, below: str, above: str) -> dict[str, str]:
    """The band's ends from their distances [vehicles] to the mean, in the network's units."""
    return {
        "lower_kw": graph("Sub", centre, graph("Mul", below, unit)),
        "upper_kw": graph("Add", centre, graph("Mul", above, unit)),
    }


def _tail(graph: Graph) -> Value:
    """[1]: the probability beyond each end."""
    tail: Value = (1.0 - Value(graph, "level")) * 0.5
    return tail


def _mixture_ends(graph: Graph, apart: str, scale: str, kind: Standard) -> tuple[str, str]:
    """Distances [vehicles] from the mean to both ends, of locations about the mean and scales [members, vehicles]."""
    tail, s = _tail(graph), Value(graph, scale)
    away = Value(graph, apart)
    both = (graph("Unsqueeze", one.name, [0]) for one in (-away, away))
    mu = Value(graph, graph("Concat", *both, axis=0))  # [2, members, vehicles]; the lower end is mirrored
    standard = _standard_quantiles(graph, tail, kind)  # [members, 1]
    margin = MARGIN * (standard + 1.0)
    low = _over_members(graph, "ReduceMin", mu + s * (standard - margin))  # [2, 1, vehicles]
    high = _over_members(graph, "ReduceMax", mu + s * (standard + margin))
    q = _over_members(graph, "ReduceMean", mu + s * standard)
    table, inverse = tail_cubics(kind).reshape(-1, 4), 1.0 / s
    first = np.arange(len(kind))[:, None] * CELLS
    smallest = Value(graph, graph("ReduceMin", s.name, [0], keepdims=1))
    enough = 1e-5 * smallest + 2e-7 * (abs(low) + abs(high))  # Newton is quadratic: what is left is far less

    def step(state: list[Value]) -> tuple[str, list[Value]]:
        q, low, high, last, before = state
        over, density = _survival(graph, (q - mu) * inverse, inverse, table, first)
        excess = over - tail
        short = graph("Greater", excess.name, np.float32(0.0))
        low = Value(graph, graph("Where", short, q.name, low.name))
        high = Value(graph, graph("Where", short, high.name, q.name))
        new = q + excess / density
        inside = graph("And", graph("GreaterOrEqual", new.name, low.name), graph("LessOrEqual", new.name, high.name))
        # a step longer than half of the one before the last may cross the root for ever; one that is short enough is kept
        limit = graph("Max", (0.5 * before).name, enough.name)
        good = graph("And", inside, graph("LessOrEqual", abs(new - q).name, limit))
        new = Value(graph, graph("Where", good, new.name, ((low + high) * 0.5).name))
        moved = abs(new - q)
        return graph.any_over(moved, enough), [new, low, high, moved, 1.0 * last]

    q = graph.loop(STEPS, [q, low, high, high - low, high - low], [2, 1, "vehicles"], step)[0]
    below, above = graph("Split", q.name, n=2, axis=0, num_outputs=2)
    return graph("Squeeze", below, [0, 1]), graph("Squeeze", above, [0, 1])


def _survival(graph: Graph, z: Value, inverse: Value, table: NDArray, first: NDArray) -> tuple[Value, Value]:
    """Upper tail and density of the mixture [2, 1, vehicles] at standardised places z [2, members, vehicles]."""
    a = abs(z)
    share = 1.0 / (a + WIDTH)
    place = a * share * float(CELLS)
    cell = Value(graph, graph("Min", graph("Floor", place.name), np.float32(CELLS - 1)))
    rows = graph("Gather", table, graph("Add", graph.integers(cell.name), first), axis=0)  # [2, members, vehicles, 4]
    cubic = (graph("Squeeze", c, [-1]) for c in graph("Split", rows, n=4, axis=-1, num_outputs=4))
    c0, c1, c2, c3 = (Value(graph, c) for c in cubic)
    t = place - cell
    beyond = c0 + t * (c1 + t * (c2 + t * c3))
    positive = graph("GreaterOrEqual", z.name, np.float32(0.0))
    tail = Value(graph, graph("Where", positive, beyond.name, (1.0 - beyond).name))
    slope = (c1 + t * (2.0 * c2 + t * (3.0 * c3))) * share * share * inverse
    mean = _over_members(graph, "ReduceMean", slope)
    return _over_members(graph, "ReduceMean", tail), mean * (-WIDTH * CELLS)


def _standard_quantiles(graph: Graph, tail: Value, kind: Standard) -> Value:
    """[members, 1]: about where each member's standard distribution leaves ``tail`` over it, linear between tabulated ones."""
    p = 0.5 * np.exp(np.linspace(0.0, np.log(2 * LEAST_TAIL), NODES))
    table = -kind.quantile(p).T  # [nodes, members]
    place = Value(graph, graph("Log", (tail * 2.0).name)) * ((NODES - 1) / np.log(2 * LEAST_TAIL))
    place = place.within(0.0, NODES - 1.001)
    node = Value(graph, graph("Floor", place.name))
    left = graph.integers(node.name)
    low, high = (Value(graph, graph("Gather", table, at, axis=0)) for at in (left, graph("Add", left, np.array([1]))))
    found = low + (place - node) * (high - low)  # [1, members]
    return Value(graph, graph("Transpose", found.name, perm=[1, 0]))


def _over_members(graph: Graph, kind: str, value: Value) -> Value:
    return Value(graph, graph(kind, value.name, [1], keepdims=1))


def quantile_head(
    graph: Graph, raw: str, path: str | NDArray, levels: NDArray, target: Target, ends: bool
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
    centre = graph("Add", graph("Mul", mean, y_std), y_mean)
    centre_kw = graph("Squeeze", centre, [-1])
    away = graph("Sub", average, mean)
    both = _quantile_ends(graph, away, levels) if ends else ()
    return {
        "mean_kw": centre_kw,
        **(_ends_kw(graph, centre_kw, unit, *both) if ends else {}),
        "aleatoric_kw": graph(
            "Mul", graph("Squeeze", graph("MatMul", average, deviation_weights(levels)[:, None]), [-1]), unit
        ),
        "epistemic_kw": graph("Mul", graph("Sqrt", spread), unit),
        "quantiles_kw": graph("Add", graph("Mul", away, wide), centre),
    }


def _quantile_ends(graph: Graph, away: str, levels: NDArray) -> tuple[str, str]:
    """Distances [vehicles] from the mean to both ends, of sorted quantiles about the mean [vehicles, levels].

    q(p) = q_0 + sum_j (q_{j+1} - q_j) clip((p - l_j) / (l_{j+1} - l_j), 0, 1), and exponential tails beyond.
    """
    q = Value(graph, away)
    steps = np.diff(np.eye(len(levels)), axis=0).T  # [levels, levels - 1]
    tail = _tail(graph)
    found = []
    for p, beyond in ((tail, 1.0 - tail), (1.0 - tail, tail)):
        share = ((p - levels[:-1]) / np.diff(levels)).within(0.0, 1.0)
        between = Value(graph, graph("MatMul", away, steps)) * share
        inner = Value(graph, graph("ReduceSum", between.name, [-1], keepdims=0))
        low = _past(graph, p, levels[0], levels[1])
        high = _past(graph, beyond, 1 - levels[-1], 1 - levels[-2])
        first, second, before, last = (
            Value(graph, graph("Gather", q.name, np.array(j, np.int64), axis=1)) for j in (0, 1, -2, -1)
        )
        found.append(first + inner + (second - first) * low - (last - before) * high)
    return (-found[0]).name, found[1].name


def _past(graph: Graph, p: Value, end: float, next_end: float) -> Value:
    """log(min(p, end) / end) / log(next / end): 0 inside the levels, negative beyond the last."""
    least = p.within(0.0, float(end)) / float(end)
    past: Value = Value(graph, graph("Log", least.name)) / float(np.log(next_end / end))
    return past
