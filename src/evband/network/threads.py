"""Who gets the cores: the CPU kernel all of them, the small tensor operations around it one.

PyTorch's threads wait for each other by spinning. Around a kernel that fills every core anyway they save a few
milliseconds of a step on an idle machine, and on a busy one multiply it: 0.72 s instead of 0.16 s a step was measured
(30 members of 1 x 64, two cores, three other programs running).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_kept_for_kernels: list[int] = []


def kernel_threads() -> int:
    """Threads a kernel may use."""
    if _kept_for_kernels:
        return _kept_for_kernels[-1]
    torch = sys.modules.get("torch")  # never imported for this: a fitted model predicts without it
    return _cores() if torch is None else int(torch.get_num_threads())


def _cores() -> int:
    """What PyTorch would use: OMP_NUM_THREADS, or every core that this process may run on."""
    with suppress(KeyError, ValueError):
        return max(1, int(os.environ["OMP_NUM_THREADS"]))
    with suppress(AttributeError):  # not on every system
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def cores_for_kernels() -> Iterator[None]:
    """Within, PyTorch's own operations run on one thread and kernels on as many as PyTorch had."""
    import torch

    had = torch.get_num_threads()
    _kept_for_kernels.append(kernel_threads())
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(had)
        _kept_for_kernels.pop()
