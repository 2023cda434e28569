"""What `make bench` runs: speed against what people use today, all contenders in one run and in turns.

    python -m benchmarks.speed.bench [--parts step growth fit tick start] [--data DIR] [--quick]

- step: a training step of 30 members of 4 x 32 on 64 windows of 64 steps (training_step.csv), against PyTorch's LSTM in
  a loop and in threads, Keras/TensorFlow in a loop over members, JAX vmap over scan;
- growth: the same as members, hidden size and steps grow (training_step_scaling.csv); of ticks: part tick;
- fit: whole fits (fit_time.csv), against the paper's recipe in Keras: a few steps timed, then multiplied;
- tick: latency of one vehicle, throughput of a fleet, both with growth, against ONNX Runtime (tick.csv; one core);
- start: import, first call, second process (start_time.csv).

Everybody has the same two cores and a process of its own, which waits idle for its turns. Keras and JAX live in an
environment of their own, made under .bench/ at the first run. bench.csv sets the main figures beside their targets. GPU: gpu_step.py.
"""

from __future__ import annotations

import argparse
import csv
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch

from benchmarks.common.results_file import RESULTS, Row, show, write
from benchmarks.speed import fit_time, start_time, training_step
from benchmarks.speed.peers.client import Peer

PARTS = ("step", "growth", "fit", "tick", "start")
THREADS = 2
WINDOW, BATCH = 64, 64  # of the paper's recipe, which says neither
PAPER_ROWS, PAPER_EPOCHS, PAPER_MEMBERS = 7651, 300, 30


@dataclass(frozen=True)
class Size:
    """How much to do: the real thing, or a trial of the script."""

    rounds: int = 9
    growth_rounds: int = 3
    shape: training_step.Shape = field(default_factory=training_step.Shape)
    members: int = 30
    epochs: int | None = None
    tick_rounds: int = 24
    starts: int = 7
    keras_steps: int = 20


QUICK = Size(2, 1, training_step.Shape(members=2, layers=2, hidden=8, windows=8, steps=8), 3, 1, 2, 1, 2)


BOUND = "as many operations in torch's matmul"


def ours(shape: training_step.Shape) -> training_step.Step:
    return training_step.ensemble(shape, *training_step.data(shape), "cpu")


def step(size: Size, out: Path) -> None:
    torch_peers = {"nn.LSTM in threads": "threads", "nn.LSTM in a loop": "loop", "evband reference": "reference"}
    peers = {name: (Peer("torch", THREADS, sys.executable), work) for name, work in torch_peers.items()}
    peers |= {"Keras/TensorFlow in a loop": (Peer("keras", THREADS), "step")}
    peers |= {"JAX, vmap over scan": (Peer("jax", THREADS), "step")}
    steps = {training_step.OURS: ours(size.shape), BOUND: training_step.matmuls(size.shape)}
    steps |= {name: peer.prepare(work, **size.shape.__dict__) for name, (peer, work) in peers.items()}
    rows = training_step.rows(size.shape, size.rounds, steps)
    for peer, _ in peers.values():
        peer.close()
    versions = ", ".join(peer.version for peer, work in peers.values() if work == "step")
    write(out / "training_step.csv", rows, versions, training_step.NOTE)
    show("a training step", rows)


def growth(size: Size, out: Path) -> None:
    shapes = training_step.scaled(size.shape) if size.epochs is None else [size.shape, replace(size.shape, steps=16)]
    rows, peer = [], Peer("torch", THREADS, sys.executable)
    for shape in shapes:
        steps = {training_step.OURS: ours(shape), "nn.LSTM in threads": peer.prepare("threads", **shape.__dict__)}
        rows += training_step.rows(shape, size.growth_rounds, steps)
    peer.close()
    write(out / "training_step_scaling.csv", rows, training_step.NOTE)
    show("a training step as it grows", rows)


def fit(size: Size, out: Path, data: Path | None) -> None:
    """Our fits, with steps of the paper's recipe timed before and after them."""
    keras = Peer("keras", THREADS)
    keras.prepare("one_target", members=1, layers=4, hidden=32, windows=BATCH, steps=WINDOW, features=5)
    keras.seconds(3)
    timed = keras.seconds(size.keras_steps)
    with tempfile.TemporaryDirectory() as folder:
        logs = {name: fit_time.log_of(name, data, Path(folder)) for name in fit_time.FITS}
        rows = [fit_time.in_a_process(name, log, size.members, size.epochs) for name, log in logs.items()]
    timed += keras.seconds(size.keras_steps)
    keras.close()
    steps = -(-(PAPER_ROWS - WINDOW + 1) // BATCH) * PAPER_EPOCHS * PAPER_MEMBERS
    low, median, high = np.quantile(timed, [0.25, 0.5, 0.75])
    rows.append({
        **rows[0], "fit": "the paper's recipe in Keras, estimated", "members": PAPER_MEMBERS, "epochs": PAPER_EPOCHS, "steps": steps,
        "seconds": round(median * steps), "reading_s": "", "compile_s": "", "peak_mb": "",
    })  # fmt: skip
    notes = (
        f"{keras.version}: one-target windows of {WINDOW} steps, {BATCH} a step, member after member; {len(timed)} steps took "
        f"{1e3 * median:.1f} ms each (quartiles {1e3 * low:.1f} to {1e3 * high:.1f}), times {steps} steps: an estimate, not a run",
        "seconds include reading the log; compile_s is apart; network, members and epochs are the same in both",
    )
    write(out / "fit_time.csv", rows, *notes)
    show("whole fits", rows)


def tick(size: Size, out: Path) -> None:
    arguments = ["--out", str(out / "tick.csv"), "--rounds", str(size.tick_rounds)]
    subprocess.run([sys.executable, "-m", "benchmarks.speed.tick", *arguments], check=True)


def start(size: Size, out: Path) -> None:
    rows = start_time.measure(size.starts)
    write(out / "start_time.csv", rows, "quartiles over fresh processes, in turns")
    show("starting", rows)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open() as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def targets(out: Path) -> list[Row]:
    """The main figures from the CSVs, beside what they should be (required, goal)."""
    rows: list[Row] = []

    def add(
        what: str, found: list[float], unit: str, required: float | None, goal: float | None = None, most: bool = False
    ) -> None:
        for value in found:
            sign = -1 if most else 1
            kept = [
                name for name, bound in (("goal", goal), ("yes", required)) if bound and sign * (value - bound) >= 0
            ]
            met = "" if required is None else kept[0] if kept else "no"
            rows.append({"figure": what, "measured": f"{value:.3g}", "unit": unit, "required": required or "", "goal": goal or "", "met": met})  # fmt: skip

    steps = {row["contender"]: row for row in read(out / "training_step.csv")}
    add("training step", [float(r["median_s"]) for n, r in steps.items() if n == training_step.OURS], "s", None)
    wanted = {"nn.LSTM in threads": (1.8, 2.5), "Keras/TensorFlow in a loop": (12, None)}
    for name, row in steps.items():
        if name != training_step.OURS:
            add(
                f"training step against {name}", [float(row["ours_is_faster_by"])], "x", *wanted.get(name, (None, None))
            )
    fits = {row["fit"]: row for row in read(out / "fit_time.csv")}
    add(
        "fit 30 x 300, 765 s at 10 Hz",
        [float(r["seconds"]) for n, r in fits.items() if n == "paper"],
        "s",
        90,
        60,
        True,
    )
    for name, row in fits.items():
        if "Keras" in name:
            add(f"fit 30 x 300 against {name}", [float(row["seconds"]) / float(fits["paper"]["seconds"])], "x", None)
    add(
        "fit of 42 trips at 1 Hz, 30 members",
        [float(r["seconds"]) for n, r in fits.items() if n == "fleet"],
        "s",
        240,
        None,
        True,
    )
    add("its memory", [float(r["peak_mb"]) for n, r in fits.items() if n == "fleet"], "MB", 1500, None, True)
    ticks = read(out / "tick.csv")

    def ticked(measure: str, contender: str, vehicles: int = 1) -> list[float]:
        return [float(r["median"]) for r in ticks if r["part"] in ("one vehicle", "fleet") and r["measure"] == measure
                and r["contender"] == contender and int(r["vehicles"]) == vehicles]  # fmt: skip

    for name, most in (("float32", 150), ("float16 weights", 100)):
        add(f"tick p50, {name}", ticked("p50_us", name), "us", most, None, True)
        add(f"tick p99, {name}", ticked("p99_us", name), "us", None)
        add(
            f"vehicle-ticks/s of 10,000, one core, {name}",
            ticked("vehicle_ticks_per_cpu_s", name, 10_000),
            "/s",
            25_000,
            40_000,
        )
    add("tick against ONNX Runtime, LSTM nodes", ticked("times faster than ONNX Runtime LSTM nodes", "float32"), "x", 8)
    add("tick against ONNX Runtime, our batched graph", ticked("times faster than ONNX Runtime", "float32"), "x", None)
    starts = {row["what"]: float(row["median_s"]) for row in read(out / "start_time.csv")}
    for name, seconds in starts.items():
        add(name, [seconds], "s", 3 if name == "evband predict, second process" else None, None, True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--data", type=Path, help="folder of the real logs, for the fit of 42 trips")
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes, only to try the script; writes to .bench/quick"
    )
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:THREADS])
    torch.set_num_threads(THREADS)
    size, out = (QUICK, Path(".bench/quick")) if given.quick else (Size(), RESULTS)
    jobs = {
        "step": lambda: step(size, out),
        "growth": lambda: growth(size, out),
        "fit": lambda: fit(size, out, given.data),
        "tick": lambda: tick(size, out),
        "start": lambda: start(size, out),
    }
    for part in given.parts:
        jobs[part]()
    rows = targets(out)
    write(out / "bench.csv", rows, "the main figures of the CSVs beside this one; met: no, yes (required) or goal")
    show("main figures", rows)


if __name__ == "__main__":
    main()
