"""The GPU kernel against a float64 reference on random shapes, with masks, initial states and resets inside windows: a table of errors.

The error of a tensor is its largest absolute error over its largest absolute value; 1e-5 is required of every gradient.
Run by `benchmarks.speed.gpu_step` unless `--no-check`.
"""

from __future__ import annotations

import csv
import random
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path

import torch
from torch import Tensor

from evband.network.lstm import LayerWeights, Masks, State, ensemble_lstm

REQUIRED = 1e-5


@dataclass(frozen=True)
class Case:
    members: int
    time: int
    batch: int
    inputs: int
    hidden: int
    layers: int
    masked: bool
    shared: bool  # members share x
    seed: int
    resets: bool = False  # the state is reset inside windows


def cases(count: int = 16) -> list[Case]:
    rng = random.Random(5)
    out = [
        Case(30, 64, 64, 4, 32, 4, False, False, 0),
        Case(4, 700, 7, 6, 32, 2, True, True, 1),
        Case(3, 9, 17, 5, 128, 2, True, False, 2),
        Case(2, 1, 1, 1, 8, 1, False, True, 3),
        Case(30, 64, 64, 4, 32, 4, False, False, 4, resets=True),
        Case(3, 130, 9, 6, 32, 2, True, True, 5, resets=True),
    ]
    for seed in range(6, count):
        out.append(
            Case(
                rng.randint(1, 5),
                rng.randint(1, 90),
                rng.randint(1, 70),
                rng.choice([1, 3, 8, 20, 40]),
                rng.choice([8, 13, 16, 24, 32, 48, 64, 100]),
                rng.randint(1, 4),
                rng.random() < 0.5,
                rng.random() < 0.5,
                seed,
                resets=seed % 2 == 0,
            )
        )
    return out


def worst_errors(case: Case, device: str = "cuda") -> tuple[float, float]:
    """(worst output error, worst gradient error) of the kernel on this case."""
    rng = torch.Generator().manual_seed(case.seed)
    m, b, h, depth = case.members, case.batch, case.hidden, case.layers
    widths = [case.inputs] + [h] * (depth - 1)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(*shape, generator=rng)

    def mask(*shape: int) -> Tensor:
        return (torch.rand(*shape, generator=rng) < 0.8) / 0.8

    leaves = [
        normal(1 if case.shared else m, case.time, b, case.inputs),
        *[normal(depth, m, b, h, scale=0.5) for _ in "hc"],
    ]
    for width in widths:
        leaves += [normal(m, 4 * h, n, scale=n**-0.5) for n in (width, h)] + [normal(m, 4 * h, scale=0.3)]
    masks = [mask(m, b, n) for n in widths] + [mask(m, b, h) for _ in range(depth + 1)] if case.masked else []
    carry = (torch.rand(m, case.time, b, generator=rng) < 0.9).float() if case.resets else None
    tilts = [normal(m, case.time, b, h), normal(depth, m, b, h), normal(depth, m, b, h)]

    def run(dtype: torch.dtype, backend: str) -> tuple[list[Tensor], list[Tensor]]:
        own = [t.to(device, dtype).clone().requires_grad_() for t in leaves]
        kept = [t.to(device, dtype) for t in masks]
        layers = [LayerWeights(*own[3 + 3 * k : 6 + 3 * k]) for k in range(depth)]
        dropout = Masks(tuple(kept[:depth]), tuple(kept[depth : 2 * depth]), kept[-1]) if kept else None
        y, state = ensemble_lstm(
            own[0], layers, State(own[1], own[2]), dropout, backend, None if carry is None else carry.to(device, dtype)
        )
        outputs = [y, state.h, state.c]
        loss = torch.stack([(o * t.to(device, dtype)).sum() for o, t in zip(outputs, tilts, strict=True)]).sum()
        return [o.detach() for o in outputs], list(torch.autograd.grad(loss, own))

    ours, exact = run(torch.float32, "cuda"), run(torch.float64, "reference")
    errors = [
        [float((a - e).abs().max() / e.abs().max()) for a, e in zip(*pair, strict=True)]
        for pair in zip(ours, exact, strict=True)
    ]
    return max(errors[0]), max(errors[1])


def check(out: Path, workers: int = 16) -> bool:
    """Run every case, a process each so that they compile side by side; write ``gpu_check.csv``; whether all passed."""
    todo = cases()
    with ProcessPoolExecutor(min(workers, len(todo)), mp_context=get_context("spawn")) as pool:
        errors = list(pool.map(worst_errors, todo))
    rows = [
        {**asdict(case), "output_error": f"{o:.2e}", "gradient_error": f"{g:.2e}"}
        for case, (o, g) in zip(todo, errors, strict=True)
    ]
    with (out / "gpu_check.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    for row in rows:
        print(*(f"{k}={v}" for k, v in row.items()))
    return all(g < REQUIRED for _, g in errors)
