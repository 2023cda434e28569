"""A newcomer's path in a bare environment: from `pip install` of the built wheel to a range band for a named car.

    python -m benchmarks.speed.newcomer [--repeats 5]

Builds the wheel, makes an environment with nothing in it, and types five commands: `python -m venv`, `pip install`,
`evband vehicles`, `evband start`, `evband range`. Then every command that the base install has is typed again, once to
compile what is not yet compiled and `--repeats` times for the median. pip takes packages from wherever this machine's
pip does, in the versions of constraints.txt; where that is the network, its speed is in the figure.
"""

from __future__ import annotations

import argparse
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from statistics import median

from benchmarks.common.results_file import RESULTS, Row, show, write

ROOT = Path(__file__).parents[2]
RANGE = "range zoe.evband --soc 80 --capacity-kwh 52 --distance-km 200 --speed-kmh 100 --ambient 5"
PATH = ('vehicles "renault zoe"', 'start "Renault Zoe 52 kWh" -o zoe.evband', RANGE)
BEYOND = (
    "--version", "range --help", "info zoe.evband", "inspect drive.csv", "convert drive.csv -o trips.parquet",
    "predict zoe.evband drive.csv -o bands.parquet", "energy zoe.evband drive.csv", "evaluate zoe.evband drive.csv",
    "adapt zoe.evband drive.csv -o adapted.evband", "stream zoe.evband < ticks.jsonl", "doctor",
)  # fmt: skip
MOST_S, MOST_MB, MOST_COMMAND_S = 120.0, 700, 1.0


class Bare:
    """An environment with the wheel and what it asks for, and a folder to work in."""

    def __init__(self, place: Path) -> None:
        self.place, self.folder = place, place / "work"
        self.folder.mkdir()
        keep = ("PATH", "HOME", "LANG", "TMPDIR")
        self.environment = {k: v for k, v in os.environ.items() if k in keep or k.startswith(("PIP_", "SSL_"))}
        self.environment["PATH"] = f"{place / 'env' / 'bin'}{os.pathsep}{self.environment['PATH']}"

    def seconds(self, line: str) -> float:
        """Wall time of one shell line, which must succeed."""
        return self.clocks(line)[0]

    def clocks(self, line: str) -> tuple[float, float]:
        """Wall time, and processor time (which other work on the machine disturbs less), of one shell line."""
        begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(line, shell=True, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            sys.exit(f"{line} failed:\n{done.stdout[-1000:]}{done.stderr[-1000:]}")
        return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    def size_mb(self) -> float:
        """What its files take, pip and compiled code included."""
        return sum(file.lstat().st_size for file in (self.place / "env").rglob("*") if not file.is_dir()) / 1e6

    def torch(self) -> bool:
        return any((self.place / "env").glob("lib/python*/site-packages/torch"))


def write_drive(folder: Path, seconds: int = 900) -> None:
    """A made-up drive of a quarter of an hour as a log and as ticks: speed up and down between 30 and 90 km/h."""
    speed = [60.0 - 30.0 * math.cos(2.0 * math.pi * t / 120.0) if t > 5 else 0.0 for t in range(seconds)]
    power = [0.5 + 0.11 * v + 8e-6 * v**3 for v in speed]
    rows = [f"{t},{v:.2f},{p:.2f},15" for t, (v, p) in enumerate(zip(speed, power, strict=True))]
    (folder / "drive.csv").write_text("\n".join(["time_s,speed_kmh,power_kw,ambient_temp_c", *rows]) + "\n")
    ticks = [f'{{"utc": {t}, "speed": {v:.2f}}}' for t, v in enumerate(speed)]
    (folder / "ticks.jsonl").write_text("\n".join(ticks) + "\n")


def wheel(out: Path) -> Path:
    """The wheel of this checkout."""
    code = f"from hatchling.build import build_wheel; print(build_wheel({str(out)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return out / done.stdout.split()[-1]


def row(what: str, typed: str, first: float, limit: str = "", met: bool | None = None) -> Row:
    said = "" if met is None else "met" if met else "missed"
    return {"what": what, "command": typed, "first_s": f"{first:.2f}", "again_s": "", "again_cpu_s": "", "limit": limit, "met": said}  # fmt: skip


def command(what: str, line: str, first: float, again: list[tuple[float, float]]) -> Row:
    """A command typed for the first time, and its medians over more."""
    wall, cpu = (median(times) for times in zip(*again, strict=True))
    found = row(what, f"evband {line}", first, "1 s again", wall < MOST_COMMAND_S)
    return {**found, "again_s": f"{wall:.2f}", "again_cpu_s": f"{cpu:.2f}"}


def measure(repeats: int) -> tuple[list[Row], str]:
    with tempfile.TemporaryDirectory() as place:
        bare = Bare(Path(place))
        built = wheel(Path(place))
        constraints = ROOT / "constraints.txt"
        begin = time.perf_counter()
        venv.create(Path(place) / "env", with_pip=True)
        made = time.perf_counter() - begin
        installed = bare.seconds(f"pip install --quiet --constraint {constraints} {built}")
        first = [bare.seconds(f"evband {line}") for line in PATH]
        whole, size = made + installed + sum(first), bare.size_mb()
        write_drive(bare.folder)
        beyond = [bare.seconds(f"evband {line}") for line in BEYOND]
        times: dict[str, list[tuple[float, float]]] = {line: [] for line in (*PATH, *BEYOND)}
        for _ in range(repeats):
            for line, found in times.items():
                found.append(bare.clocks(f"evband {line}"))
        rows = [row("1", "python -m venv env", made), row("2", f"pip install {built.name}", installed)]
        rows += [command(str(k + 3), line, first[k], times[line]) for k, line in enumerate(PATH)]
        rows.append(row("all five", "", whole, f"{MOST_S:.0f} s", whole < MOST_S))
        rows += [command("beyond", line, seconds, times[line]) for line, seconds in zip(BEYOND, beyond, strict=True)]
        note = f"environment: {size:.0f} MB after the five commands (limit {MOST_MB}), torch in it: {bare.torch()}"
        return rows, note


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=RESULTS / "newcomer.csv")
    given = parser.parse_args()
    rows, note = measure(given.repeats)
    write(
        given.out,
        rows,
        f"first_s: typed for the first time; again_s: median of {given.repeats} more, again_cpu_s: their processor time",
        note,
    )
    show(note, rows)


if __name__ == "__main__":
    main()
