"""How long a command takes to start: imports, compiling for the first time, and from the cache of compiled code.

    python -m benchmarks.speed.start_time [--repeats 7]

Every figure is of fresh processes, in turns. "first process" has an empty cache of compiled code, "second process" the
cache that the first left; `evband predict` reads a log of 766 s and a model of 30 members, and is timed from outside.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.common.results_file import RESULTS, Row, show, write

COMPILED = """
import time, torch
from evband.network.lstm import LayerWeights, ensemble_lstm
torch.set_num_threads(2)
w = [torch.randn(30, *size).mul_(0.1).requires_grad_() for size in ((128, 5), (128, 32), (128,))]
begin = time.perf_counter()
ensemble_lstm(torch.randn(30, 64, 64, 5), [LayerWeights(*w)], backend="cpu")[0].sum().backward()
print(time.perf_counter() - begin)
"""


def python(code: str, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return ran.stdout


def importing(what: str) -> Callable[[], float]:
    code = f"import time; begin = time.perf_counter(); import {what}; print(time.perf_counter() - begin)"
    return lambda: float(python(code))


def make_model(folder: Path) -> None:
    python(
        f"""
import evband
from evband.simulation.drives import simulated_log
simulated_log("sedan_1", hz=1).write_parquet(r"{folder}/log.parquet")
evband.PowerModel(epochs=1, calibrate=False, device="cpu").fit(evband.read_trips(r"{folder}/log.parquet")).save(r"{folder}/car.evband")
"""
    )


def predicting(folder: Path, cache: Path) -> float:
    """Wall time of one `evband predict`."""
    evband = Path(sys.executable).parent / "evband"
    begin = time.perf_counter()
    subprocess.run(
        [evband, "predict", folder / "car.evband", folder / "log.parquet", "-o", folder / "bands.parquet"],
        check=True, capture_output=True, env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
    )  # fmt: skip
    return time.perf_counter() - begin


def row(what: str, seconds: list[float]) -> Row:
    low, median, high = np.quantile(seconds, [0.25, 0.5, 0.75])
    figures = {"median_s": median, "low_s": low, "high_s": high}
    return {"what": what, "repeats": len(seconds), **{k: f"{v:.3f}" for k, v in figures.items()}}


def measure(repeats: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as place:
        folder, cache = Path(place), Path(place) / "cache"
        make_model(folder)
        first = {
            "training step, first process": [float(python(COMPILED, NUMBA_CACHE_DIR=str(cache)))],
            "evband predict, first process": [predicting(folder, Path(place) / "other")],
        }
        jobs: dict[str, Callable[[], float]] = {
            "import evband": importing("evband"),
            "import evband.model": importing("evband.model"),
            "import torch, for comparison": importing("torch"),
            "training step, second process": lambda: float(python(COMPILED, NUMBA_CACHE_DIR=str(cache))),
            "evband predict, second process": lambda: predicting(folder, Path(place) / "other"),
        }
        seconds: dict[str, list[float]] = {name: [] for name in jobs}
        for _ in range(repeats):
            for name, job in jobs.items():
                seconds[name].append(job())
    return [row(name, values) for name, values in {**first, **seconds}.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, default=RESULTS / "start_time.csv")
    given = parser.parse_args()
    rows = measure(given.repeats)
    write(given.out, rows, "quartiles over fresh processes, in turns")
    show("starting", rows)


if __name__ == "__main__":
    main()
