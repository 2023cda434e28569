"""PyTorch: its LSTM in a loop over members or in threads, and evband's plain reference. Runs in evband's environment."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

from benchmarks.speed import training_step

torch.set_num_threads(len(os.sched_getaffinity(0)))
VERSION = f"torch {torch.__version__}"
Work = Callable[[dict[str, int]], training_step.Step]


def _loop(which: int) -> Work:
    def work(shape: dict[str, int]) -> training_step.Step:
        s = training_step.Shape(**shape)
        return training_step.loop(s, *training_step.data(s))[which]

    return work


def reference(shape: dict[str, int]) -> training_step.Step:
    s = training_step.Shape(**shape)
    return training_step.ensemble(s, *training_step.data(s), "reference")


WORK: dict[str, Work] = {"loop": _loop(0), "threads": _loop(1), "reference": reference}
