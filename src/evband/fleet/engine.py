"""Runs one function over batches of cars: in this process, in a pool, or on Ray. The answers are the same.

A batch reads its own logs and writes its own parts, so what travels is small; a car that is done is not done again, so
a batch that is lost with its worker is simply repeated: alone, then car by car, until the one car is known that no
worker survives. What all batches share is handed over once.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from evband.errors import SettingsError, require

Rows = list[dict[str, Any]]
Batch = list[Any]
Work = Callable[[Any, Batch], Rows]  # (what all batches share, a batch) -> rows of its cars
Lost = Callable[[Any, str], Rows]  # (a car, why) -> the row of a car that no worker survived

AHEAD = 2  # batches in flight per worker
STORE_BYTES = 256 << 20
ANSWER_S = 5.0  # that a cluster may take to answer
START_S = 120  # that a cluster on this machine may take to start, where it is busy
# one thread per worker: there is a worker per core
PINNED = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)
KILLED = "the worker died while it was at this car, perhaps for memory; run this car alone."


def run(
    work: Work,
    shared: Any,
    batches: Sequence[Batch],
    lost: Lost,
    workers: int = 1,
    ray: str = "off",
    gpus: float = 0.0,  # that a batch asks Ray for
) -> Iterator[Rows]:
    """Rows of each batch as it ends."""
    workers = min(workers, len(batches))
    if ray != "off":
        yield from _on_ray(work, shared, batches, lost, workers, ray, gpus)
    elif workers <= 1:
        for batch in batches:
            yield work(shared, batch)
    else:
        yield from _in_pool(work, shared, batches, lost, workers)


_shared: Any = None  # in a worker


def _take(work: Work, shared: Any) -> None:
    global _shared
    _shared = work, shared


def _do(batch: Batch) -> Rows:
    work, shared = _shared
    return list(work(shared, batch))


def _in_pool(work: Work, shared: Any, batches: Sequence[Batch], lost: Lost, workers: int) -> Iterator[Rows]:
    left, suspects = deque(batches), deque[Batch]()  # those in flight when a worker died are suspects
    while left or suspects:
        running: dict[Future[Rows], Batch] = {}
        with _pinned(), _pool(work, shared, workers) as pool:
            try:
                while left or suspects or running:
                    while suspects and not running:  # alone, so that a death is its own
                        running[pool.submit(_do, suspects[0])] = suspects[0]
                        suspects.popleft()
                    while left and not suspects and len(running) < AHEAD * workers:
                        running[pool.submit(_do, left[0])] = left[0]
                        left.popleft()
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        rows = future.result()
                        del running[future]
                        yield rows
            except BrokenProcessPool:
                died = list(running.values())
                if len(died) == 1 and len(died[0]) == 1:
                    yield lost(died[0][0], KILLED)
                elif len(died) == 1:
                    suspects.extendleft([car] for car in reversed(died[0]))
                else:
                    suspects.extend(died)


def _pool(work: Work, shared: Any, workers: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(workers, get_context("spawn"), initializer=_take, initargs=(work, shared))


@contextmanager
def _pinned() -> Iterator[None]:
    """Processes that are started within have one thread each."""
    had = {name: os.environ.get(name) for name in PINNED}
    os.environ.update(PINNED)
    try:
        yield
    finally:
        for name, value in had.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _on_ray(
    work: Work, shared: Any, batches: Sequence[Batch], lost: Lost, workers: int, address: str, gpus: float
) -> Iterator[Rows]:
    """With what is shared in the object store once, and a bounded number of batches in flight; Ray repeats lost ones."""
    require("ray", "a fleet on Ray")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", str(START_S))
    import ray

    mine = not ray.is_initialized()
    if mine:
        _connect(address, workers)
    try:
        if gpus and gpus > ray.cluster_resources().get("GPU", 0.0):  # batches would wait for it forever
            raise SettingsError("Ray has no GPU; use --device cpu.")
        task = ray.remote(work).options(max_retries=2, num_gpus=gpus)
        try:
            thing = ray.put(shared)
        except ray.exceptions.RayError as problem:
            raise SettingsError(
                f"Ray's object store does not take the base ({_first(problem)}); give it more memory."
            ) from None
        left, running = deque(batches), dict[Any, Batch]()
        while left or running:
            while left and len(running) < AHEAD * workers:
                batch = left.popleft()
                running[task.remote(thing, batch)] = batch
            (done,), _ = ray.wait(list(running), num_returns=1)
            batch = running.pop(done)
            try:
                yield ray.get(done)
            except ray.exceptions.RayError as problem:  # thrice, whatever it was: worker, node, memory, store
                if len(batch) > 1:
                    left.extendleft([car] for car in reversed(batch))
                else:
                    yield lost(batch[0], f"its task failed on Ray ({_first(problem)}); run this car alone.")
    finally:
        if mine:
            ray.shutdown()


def _connect(address: str, workers: int) -> None:
    import ray

    host, _, port = address.removeprefix("ray://").rpartition(":")
    if address != "auto" and not (host and port.isdecimal()):
        raise SettingsError(f"--ray {address!r} is none of auto, off and HOST:PORT; correct it.")
    try:
        if address == "auto":  # a cluster on this machine, made for the job
            with _pinned():
                ray.init(
                    num_cpus=workers, include_dashboard=False, object_store_memory=STORE_BYTES, log_to_driver=False
                )
        else:
            socket.create_connection((host, int(port)), ANSWER_S).close()
            ray.init(address=address, log_to_driver=False, runtime_env={"env_vars": PINNED})
    except Exception as problem:  # Ray raises plain ones
        raise SettingsError(
            f"Ray at {address} does not answer ({_first(problem)}); check the address, or use --ray off."
        ) from None


def _first(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]
