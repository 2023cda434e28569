"""Capture a training step as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def capture(step: Callable[[], None], keep: list[Tensor], more: Callable[[], list[Tensor]]) -> Callable[[], None]:
    """Capture ``step`` (a function of static tensors only) and return its replay.

    The warm-up steps that a capture needs change weights and moments; ``keep`` (and what ``more`` names once the
    optimiser has made its moments) is put back, so that a captured run takes the same steps as a plain one.
    """
    saved = [t.detach().clone() for t in keep]
    known = {id(t) for t in keep}
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    with torch.no_grad():
        for tensor, old in zip(keep, saved, strict=True):
            tensor.copy_(old)
        for tensor in more():
            if id(tensor) not in known:
                tensor.zero_()
    return graph.replay
