"""A table of results as a CSV that says how it came about, and the same on the terminal."""

from __future__ import annotations

import csv
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

import evband

Row = Mapping[str, object]
RESULTS = Path(__file__).parents[1] / "results"
MODELS = Path(".bench/models")  # one for each task and fold, written by benchmarks.measured.folds


def machine() -> str:
    """Processor, cores that may be used, versions."""
    cpu, info = platform.processor() or platform.machine(), Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((line.split(":")[1].strip() for line in info.read_text().splitlines() if "model name" in line), cpu)
    return (
        f"{cpu}, {len(os.sched_getaffinity(0))} cores, {platform.machine()}; Python {platform.python_version()}, "
        f"evband {evband.__version__}, torch {version('torch')}, numba {version('numba')}"
    )


def command() -> str:
    """As typed, but for where somebody's data lies."""
    before, typed = ["", *sys.argv[1:-1]], sys.argv[1:]
    spec = sys.modules["__main__"].__spec__
    words = ["DIR" if b in ("--data", "--old", "--kept") else word for b, word in zip(before, typed, strict=False)]
    return " ".join(["python -m", spec.name if spec else Path(sys.argv[0]).stem, *words])


def write(path: Path, rows: Sequence[Row], *notes: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        for line in (command(), f"{machine()}; load average at the end {os.getloadavg()[0]:.1f}", *notes):
            file.write(f"# {line}\n")
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def show(title: str, rows: Sequence[Row]) -> None:
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=170).print(table)
