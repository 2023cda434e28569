"""How long reading a long-format log of a million rows takes, against polars parsing the same bytes.

    python -m benchmarks.speed.read_speed [--rows 1000000] [--repeats 9]

The log is made up here in Car Scanner's manner: five PIDs that matter among twenty cell voltages. The contestants take
turns, so that a busy machine slows both alike: `polars.read_csv` of the bytes, our reader of the same bytes (channels in
our units, before cleaning), and `evband.read_trips` of the file (cleaned trips with their report).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import evband
from benchmarks.common.results_file import RESULTS, write
from evband.logs.formats import car_scanner_long
from evband.trips.readings import ReadOptions


def make_log(rows: int, seed: int = 0) -> bytes:
    """A drive whose PIDs are asked in turn, 25 per second."""
    rng = np.random.default_rng(seed)
    pids = [
        "Vehicle speed",
        "[BMS] Battery Current",
        "[BMS] Battery DC Voltage",
        "[BMS] State of Charge BMS",
        "[HVAC] Outdoor Temperature",
    ]
    units = ["km/h", "A", "V", "%", "℃"]
    cells = 20
    pids += [f"[BMS] Cell voltage {i:03d}" for i in range(cells)]
    units += ["V"] * cells
    turn = np.arange(rows) % len(pids)
    seconds = 20_000 + np.arange(rows) * 0.04 + rng.uniform(0, 0.01, rows)
    speed = 60 + 50 * np.sin(seconds / 97) + 8 * np.sin(seconds / 13)
    columns = [
        np.maximum(speed, 0),
        40 * np.cos(seconds / 13) + 0.4 * speed,
        390 - 0.1 * speed,
        90 - (seconds - 20_000) / 700,
        12 + 0 * seconds,
    ]
    value = np.choose(np.minimum(turn, len(columns)), [*columns, 3.68 + rng.normal(0, 0.002, rows)])
    frame = pl.DataFrame({
        "seconds": np.round(seconds, 6),
        "pid": pl.Series(pids).gather(turn),
        "value": np.round(value, 4),
        "unit": pl.Series(units).gather(turn),
    })  # fmt: skip
    lines = frame.select(pl.format('"{}";"{}";"{}";"{}";', "seconds", "pid", "value", "unit")).to_series()
    return ('"SECONDS";"PID";"VALUE";"UNITS";\r\n' + "\r\n".join(lines) + "\r\n").encode()


def seconds(job: Callable[[], object]) -> float:
    start = time.perf_counter()
    job()
    return time.perf_counter() - start


def main() -> None:
    """Time the contestants in turn, print and keep the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=9)
    args = parser.parse_args()
    data = make_log(args.rows)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "2026-01-01 05-33-20.csv"
        path.write_bytes(data)
        jobs: dict[str, Callable[[], object]] = {
            "polars.read_csv": lambda: pl.read_csv(data, separator=";"),
            "reader": lambda: car_scanner_long.read(path, data, ReadOptions()),
            "evband.read_trips": lambda: evband.read_trips(path),
        }
        for job in jobs.values():
            job()
        times = {name: np.empty(args.repeats) for name in jobs}
        for i in range(args.repeats):
            for name, job in jobs.items():
                times[name][i] = seconds(job)
    base = times["polars.read_csv"]
    rows = [
        {
            "job": name,
            "rows": args.rows,
            "megabytes": round(len(data) / 1e6, 1),
            "median_s": round(float(np.median(t)), 4),
            "fastest_s": round(float(t.min()), 4),
            "slowest_s": round(float(t.max()), 4),
            "median_ratio": round(float(np.median(t / base)), 2),
        }
        for name, t in times.items()
    ]
    table = pl.DataFrame(rows)
    print(table)
    note = (
        "median_ratio: median over repeats of job time / polars.read_csv time in the same turn; the target is at most 3"
    )
    write(RESULTS / "read_speed.csv", table.to_dicts(), f"polars {pl.__version__}", note)
    if max(row["median_ratio"] for row in rows) > 3:
        sys.exit("reading takes more than three times as long as parsing")


if __name__ == "__main__":
    main()
