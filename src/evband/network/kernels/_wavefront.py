"""The order in which a stack of recurrent layers can run side by side on a GPU.

Layer k at time chunk n needs layer k - 1 at chunk n and itself at chunk n - 1. A layer's programs spend their time
waiting for each other's steps, so layers on streams of their own overlap almost for free: with L layers and N chunks
the length of the chain falls from L N to L + N - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

import torch

LEAST = 8  # steps of a chunk, so that starting it costs little beside it

Chunk = tuple[int, int]  # first step, one past the last


def cut(time: int, most: int) -> list[Chunk]:
    """Up to ``most`` chunks of time, in order."""
    count = max(1, min(most, time // LEAST))
    return list(pairwise(time * n // count for n in range(count + 1)))


def run(
    order: list[int],  # layers, in the order data passes through them
    chunks: list[Chunk],  # in the order time is walked
    device: torch.device,
    launch: Callable[[int, Chunk], None],  # one layer over one chunk
    aside: Callable[[int, Chunk], None] | None = None,  # what follows it and no other layer waits for
) -> None:
    """Launch every layer over every chunk, each as early as what it needs allows."""
    streams = _Streams(device, len(order))
    for diagonal in range(len(order) + len(chunks) - 1):
        for rank in reversed(range(len(order))):  # so that the layer before is still at the chunk this one needs
            if 0 <= diagonal - rank < len(chunks):
                layer, chunk = order[rank], chunks[diagonal - rank]
                with streams.lane(rank):
                    launch(layer, chunk)
                if aside:
                    with streams.aside(rank):
                        aside(layer, chunk)
    streams.join()


class _Streams:
    """A stream for each layer, and one of lower priority that fills their gaps. On a CPU: nothing."""

    def __init__(self, device: torch.device, count: int) -> None:
        self.lanes: list[torch.cuda.Stream] = []
        self.filler: torch.cuda.Stream | None = None
        self.here: torch.cuda.Stream | None = None
        if device.type == "cuda":
            self.here = torch.cuda.current_stream(device)
            self.lanes, self.filler = _streams(device, count)
            for stream in (*self.lanes, self.filler):
                stream.wait_stream(self.here)

    @contextmanager
    def lane(self, rank: int) -> Iterator[None]:
        """For what needs all that the layer before, and this one, have launched."""
        if not self.lanes:
            yield
            return
        if rank:
            self.lanes[rank].wait_stream(self.lanes[rank - 1])
        with torch.cuda.stream(self.lanes[rank]):
            yield

    @contextmanager
    def aside(self, rank: int) -> Iterator[None]:
        if self.filler is None:
            yield
            return
        self.filler.wait_stream(self.lanes[rank])
        with torch.cuda.stream(self.filler):
            yield

    def join(self) -> None:
        if self.here is not None and self.filler is not None:
            for stream in (*self.lanes, self.filler):
                self.here.wait_stream(stream)


@cache
def _streams(device: torch.device, count: int) -> tuple[list[torch.cuda.Stream], torch.cuda.Stream]:
    return [torch.cuda.Stream(device, priority=-1) for _ in range(count)], torch.cuda.Stream(device)
