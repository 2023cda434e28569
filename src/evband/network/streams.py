"""Random numbers: a stream of its own for each member and purpose."""

from __future__ import annotations

import numpy as np

ANCHOR, START, BOOTSTRAP, WINDOWS, DROPOUT = range(5)


def stream(seed: int, member: int, purpose: int, *more: int) -> np.random.Generator:
    """The random numbers of one member for one purpose; they never depend on how many members there are."""
    return np.random.default_rng([seed, member, purpose, *more])


def of_passes(seed: int, count: int) -> list[np.random.Generator]:
    """Of the masks of each pass through a dropout network that predicts."""
    return [stream(seed, number, DROPOUT, 0) for number in range(count)]
