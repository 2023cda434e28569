"""The ways to compute the ensemble LSTM, chosen by device and by what is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from torch import Tensor

if TYPE_CHECKING:
    from evband.network.lstm import LayerWeights, Masks, State

    Kernel = Callable[[Tensor, list[LayerWeights], State | None, Masks | None], tuple[Tensor, State]]


def choose(backend: str, x: Tensor, layers: list[LayerWeights]) -> Kernel:
    """The kernel for this backend name; ``auto`` takes the fastest that runs on x's device."""
    from evband.network.kernels import reference

    if backend == "auto":
        backend = "reference"
    if backend == "reference":
        return reference.run
    raise ValueError(f"unknown backend {backend!r}; choose auto, reference, cpu or cuda")
