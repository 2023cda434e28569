"""The ways to compute the ensemble LSTM, chosen by device and by what is installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evband.errors import installed

if TYPE_CHECKING:
    from torch import Tensor

    from evband.network.lstm import LayerWeights, Masks, State

    Kernel = Callable[[Tensor, list[LayerWeights], State | None, Masks | None, Tensor | None], tuple[Tensor, State]]


def choose(backend: str, x: Tensor, layers: list[LayerWeights]) -> Kernel:
    """The kernel for this backend name; ``auto`` takes the fastest that runs on x's device."""
    from evband.network.kernels import reference

    if backend == "auto":
        backend = _fastest(x)
    if backend == "reference":
        return reference.run
    if backend == "cuda":
        from evband.network.kernels import cuda

        return cuda.run
    if backend == "cpu":
        from evband.network.kernels import cpu_autograd

        return cpu_autograd.run
    raise ValueError(f"unknown backend {backend!r}; choose auto, reference, cpu or cuda")


def _fastest(x: Tensor) -> str:
    import torch

    if x.dtype == torch.float32 and x.is_cuda and installed("triton"):
        return "cuda"
    if x.dtype == torch.float32 and x.device.type == "cpu" and installed("numba"):
        return "cpu"
    return "reference"
