"""One training step on a GPU, ours against what people use today: forward, Student-t loss, backward, Adam.

30 members of 4 x 32, 64 windows of 64 steps. Contenders run in turn, round after round; the table gives medians over
rounds. Peers run as they come: cuDNN and XLA are free to use tf32. Needs torch, triton, numpy and, for its row, JAX:

    PYTHONPATH=src python3 -m benchmarks.speed.gpu_step --out results/
"""

from __future__ import annotations

import argparse
import csv
import math
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from evband.network.kernels.student_t import student_t_nll
from evband.network.lstm import LayerWeights, ensemble_lstm
from evband.training.graph import capture

MEMBERS, LAYERS, HIDDEN, WINDOWS, TIME, INPUTS = 30, 4, 32, 64, 64, 4
RATE = 1e-3
GROWTH = {
    "members": (1, 10, 30, 60, 120),
    "layers": (1, 2, 4, 8),
    "hidden": (8, 16, 32, 64, 128),
    "windows": (16, 64, 256, 1024),
    "time": (16, 64, 256, 1024),
}
Step = Callable[[], None]


def student_t(raw: Tensor, nu_raw: Tensor, y: Tensor) -> Tensor:
    """Mean negative log likelihood; raw [..., 2] is location and softplus-scale."""
    scale = nn.functional.softplus(raw[..., 1]) + 1e-4
    nu = 3.0 + nn.functional.softplus(nu_raw)
    z = (y - raw[..., 0]) / scale
    constant = 0.5 * (nu * math.pi).log() + torch.lgamma(nu / 2) - torch.lgamma((nu + 1) / 2)
    return (scale.log() + constant + (nu + 1) / 2 * torch.log1p(z.square() / nu)).mean((-1, -2))


def data(members: int = MEMBERS, time: int = TIME, windows: int = WINDOWS) -> tuple[Tensor, Tensor]:
    rng = torch.Generator("cuda").manual_seed(0)
    x = torch.randn(members, time, windows, INPUTS, device="cuda", generator=rng)
    return x, torch.randn(members, time, windows, device="cuda", generator=rng)


def captured(step: Step) -> Step:
    """``step`` as a CUDA graph."""
    return capture(step, [], list)


def ours(
    precision: str,
    *,
    members: int = MEMBERS,
    layers: int = LAYERS,
    hidden: int = HIDDEN,
    windows: int = WINDOWS,
    time: int = TIME,
) -> tuple[Step, Step]:
    """Our step, plain and captured. Members' parameters are one tensor, as in training."""
    x, y = data(members, time, windows)
    shapes: list[tuple[int, ...]] = []
    for k in range(layers):
        shapes += [(4 * hidden, INPUTS if k == 0 else hidden), (4 * hidden, hidden), (4 * hidden,)]
    shapes += [(2, hidden), (2,), (1, 1)]
    sizes = [math.prod(s) for s in shapes]
    theta = (torch.randn(members, sum(sizes), device="cuda") / hidden**0.5).requires_grad_()
    adam = torch.optim.Adam([theta], lr=torch.tensor(RATE, device="cuda"), fused=True, capturable=True)

    def step() -> None:
        torch.set_float32_matmul_precision(precision)
        parts = [p.view(members, *s) for p, s in zip(theta.split(sizes, 1), shapes, strict=True)]
        h, _ = ensemble_lstm(x, [LayerWeights(*parts[3 * k : 3 * k + 3]) for k in range(layers)])
        # A product per step: as one long product per member, the gradient of so small a head would leave the GPU idle.
        raw = torch.matmul(h, parts[-3].transpose(1, 2).unsqueeze(1)) + parts[-2].view(members, 1, 1, 2)
        scale = nn.functional.softplus(raw[..., 1]) + 1e-4
        nu = 3.0 + nn.functional.softplus(parts[-1].flatten())
        loss = student_t_nll(raw[..., 0], scale, nu, y).mean((-1, -2)).sum()
        adam.zero_grad()
        loss.backward()
        adam.step()
        torch.set_float32_matmul_precision("highest")

    return step, captured(step)


def cudnn(streams: int) -> tuple[Step, Step]:
    """``nn.LSTM``, a loop over members; the second step spreads members over streams inside a CUDA graph."""
    x, y = data()
    stacks = [nn.LSTM(INPUTS, HIDDEN, LAYERS).cuda() for _ in range(MEMBERS)]
    heads = [nn.Linear(HIDDEN, 2).cuda() for _ in range(MEMBERS)]
    nus = [torch.zeros(1, 1, device="cuda", requires_grad=True) for _ in range(MEMBERS)]
    parameters = [p for m in [*stacks, *heads] for p in m.parameters()] + nus
    adam = torch.optim.Adam(parameters, lr=torch.tensor(RATE, device="cuda"), fused=True, capturable=True)

    def member(m: int) -> None:
        student_t(heads[m](stacks[m](x[m])[0]), nus[m], y[m]).sum().backward()

    def loop() -> None:
        adam.zero_grad()
        for m in range(MEMBERS):
            member(m)
        adam.step()

    lanes = [torch.cuda.Stream() for _ in range(streams)]

    def side_by_side() -> None:
        adam.zero_grad()
        here = torch.cuda.current_stream()
        for lane in lanes:
            lane.wait_stream(here)
        for m in range(MEMBERS):
            with torch.cuda.stream(lanes[m % streams]):
                member(m)
        for lane in lanes:
            here.wait_stream(lane)
        adam.step()

    return loop, captured(side_by_side)


def jax_vmap() -> Step:
    """vmap over members of a scan over time, jitted with its Adam; state donated."""
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import jax.numpy as jnp

    def loss(p: dict, x: jax.Array, y: jax.Array) -> jax.Array:
        for k in range(LAYERS):
            drive = x @ p[f"w_ih.{k}"].T + p[f"bias.{k}"]
            w = p[f"w_hh.{k}"].T

            def cell(state: tuple, z: jax.Array, w: jax.Array = w) -> tuple:
                h, c = state
                i, f, g, o = jnp.split(z + h @ w, 4, axis=-1)
                c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
                h = jax.nn.sigmoid(o) * jnp.tanh(c)
                return (h, c), h

            zeros = jnp.zeros((WINDOWS, HIDDEN))
            _, x = jax.lax.scan(cell, (zeros, zeros), drive)
        raw = x @ p["head_w"].T + p["head_b"]
        scale, nu = jax.nn.softplus(raw[..., 1]) + 1e-4, 3.0 + jax.nn.softplus(p["nu_raw"])
        z = (y - raw[..., 0]) / scale
        lgamma = jax.lax.lgamma
        constant = 0.5 * jnp.log(nu * math.pi) + lgamma(nu / 2) - lgamma((nu + 1) / 2)
        return jnp.mean(jnp.log(scale) + constant + (nu + 1) / 2 * jnp.log1p(z**2 / nu))

    def step(p: dict, m: dict, v: dict, n: jax.Array, x: jax.Array, y: jax.Array) -> tuple:
        g = jax.grad(lambda p: jax.vmap(loss)(p, x, y).sum())(p)
        n = n + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)
        rate = RATE * jnp.sqrt(1 - 0.999**n) / (1 - 0.9**n)
        return jax.tree.map(lambda p, m, v: p - rate * m / (jnp.sqrt(v) + 1e-8), p, m, v), m, v, n

    key = jax.random.key(0)
    shapes: dict[str, tuple[int, ...]] = {"head_w": (2, HIDDEN), "head_b": (2,), "nu_raw": (1, 1)}
    for k in range(LAYERS):
        width = INPUTS if k == 0 else HIDDEN
        shapes |= {f"w_ih.{k}": (4 * HIDDEN, width), f"w_hh.{k}": (4 * HIDDEN, HIDDEN), f"bias.{k}": (4 * HIDDEN,)}
    p = {name: jax.random.normal(key, (MEMBERS, *shape)) / HIDDEN**0.5 for name, shape in shapes.items()}
    zeros = jax.tree.map(jnp.zeros_like, p)
    state = [p, zeros, jax.tree.map(jnp.copy, zeros), jnp.zeros(())]
    x, y = jax.random.normal(key, (MEMBERS, TIME, WINDOWS, INPUTS)), jax.random.normal(key, (MEMBERS, TIME, WINDOWS))
    fast = jax.jit(step, donate_argnums=(0, 1, 2))

    def run() -> None:
        state[:] = fast(*state, x, y)

    def wait() -> None:
        jax.block_until_ready(state)

    run.wait = wait  # type: ignore[attr-defined]
    return run


def timed(step: Step, repeats: int) -> float:
    """Milliseconds a step, over ``repeats`` in a row."""
    wait = getattr(step, "wait", torch.cuda.synchronize)
    wait()
    began = time.perf_counter()
    for _ in range(repeats):
        step()
    wait()
    return (time.perf_counter() - began) / repeats * 1e3


def contenders(peers: bool) -> dict[str, tuple[Step, int]]:
    """Name -> (step, steps a round)."""
    plain, graph = ours("highest")
    _, graph_tf32 = ours("high")
    out = {
        "evband, fp32-accurate, CUDA graph": (graph, 100),
        "evband, tf32, CUDA graph": (graph_tf32, 100),
        "evband, fp32-accurate, no graph": (plain, 10),
    }
    if peers:
        loop, streams = cudnn(15)
        out["nn.LSTM in 15 streams, CUDA graph"] = (streams, 20)
        out["nn.LSTM, loop over members"] = (loop, 2)
        out["JAX, vmap over scan, jit"] = (jax_vmap(), 20)
    return out


def profile(step: Step, out: Path) -> None:
    """Where one uncaptured step spends its time on the device."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as profiler

    with profiler(activities=[ProfilerActivity.CUDA, ProfilerActivity.CPU]) as prof:
        for _ in range(10):
            step()
        torch.cuda.synchronize()
    table = prof.key_averages().table(sort_by="self_device_time_total", row_limit=25, max_name_column_width=50)
    (out / "gpu_profile.txt").write_text(table)


def growth(out: Path) -> None:
    """How our captured step grows when one size changes: ``gpu_growth.csv``."""
    with (out / "gpu_growth.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "value", "ms"])
        for name, values in GROWTH.items():
            for value in values:
                _, step = ours("highest", **{name: value})
                timed(step, 3)
                row = [name, value, f"{statistics.median(timed(step, 10) for _ in range(3)):.3f}"]
                writer.writerow(row)
                print(*row, flush=True)
                del step
                torch.cuda.empty_cache()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--no-check", action="store_true", help="skip the comparison with float64")
    options.add_argument("--no-peers", action="store_true", help="time our own steps only")
    args = options.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if not args.no_check:
        from benchmarks.checks.gpu_check import check

        print("gradients within 1e-5 of float64:", check(args.out), flush=True)
    if not args.no_peers:
        growth(args.out)  # before JAX is loaded: its threads may disturb a capture
    steps = contenders(not args.no_peers)
    for name, (step, repeats) in steps.items():
        print(f"warm-up {name}: {timed(step, repeats):.3f} ms", flush=True)
    profile(steps["evband, fp32-accurate, no graph"][0], args.out)
    rounds: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(args.rounds):
        for name, (step, repeats) in steps.items():
            rounds[name].append(timed(step, repeats))
    base = statistics.median(rounds["evband, fp32-accurate, CUDA graph"])
    device = torch.cuda.get_device_properties(0)
    facts = {
        "gpu": device.name,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "date": time.strftime("%F"),
    }
    with (args.out / "gpu_step.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["contender", "median_ms", "least_ms", "most_ms", "times_ours", *facts])
        for name, ms in rounds.items():
            row = [f"{v:.3f}" for v in (statistics.median(ms), min(ms), max(ms), statistics.median(ms) / base)]
            writer.writerow([name, *row, *facts.values()])
            print(f"{name:38s}", *row)


if __name__ == "__main__":
    main()
