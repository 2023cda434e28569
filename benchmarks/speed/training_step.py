"""How fast is a training step (forward and backward of every member) on this CPU, against what PyTorch offers?

    python -m benchmarks.speed.training_step                       # the 30 members of 4x32, 64 windows of 64 steps
    python -m benchmarks.speed.training_step --scaling             # how it grows with members, hidden size and steps

Contenders take turns within a round, so that whatever else the machine does falls on all of them; a ratio is the
median over rounds of their times in the same round. Writes benchmarks/results/training_step.csv (or training_step_scaling.csv).
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.common.results_file import RESULTS, show, write
from evband.network.lstm import LayerWeights, ensemble_lstm

OURS = "evband cpu kernel"
NOTE = "quartiles over rounds, contenders in turns (the second of two steps counts); ours_is_faster_by = median of ratios within a round"
Step = Callable[[], object]


@dataclass(frozen=True)
class Shape:
    members: int = 30
    layers: int = 4
    hidden: int = 32
    windows: int = 64
    steps: int = 64
    features: int = 5

    def gflop(self) -> float:
        """Of the matrix products: two forward, four backward, less the gradient of x that nobody asks for."""
        cells = self.members * self.windows * self.steps * 4 * self.hidden
        inner = 3 * (2 * self.layers - 1) * self.hidden + 2 * self.features
        return 2 * cells * inner / 1e9


def ensemble(shape: Shape, x: Tensor, dy: Tensor, backend: str) -> Step:
    """All members in one call."""
    widths = [shape.features] + [shape.hidden] * (shape.layers - 1)

    def leaf(*size: int) -> Tensor:
        return (torch.rand(shape.members, *size) - 0.5).mul_(2 * shape.hidden**-0.5).requires_grad_()

    gates = 4 * shape.hidden
    layers = [LayerWeights(leaf(gates, width), leaf(gates, shape.hidden), leaf(gates)) for width in widths]
    leaves = [tensor for layer in layers for tensor in (layer.w_ih, layer.w_hh, layer.bias)]

    def step() -> None:
        for tensor in leaves:
            tensor.grad = None
        ensemble_lstm(x.unsqueeze(0), layers, backend=backend)[0].backward(dy)

    return step


def loop(shape: Shape, x: Tensor, dy: Tensor) -> tuple[Step, Step]:
    """PyTorch's LSTM, member after member; and in as many Python threads as cores, with one thread each inside."""
    nets = [nn.LSTM(shape.features, shape.hidden, shape.layers) for _ in range(shape.members)]
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))  # counts for each thread apart

    def some(members: range) -> None:
        for m in members:
            nets[m].zero_grad()
            nets[m](x)[0].backward(dy[m])

    def in_threads() -> None:
        list(pool.map(some, [range(k, shape.members, threads) for k in range(threads)]))

    return lambda: some(range(shape.members)), in_threads


def data(shape: Shape) -> tuple[Tensor, Tensor]:
    """Inputs, and the gradient of the outputs."""
    torch.manual_seed(0)
    x = torch.randn(shape.steps, shape.windows, shape.features)
    return x, torch.randn(shape.members, shape.steps, shape.windows, shape.hidden)


def contenders(shape: Shape, peers: bool) -> dict[str, Step]:
    """All in this process; bench.py has a process for each."""
    x, dy = data(shape)
    alone, threaded = loop(shape, x, dy)
    found = {OURS: ensemble(shape, x, dy, "cpu"), "nn.LSTM in threads": threaded}
    if peers:
        found |= {"nn.LSTM in a loop": alone, "evband reference": ensemble(shape, x, dy, "reference")}
    return found


def matmuls(shape: Shape) -> Step:
    """As many multiplications as the step has, in torch's own products of large matrices: what no LSTM can be faster than."""
    a = torch.randn(1024, 1024)
    times = round(shape.gflop() / (2 * 1.024**3))

    def products() -> None:
        for _ in range(times):
            a @ a

    return products


def timed(steps: dict[str, Step], rounds: int) -> dict[str, np.ndarray]:
    """Seconds of each contender in each round; the first, which compiles, is left out.

    A turn is two steps, of which the second counts: it finds memory and caches as in a training loop, not as others left them.
    """
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for k in range(rounds + 1):
        for name, step in steps.items():
            step()
            start = time.perf_counter()
            step()
            if k > 0:
                seconds[name].append(time.perf_counter() - start)
    return {name: np.array(values) for name, values in seconds.items()}


def rows(shape: Shape, rounds: int, steps: dict[str, Step]) -> list[dict[str, object]]:
    """The table's rows for one shape."""
    found = timed(steps, rounds)
    return [
        {
            "contender": name,
            **shape.__dict__,
            "median_s": f"{np.median(s):.4f}",
            "low_s": f"{np.quantile(s, 0.25):.4f}",
            "high_s": f"{np.quantile(s, 0.75):.4f}",
            "fastest_s": f"{s.min():.4f}",
            "gflops": f"{shape.gflop() / np.median(s):.0f}",
            "ours_is_faster_by": f"{np.median(s / found[OURS]):.2f}",
            "by_fastest": f"{s.min() / found[OURS].min():.2f}",
        }
        for name, s in found.items()
    ]


def scaled(shape: Shape) -> list[Shape]:
    return [
        *(replace(shape, members=m) for m in (1, 5, 10, 30, 60)),
        *(replace(shape, hidden=h) for h in (8, 16, 32, 64, 128)),
        *(replace(shape, steps=t) for t in (16, 64, 128, 256)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--scaling", action="store_true", help="grow members, hidden size and steps one at a time")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    shapes = scaled(Shape()) if options.scaling else [Shape()]
    table = [row for s in shapes for row in rows(s, options.rounds, contenders(s, peers=not options.scaling))]
    write(RESULTS / ("training_step_scaling.csv" if options.scaling else "training_step.csv"), table, NOTE)
    show("one training step", table)


if __name__ == "__main__":
    main()
