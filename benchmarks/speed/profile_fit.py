"""Where the time of the paper's fit goes: one training step of 30 members on a run of 765 s at 10 Hz, in parts.

    python -m benchmarks.speed.profile_fit [--rounds 15]

Parts in turns, medians. `as many operations in torch's matmul`: what no program in single precision undercuts.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import torch

import evband
from benchmarks.common.results_file import show, write
from benchmarks.speed import training_step
from benchmarks.speed.bench import BOUND
from evband.preparing import prepare
from evband.settings import resolve
from evband.simulation.drives import simulated_log
from evband.training.loop import Trainer
from evband.training.objective import gather
from evband.training.plan import members_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    settings = resolve("paper", hz=10.0, features="S1")
    trips = evband.read_trips(simulated_log("sedan_1", hz=10, trips=1)).on_grid(10.0)
    job = prepare(trips, settings).job
    trainer = Trainer(job.architecture(settings), job.data, members_of(job, settings), settings, "cpu")
    batch = trainer.set_batch(trainer.epoch_batches(0)[:, 0], 0)
    shape = training_step.Shape(settings.members, 4, 32, trainer.batch, trainer.window, job.data.x.shape[1])
    parts: dict[str, training_step.Step] = {
        "the whole step": trainer.step_once,
        "LSTM, forward and backward": training_step.ensemble(shape, *training_step.data(shape), "cpu"),
        "taking the windows' rows": lambda: gather(trainer.rows, batch, trainer.window),
        "Adam": trainer.optimiser.step,
        BOUND: training_step.matmuls(shape),
    }
    found = training_step.timed(parts, given.rounds)
    whole = found["the whole step"]
    rows = [
        {"part": name, "median_s": f"{np.median(s):.4f}", "low_s": f"{np.quantile(s, 0.25):.4f}", "high_s": f"{np.quantile(s, 0.75):.4f}",
         "share": f"{np.median(s / whole):.2f}", "times_600_s": f"{600 * np.median(s):.0f}"}
        for name, s in found.items()
    ]  # fmt: skip
    note = f"{trainer.batch} windows of {trainer.window} steps, {shape.gflop():.1f} GFLOP; the fit has 600 such steps"
    write(
        Path("benchmarks/results/profile_fit.csv"), rows, note, "what is left is the head, the likelihood and the prior"
    )
    show("one step of the paper's fit", rows)


if __name__ == "__main__":
    main()
