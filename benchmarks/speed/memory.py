"""Memory of predicting a whole day: 24 h at 10 Hz (864,000 rows), 30 members of the default preset.

    python -m benchmarks.speed.memory [--hours 24] [--members 30]

The peak is of the whole process (VmHWM), bands at 90 % and the table that `evband predict` writes included; the drive
is made up, since only its length matters.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.common.results_file import Row, write
from evband.model import PowerModel
from evband.trips import Trip, Trips

HZ = 10.0


def drive(name: str, rows: int, seed: int) -> Trip:
    """A made-up drive on the 10 Hz grid."""
    rng = np.random.default_rng(seed)
    knots = np.maximum(rng.uniform(-5, 35, rows // 200 + 2), 0.0)
    v = np.interp(np.arange(rows), 200.0 * np.arange(len(knots)), knots)
    a = np.diff(v, prepend=v[0]) * HZ
    table = pl.DataFrame(
        {
            "time_s": (1 + np.arange(rows)) / HZ,
            "speed_kmh": 3.6 * v,
            "acceleration_ms2": a,
            "power_kw": 0.5 + 0.12 * v + 0.00045 * v**3 + 1.6 * a * v + 0.5 * rng.standard_t(5, rows),
        }
    )
    return Trip(name, table.with_columns(segment=pl.lit(0, pl.Int32)), hz=HZ)


def peak_mb() -> float:
    """VmHWM of this process in MB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/memory.csv"))
    given = parser.parse_args()
    trips = Trips(drive(f"drive {i}", 600, i) for i in range(3))
    model = PowerModel(members=given.members, epochs=1, hz=HZ, device="cpu").fit(trips)
    fitted_mb, rows = peak_mb(), int(given.hours * 3600 * HZ)
    day = Trips([drive("day", rows, 99)])
    began = time.perf_counter()
    table = model.predict(day).to_frame(0.9)
    seconds = time.perf_counter() - began
    row: Row = {
        "rows": table.height,
        "members": given.members,
        "network": f"{model.settings_.layers}x{model.settings_.hidden}",
        "peak_mb": round(peak_mb()),
        "peak_before_predicting_mb": round(fitted_mb),
        "seconds": round(seconds, 1),
    }
    print(row)
    write(given.out, [row])


if __name__ == "__main__":
    main()
