"""Runs one function over batches of cars: in this process, in a pool, or on Ray. The answers are the same.

A batch reads its own logs and writes its own parts, so what travels is small; a car that is done is not done again, so
a run that was cut short goes on where it ended.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from evband.errors import SettingsError, require

Work = Callable[[Any, Any], list[dict[str, Any]]]  # (what all batches share, a batch) -> a row per car

AHEAD = 2  # batches in flight per worker
STORE_BYTES = 256 << 20


def run(
    work: Work, shared: Any, batches: Sequence[Any], workers: int = 1, ray: str = "off"
) -> Iterator[list[dict[str, Any]]]:
    """Rows of each batch as it ends."""
    if ray != "off":
        yield from _on_ray(work, shared, batches, workers, ray)
    elif workers <= 1 or len(batches) <= 1:
        for batch in batches:
            yield work(shared, batch)
    else:
        yield from _in_pool(work, shared, batches, workers)


def _in_pool(work: Work, shared: Any, batches: Sequence[Any], workers: int) -> Iterator[list[dict[str, Any]]]:
    left = list(batches)
    running: set[Future[list[dict[str, Any]]]] = set()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            while left or running:
                while left and len(running) < AHEAD * workers:
                    running.add(pool.submit(work, shared, left.pop(0)))
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        except BrokenProcessPool:
            raise SettingsError(
                "a worker was killed, perhaps for memory; run it again with fewer --workers: cars that are done stay done."
            ) from None


def _on_ray(
    work: Work, shared: Any, batches: Sequence[Any], workers: int, address: str
) -> Iterator[list[dict[str, Any]]]:
    """With what is shared in the object store once, and a bounded number of batches in flight; Ray repeats lost ones."""
    require("ray", "a fleet on Ray")
    import ray

    mine = not ray.is_initialized()
    if mine:
        try:
            if address == "auto":  # a cluster on this machine, made for the job
                ray.init(
                    num_cpus=workers, include_dashboard=False, object_store_memory=STORE_BYTES, log_to_driver=False
                )
            else:
                ray.init(address=address, log_to_driver=False)
        except (ConnectionError, ValueError, RuntimeError) as problem:
            raise SettingsError(
                f"Ray at {address} does not answer ({str(problem).splitlines()[0]}); check the address, or use --ray off."
            ) from None
    try:
        task, thing = ray.remote(work), ray.put(shared)
        left = list(batches)
        running: list[Any] = []
        while left or running:
            while left and len(running) < AHEAD * workers:
                running.append(task.remote(thing, left.pop(0)))
            done, running = ray.wait(running, num_returns=1)
            yield ray.get(done[0])
    finally:
        if mine:
            ray.shutdown()
