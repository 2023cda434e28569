"""One tick on one core: latency for one vehicle, throughput for a fleet, growth with size, and what float16 weights cost.

    python -m benchmarks.speed.tick --out benchmarks/results/tick.csv

Contenders take turns in short rounds, so that a busy machine slows all alike; the table gives the median over rounds
with quartiles. Latency is wall time, throughput counts the process's own CPU time. Ours includes the exact quantiles of
the mixture; ONNX Runtime (one thread) computes mean, aleatoric and epistemic only, once on the graph that `evband export`
writes, members batched, and once on a graph with an LSTM node for each layer of each member, as exporters write it.
Ensemble of the paper: 30 members of 4 x 32, random weights.

What bounds one vehicle: every tick reads 3.9 MB of float32 weights once. From the second cache into the first a core
moves 32 bytes a cycle, which is 33 us at 3.7 GHz before any arithmetic. What bounds a fleet: 1.9 MFLOP a vehicle-tick,
16 us at the core's 118 GFLOP/s, and 19,000 gate functions, 6 us.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import onnxruntime

import evband
from benchmarks.common.results_file import Row, write
from benchmarks.speed.onnx_nodes import lstm_nodes
from evband.export.onnx import ensemble_graph
from evband.network.ensemble import Ensemble
from evband.network.kernels._cpu_blocks import gate_sums
from evband.network.kernels.pack import aligned
from evband.network.kernels.vector import LANES
from evband.network.standard import Student
from evband.network.tick import Engine, engine_of
from evband.network.tick.mixture import mixture_row, tail_cubics

FEATURES, ROAD = 6, 20
TARGET = {"y_mean": 5.0, "y_std": 15.0}
FIELDS = ("part", "contender", "members", "layers", "hidden", "vehicles", "measure", "median", "low", "high")
PAPER = (30, 4, 32)  # members, layers, hidden
PRECISIONS = {"float32": "float32", "float16 weights": "reduced"}
PEERS = {"ONNX Runtime": False, "ONNX Runtime LSTM nodes": True}


def make_params(members: int, layers: int, hidden: int) -> dict[str, np.ndarray]:
    """Random weights at the scale of trained ones."""
    g = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"head_w": (2, hidden), "head_b": (2,), "nu_raw": (), "road_w": (ROAD,)}
    for k in range(layers):
        shapes[f"w_ih.{k}"] = (4 * hidden, hidden if k else FEATURES)
        shapes[f"w_hh.{k}"] = (4 * hidden, hidden)
        shapes[f"bias.{k}"] = (4 * hidden,)
    return {
        name: (g.standard_normal((members, *shape)) / np.sqrt(shape[-1] if shape else 1.0)).astype(np.float32)
        for name, shape in shapes.items()
    }


def drive(steps: int, vehicles: int) -> tuple[np.ndarray, np.ndarray]:
    """Slowly varying inputs: what a car sends."""
    g = np.random.default_rng(1)
    walk = np.cumsum(0.1 * g.standard_normal((steps, vehicles, FEATURES + ROAD)), axis=0)
    both = np.sin(walk + g.standard_normal((1, vehicles, FEATURES + ROAD))).astype(np.float32)
    return np.ascontiguousarray(both[..., :FEATURES]), np.ascontiguousarray(both[..., FEATURES:])


def ours(params: dict[str, np.ndarray], vehicles: int, precision: str) -> Callable[[], None]:
    engine = Engine(Ensemble(params, **TARGET), vehicles=vehicles, precision=precision)  # type: ignore[arg-type]
    x, r = drive(64 if vehicles < 1000 else 2, vehicles)
    turn = iter(range(10**9))

    def one() -> None:
        t = next(turn) % len(x)
        engine.tick(x[t, 0], r[t, 0])

    def many() -> None:
        t = next(turn) % len(x)
        engine.tick_many(x[t], r[t])

    return one if vehicles == 1 else many


def onnx_runtime(params: dict[str, np.ndarray], vehicles: int, nodes: bool = False) -> Callable[[], None]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    layers = sum(name.startswith("w_hh.") for name in params)
    graph = lstm_nodes(params, layers) if nodes else ensemble_graph(Ensemble(params, **TARGET), ends=False)  # type: ignore[arg-type]
    session = onnxruntime.InferenceSession(graph.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = None if nodes else ["mean_kw", "aleatoric_kw", "epistemic_kw", "h_next", "c_next"]
    members, _, hidden = params["head_w"].shape
    shape = (layers * members, vehicles, hidden) if nodes else (layers, members, vehicles, hidden)
    state = {"h": np.zeros(shape, np.float32), "c": np.zeros(shape, np.float32)}
    x, r = drive(64 if vehicles < 1000 else 2, vehicles)
    turn = iter(range(10**9))

    def tick() -> None:
        t = next(turn) % len(x)
        *_, state["h"], state["c"] = session.run(names, {"x": x[t], "r": r[t], **state})

    return tick


def peers(params: dict[str, np.ndarray], vehicles: int) -> dict[str, Callable[[], None]]:
    return {name: onnx_runtime(params, vehicles, nodes) for name, nodes in PEERS.items()}


def interleaved(
    contenders: dict[str, Callable[[], None]], rounds: int, calls: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, np.ndarray]:
    """[rounds, calls] seconds of each, in turns."""
    times = {name: np.empty((rounds, calls)) for name in contenders}
    for run in contenders.values():
        run()
    for k in range(rounds):
        for name, run in contenders.items():
            for j in range(calls):
                begin = clock()
                run()
                times[name][k, j] = clock() - begin
    return times


def row(part: str, contender: str, size: tuple[int, int, int], vehicles: int, measure: str, values: np.ndarray) -> Row:
    low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
    facts = (part, contender, *size, vehicles, measure, *(f"{v:.4g}" for v in (median, low, high)))
    return dict(zip(FIELDS, facts, strict=True))


def latency(size: tuple[int, int, int], rounds: int, part: str) -> list[Row]:
    """p50 and p99 of a tick in microseconds, and how many of ours fit into one of ONNX Runtime."""
    params = make_params(*size)
    contenders = {name: ours(params, 1, precision) for name, precision in PRECISIONS.items()}
    contenders |= peers(params, 1) if part == "one vehicle" else {}
    times = interleaved(contenders, rounds, 100)
    rows = []
    for name, seconds in times.items():
        p50, p99 = 1e6 * np.quantile(seconds, [0.5, 0.99], axis=1)
        rows += [row(part, name, size, 1, "p50_us", p50), row(part, name, size, 1, "p99_us", p99)]
        for peer in PEERS if part == "one vehicle" and name in PRECISIONS else ():
            ratio = np.median(times[peer], axis=1) / np.median(seconds, axis=1)
            rows.append(row(part, name, size, 1, f"times faster than {peer}", ratio))
    return rows


def throughput(size: tuple[int, int, int], vehicles: int, rounds: int, part: str) -> list[Row]:
    """Vehicle-ticks per second of one core."""
    params = make_params(*size)
    contenders = {name: ours(params, vehicles, precision) for name, precision in PRECISIONS.items()}
    contenders |= peers(params, vehicles) if part == "fleet" and vehicles <= 480 else {}
    calls = max(1, 200 // vehicles)
    times = interleaved(contenders, rounds, calls, time.process_time)
    return [
        row(part, name, size, vehicles, "vehicle_ticks_per_cpu_s", calls * vehicles / t.sum(1))
        for name, t in times.items()
    ]


def reduced_precision_cost() -> list[Row]:
    """Error of a fitted model on a held-out simulated drive, with float32 and with float16 weights."""
    train, test = evband.simulate("highway", trips=4).split(test=0.3, seed=0)
    model = evband.PowerModel(members=10, layers=4, hidden=32, epochs=20, calibrate=False, device="cpu").fit(train)
    drives = [model.feature_map_.transform(trip) for trip in test.on_grid(model.settings_.hz)]
    power = np.concatenate([one.y for one in drives])
    bands = {}
    for name, precision in PRECISIONS.items():
        engine = engine_of(model, precision=precision)  # type: ignore[arg-type]
        out = []
        for one in drives:
            for x, r, start in zip(one.x, one.r, one.start, strict=True):
                if start:
                    engine.reset(0)
                out.append(engine.tick(x, r).copy())
        bands[name] = np.array(out)
    rmse = {name: np.sqrt(np.nanmean((power - band[:, 0]) ** 2)) for name, band in bands.items()}
    full, reduced = bands.values()
    size = (10, 4, 32)
    rows = [row("precision", name, size, 1, "rmse_kw", np.array([value])) for name, value in rmse.items()]
    for measure, value in (
        ("rmse_change_pct", 100 * (rmse["float16 weights"] / rmse["float32"] - 1)),
        ("largest_change_of_a_mean_kw", np.abs(full - reduced)[:, 0].max()),
        ("largest_change_of_a_band_end_kw", np.abs(full - reduced)[:, 1:3].max()),
    ):
        rows.append(row("precision", "float16 weights", size, 1, measure, np.array([value])))
    return rows


@numba.njit
def products(weights: np.ndarray, bias: np.ndarray, x: np.ndarray, sums: np.ndarray, blocks: int, length: int) -> None:
    for block in range(blocks):
        at = block * 4 * LANES * length
        gate_sums(1, sums, 0, bias, 0, weights, at, x, 0, 0, length, weights, at, x, 0, 0, 0)


def profile(rounds: int) -> list[Row]:
    """Where a tick's time goes: its matrix products alone, its mixture alone, the smallest possible tick."""
    members, layers, hidden = PAPER
    params = make_params(*PAPER)
    engine = Engine(Ensemble(params, **TARGET))  # type: ignore[arg-type]
    engine.tick(np.zeros(FEATURES), np.zeros(ROAD))
    mu, s, nu = 0.1 * params["road_w"][:, 0].astype(float), np.zeros(members), np.full(members, 4.0)
    out, warm, spare = np.zeros(5), np.zeros(2), np.zeros(members)
    standard = np.ascontiguousarray(Student(nu).quantile([0.05, 0.95]).T)
    cubics, kw = tail_cubics(Student(nu)), np.empty((2, members))
    blocks, x, sums = (
        members * layers * hidden // LANES,
        np.ones(2 * hidden, np.float32),
        aligned(4 * LANES),
    )
    weights = {dtype: aligned(blocks * 4 * LANES * 2 * hidden).view(dtype) for dtype in (np.float32, np.uint16)}

    def mixture() -> None:
        kw[0], kw[1] = mu, s
        mixture_row(5.0, 15.0, 0.05, 1.0, kw[0], kw[1], spare, nu / (nu - 2), standard, cubics, warm, out)

    parts = {
        "products alone, float32": lambda: products(weights[np.float32], sums, x, sums, blocks, 2 * hidden),
        "products alone, float16 weights": lambda: products(weights[np.uint16], sums, x, sums, blocks, 2 * hidden),
        "mixture alone": mixture,
        "tick of 1 x 1 x 8": ours(make_params(1, 1, 8), 1, "float32"),
    }
    times = interleaved(parts, rounds, 100)
    return [row("profile", name, PAPER, 1, "p50_us", 1e6 * np.median(t, axis=1)) for name, t in times.items()]


def start_times() -> list[Row]:
    """Seconds from process start to the first band: compiling (empty cache), and from the cache."""
    code = (
        "import time; from benchmarks.speed import tick; from evband.network.ensemble import Ensemble; from evband.network.tick import Engine; begin = time.perf_counter();"
        "Engine(Ensemble(tick.make_params(30, 4, 32))).tick([0.0] * tick.FEATURES, [0.0] * tick.ROAD); print(time.perf_counter() - begin)"
    )
    rows = []
    with tempfile.TemporaryDirectory() as cache:
        for measure in ("first_call_compiling_s", "first_call_cached_s"):
            done = subprocess.run(
                [sys.executable, "-c", code],
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
                capture_output=True,
                text=True,
                check=True,
            )
            rows.append(row("start", "float32", PAPER, 1, measure, np.array([float(done.stdout)])))
    return rows


def run(rounds: int) -> list[Row]:
    rows = latency(PAPER, rounds, "one vehicle") + profile(rounds)
    for vehicles in (1, 6, 48, 480, 10_000):
        rows += throughput(PAPER, vehicles, rounds if vehicles < 100 else max(3, rounds // 8), "fleet")
    sizes = [(members, 4, 32) for members in (1, 3, 10, 30, 100)]
    sizes += [(30, layers, hidden) for layers, hidden in ((1, 32), (2, 32), (4, 8), (4, 16), (4, 64), (4, 128))]
    for size in sizes:
        rows += latency(size, rounds // 2, "growth") + throughput(size, 480, 3, "growth")
    return rows + start_times() + reduced_precision_cost()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/tick.csv"))
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    rows = run(given.rounds)
    note = f"onnxruntime {onnxruntime.__version__}; median and quartiles over rounds, contenders in turns"
    write(given.out, rows, note)
    for line in rows:
        print("  ".join(f"{line[name]!s:>16}" for name in FIELDS))


if __name__ == "__main__":
    main()
