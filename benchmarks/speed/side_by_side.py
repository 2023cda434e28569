"""This version beside another one, in turns on the same cores: is anything slower than it was?

    python -m benchmarks.speed.side_by_side --old PATH [--data DIR] [--rounds 5] [--fits i3 ved_leaf_10] [--out FILE]

PATH is a checkout of the other version (`git worktree add PATH 3f40aa2`). Each has a process of its own, with the same
packages. Short jobs take turns, old and new in changing order, and the ratio is that within a round. A whole fit takes
minutes, in which a machine changes its mind: both fits are under way together, one stopped while the other has the
cores for a second, and each is timed by the seconds that it had. A second row has the processor's seconds, which other
programs disturb less.

- tick: one vehicle's next row and a fleet of 480, 30 members (one core), quantiles of the mixture included;
- step: forward and backward of 30 members of 4 x 32 on 64 windows of 64 steps;
- predict, features, reading: 42 simulated trips by a model of 30 members, and a log of a million readings;
- commands: `evband info` and `evband predict` from outside;
- fits of the BMW i3 (42 trips, 1 Hz) and of a Leaf whose log is full of gaps (0.5 Hz), reading included: the same work
  in both versions, from random weights and cut at silences, with ``--members 10 --epochs 4``; with ``--full`` also as
  each version fits by default (30 members, this version from its base, and the Leaf's silences bridged). With ``--rounds 2 --fits i3 ved_leaf_10 --members 10 --epochs 4`` all of it takes
  about ten minutes, with ``--full`` about fifteen more.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

FITS = {"i3": ("bmw_i3_road/*.parquet", 1.0), "ved_leaf_10": ("fleet/ved_leaf_10.parquet", 0.5)}
THREADS, SESSIONS, SLICE_S = 2, 4, 1.0
Job = Callable[[], object]


# The worker: runs in either version, so it imports what both have --------------------------------------------------


def ticking(layers: int, vehicles: int, precision: str) -> Job:
    members, hidden, features, road, rng = 30, 32, 6, 20, np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"head_w": (2, hidden), "head_b": (2,), "nu_raw": (), "road_w": (road,)}
    for k in range(layers):
        shapes |= {f"w_ih.{k}": (4 * hidden, hidden if k else features), f"w_hh.{k}": (4 * hidden, hidden)}
        shapes[f"bias.{k}"] = (4 * hidden,)
    params = {
        name: (rng.standard_normal((members, *shape)) / np.sqrt(shape[-1] if shape else 1.0)).astype(np.float32)
        for name, shape in shapes.items()
    }
    target, run = {"y_mean": 5.0, "y_std": 15.0}, {"vehicles": vehicles, "precision": precision}
    try:
        ensemble = import_module("evband.network.ensemble").Ensemble(params, **target)
        engine: Any = import_module("evband.network.tick").Engine(ensemble, **run)
    except ImportError:
        engine = import_module("evband.tick").Engine(params, **target, **run)
    x = np.sin(rng.standard_normal((64, vehicles, features))).astype(np.float32)
    r = np.sin(rng.standard_normal((64, vehicles, road))).astype(np.float32)

    def job() -> None:
        for t in range(64 if vehicles == 1 else 2):
            if vehicles == 1:
                engine.tick(x[t, 0], r[t, 0])
            else:
                engine.tick_many(x[t], r[t])

    return job


def stepping() -> Job:
    import torch

    from evband.network.lstm import LayerWeights, ensemble_lstm

    torch.manual_seed(0)
    layers = [
        LayerWeights(
            *(torch.randn(30, *s).mul_(0.1).requires_grad_() for s in ((128, 32 if k else 5), (128, 32), (128,)))
        )
        for k in range(4)
    ]
    x, dy = torch.randn(30, 64, 64, 5), torch.randn(30, 64, 64, 32)
    return lambda: ensemble_lstm(x, layers, backend="cpu")[0].backward(dy)


def jobs(folder: Path) -> dict[str, Job]:
    import evband

    model, trips = evband.load(folder / "car.evband"), evband.read_trips(folder / "trips.parquet").on_grid(1.0)

    def command(*words: str) -> Job:
        return lambda: subprocess.run(
            [sys.executable, "-m", "evband", *words], cwd=folder, check=True, capture_output=True
        )

    return {
        "tick, 30 of 4x32, float32": ticking(4, 1, "float32"),
        "tick, 30 of 4x32, float16 weights": ticking(4, 1, "reduced"),
        "tick, 30 of 1x32, float32": ticking(1, 1, "float32"),
        "tick of 480 vehicles, 30 of 4x32": ticking(4, 480, "float32"),
        "training step": stepping(),
        "predict 42 trips, with limits": lambda: model.predict(trips).interval(0.9),
        "features of 42 trips": lambda: [model.feature_map_.transform(trip) for trip in trips],
        "reading a million readings": lambda: evband.read_trips(next(folder.glob("20*.csv"))),
        "evband info": command("info", "car.evband"),
        "evband predict": command("predict", "car.evband", "trips.parquet", "-o", f"bands{os.getpid()}.parquet"),
    }


def fitting(data: Path, name: str, given: argparse.Namespace) -> Job:
    import evband

    files, hz = FITS[name]
    shape = {} if given.full else {"members": given.members, "epochs": given.epochs}
    alike: dict[str, Any] = {} if given.full else {"from_base": False, "bridge_s": 0.0}
    start = {name: value for name, value in alike.items() if name in evband.PowerModel().get_params()}

    def fit(**chosen: Any) -> Any:
        model = evband.PowerModel(hz=hz, device="cpu", **start, **chosen)
        return model.fit(evband.read_trips(str(data / files)))

    fit(members=5, epochs=1)  # compiles
    return lambda: fit(**shape)


def work(given: argparse.Namespace) -> None:
    """Do the job named on each line of standard input, and answer with its seconds and the processor's."""
    import torch

    torch.set_num_threads(THREADS)
    made = jobs(given.worker) if not given.fits else {n: fitting(given.data, n, given) for n in given.fits}
    print(json.dumps(list(made)), flush=True)
    cores = sorted(os.sched_getaffinity(0))[:THREADS]
    for line in sys.stdin:
        job = line.strip()
        os.sched_setaffinity(0, cores[:1] if job.startswith("tick") else cores)
        begin, busy = time.perf_counter(), time.process_time()
        made[job]()
        print(json.dumps([time.perf_counter() - begin, time.process_time() - busy]), flush=True)


# The master -------------------------------------------------------------------------------------------------------


class Side:
    """One version in its own process."""

    def __init__(self, tree: Path, folder: Path, words: list[str]) -> None:
        environment = os.environ | {"PYTHONPATH": str(tree / "src")}
        again = [sys.executable, __file__, "--old", ".", "--worker", str(folder), *words]
        self.process = subprocess.Popen(
            again, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
        )
        self.jobs: list[str] = self.answer()

    def ask(self, job: str) -> None:
        assert self.process.stdin
        print(job, file=self.process.stdin, flush=True)

    def answer(self) -> Any:
        assert self.process.stdout
        return json.loads(self.process.stdout.readline())

    def ready(self, seconds: float) -> bool:
        assert self.process.stdout
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def close(self) -> None:
        self.process.communicate()


def row(job: str, old: Any, new: Any, how: str) -> dict[str, object]:
    old, new, rounds = np.atleast_1d(old), np.atleast_1d(new), np.size(old)
    low, ratio, high = np.quantile(new / old, [0.25, 0.5, 0.75])
    figures = {"old_s": np.median(old), "new_s": np.median(new)}
    ratios = {"ratio": ratio, "low": low, "high": high}
    return {"job": job, **{k: f"{v:.4g}" for k, v in figures.items()}, **{k: f"{v:.3f}" for k, v in ratios.items()}, "rounds": rounds, "how": how}  # fmt: skip


def in_turns(sides: list[Side], job: str, rounds: int) -> Any:
    """[2, rounds] seconds of old and new."""
    once = []
    for side in sides:  # compiles, and says how many fit into a tenth of a second
        side.ask(job)
        side.answer()
        side.ask(job)
        once.append(side.answer()[0])
    repeats, took = max(1, int(0.1 / max(once))), np.zeros((2, rounds))
    for k in range(rounds):
        for n in (0, 1) if k % 2 else (1, 0):
            times = []
            for _ in range(repeats):
                sides[n].ask(job)
                times.append(sides[n].answer()[0])
            took[n, k] = np.median(times)
    return took


def sliced(sides: list[Side], job: str, how: str) -> list[dict[str, object]]:
    """Both under way, one stopped while the other runs: seconds that each had, and that its threads worked."""
    had, done = [0.0, 0.0], [False, False]
    for side in sides:
        side.ask(job)
        side.process.send_signal(signal.SIGSTOP)
    while not all(done):
        for n, side in enumerate(sides):
            if not done[n]:
                begin = time.perf_counter()
                side.process.send_signal(signal.SIGCONT)
                done[n] = side.ready(SLICE_S)
                side.process.send_signal(signal.SIGSTOP)
                had[n] += time.perf_counter() - begin
    busy = []
    for side in sides:
        side.process.send_signal(signal.SIGCONT)
        busy.append(side.answer()[1])
    name = f"fit of {job}, {how}"
    return [row(name, had[0], had[1], f"slices of {SLICE_S:g} s"), row(name, busy[0], busy[1], "processor seconds")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", type=Path, required=True)
    parser.add_argument("--data", type=Path, help="folder of the real logs, for the fits")
    parser.add_argument("--rounds", type=int, default=5, help="of each of four pairs of processes")
    parser.add_argument("--fits", nargs="*", choices=FITS, default=[])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--full", action="store_true", help="fit also as each version does by default")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/side_by_side.csv"))
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        work(given)
        return
    from benchmarks.common.results_file import show, write
    from benchmarks.speed.read_speed import make_log
    from evband.simulation.drives import simulated_log

    trees = [given.old.resolve(), Path(__file__).resolve().parents[2]]
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        (folder / "2026-01-01 05-33-20.csv").write_bytes(make_log(1_000_000))
        simulated_log("sedan_1", hz=1, trips=42).write_parquet(folder / "trips.parquet")
        make = "import evband; evband.PowerModel(epochs=1, device='cpu').fit(evband.read_trips('trips.parquet')).save('car.evband')"
        environment = os.environ | {"PYTHONPATH": str(trees[0] / "src")}  # what the old one writes, both can read
        subprocess.run([sys.executable, "-c", make], cwd=folder, env=environment, check=True)
        rows: list[dict[str, object]] = []
        if given.rounds:
            took: dict[str, list[Any]] = {}
            for _ in range(SESSIONS):  # in new processes: where memory falls is worth some percent
                sides = [Side(tree, folder, []) for tree in trees]
                for job in sides[0].jobs:
                    took.setdefault(job, []).append(in_turns(sides, job, given.rounds))
                for side in sides:
                    side.close()
            pooled = [(job, tuple(np.concatenate(found, axis=1))) for job, found in took.items()]
            rows += [row(job, both[0], both[1], "in turns") for job, both in pooled]
        short = f"{given.members} members, {given.epochs} epochs"
        shape = ["--members", str(given.members), "--epochs", str(given.epochs)]
        ways = {short: shape} | ({"as by default": ["--full"]} if given.full else {})
        for fit, (how, words) in itertools.product(given.fits, ways.items()):
            sides = [Side(tree, folder, ["--data", str(given.data.resolve()), "--fits", fit, *words]) for tree in trees]
            rows += sliced(sides, fit, how)
            for side in sides:
                side.close()
    write(given.out, rows, "ratio = new / old: median over rounds with quartiles; under 1 is faster than before")
    show("this version beside the other", rows)


if __name__ == "__main__":
    main()
