"""`evband doctor`: what a bug report needs, and whether this installation reads, computes and writes as it should."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import evband
from evband.errors import installed

PARTS = (
    "numpy", "scipy", "numba", "llvmlite", "polars", "narwhals", "scikit-learn", "safetensors", "typer", "rich", "torch", "triton", "matplotlib", "plotly",
    "fastsim", "asammdf", "openpyxl", "onnx", "onnxruntime", "optuna", "pandas", "pyarrow",
)  # fmt: skip
VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "NUMBA_CACHE_DIR",
    "NUMBA_DISABLE_JIT",
    "POLARS_MAX_THREADS",
    "CUDA_VISIBLE_DEVICES",
)


def facts() -> list[tuple[str, str]]:
    """(name, value) of the environment; nothing in it names a person, a folder of theirs, or a host."""
    found = [
        ("evband", evband.__version__),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}, {platform.architecture()[0]})"),
        ("system", f"{platform.system()} {platform.release()}, {platform.machine()}"),
        ("cores", f"{_cores()} usable of {os.cpu_count()}"),
        ("memory", _memory()),
        ("output", f"{sys.stdout.encoding}"),
    ]
    found += [(name, _version(name)) for name in PARTS]
    found += [(name, os.environ[name]) for name in VARIABLES if name in os.environ]
    found += [("GPU", _gpu()), ("compiled code", _cache()), ("temporary files", _writable(Path(tempfile.gettempdir())))]
    return found


def checks() -> list[tuple[str, Callable[[], str]]]:
    """(name, what does it); each returns what it saw, or raises."""
    return [("read a log", _read), ("compile and run", _compute), ("write a file", _write)]


def run_checks() -> list[tuple[str, bool, str]]:
    """(name, whether it went well, what was seen) of every check; about ten seconds when nothing is compiled yet."""
    results = []
    for name, check in checks():
        started = time.perf_counter()
        try:
            seen, well = check(), True
        except Exception as problem:  # whatever is wrong here is what is to be shown
            seen, well = f"{type(problem).__name__}: {problem}", False
        results.append((name, well, f"{seen} ({time.perf_counter() - started:.1f} s)"))
    return results


def _read() -> str:
    """A made-up drive through reader, cleaning and grid: its energy must survive."""
    from evband.logs.reading import read_trips

    time_s = np.arange(0.0, 300.0, 0.5)
    kw = 10.0 + 5.0 * np.sin(time_s / 9.0)
    rows = "".join(f"{t},{50 + 20 * np.sin(t / 9.0):.3f},{p:.6f}\n" for t, p in zip(time_s, kw, strict=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "drive.csv"
        path.write_text("time_s,speed_kmh,power_kw\n" + rows)
        trip = read_trips(path)[0].on_grid(1.0)
    energy = float(trip.table["power_kw"].sum()) / 3600.0
    wanted = float(kw[1:].sum()) * 0.5 / 3600.0
    if not abs(energy - wanted) < 0.01 * wanted:
        raise ArithmeticError(f"{energy:.4f} kWh instead of {wanted:.4f}")
    return f"{len(trip)} rows, {energy:.3f} kWh"


def _compute() -> str:
    """Numba compiles a loop and gets its sum right."""
    import numba

    @numba.njit(cache=False)  # type: ignore[untyped-decorator, unused-ignore]
    def total(values: np.ndarray) -> float:
        result = 0.0
        for value in values:
            result += value * value
        return result

    values = np.linspace(0.0, 1.0, 1001)
    if not abs(total(values) - float(values @ values)) < 1e-9:
        raise ArithmeticError("a compiled sum is wrong")
    return f"numba {numba.__version__}, {numba.get_num_threads()} threads"


def _write() -> str:
    from evband.files import whole_file

    with tempfile.TemporaryDirectory() as folder:
        with whole_file(Path(folder) / "x.txt") as temporary:
            temporary.write_text("whole")
        if (Path(folder) / "x.txt").read_text() != "whole":
            raise OSError("what was written is not what is read")
    return "whole or not at all"


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB"
    except (ValueError, OSError, AttributeError):
        return "unknown"


def _gpu() -> str:
    if not installed("torch"):
        return "not looked for: torch is not installed"
    import torch

    if not torch.cuda.is_available():
        return "none that torch can use"
    return ", ".join(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))


def _cache() -> str:
    """Where compiled kernels are kept between processes."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    return (
        f"kept in NUMBA_CACHE_DIR: {_writable(Path(given))}"
        if given
        else f"kept beside the package: {_writable(Path(evband.__file__).parent)}"
    )


def _writable(path: Path) -> str:
    if not path.exists():
        return "the folder does not exist"
    return "can be written" if os.access(path, os.W_OK) else "read-only"
