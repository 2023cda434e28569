"""How long a fleet of made-up cars takes, and how large it is: `python -m benchmarks.fleet.scale --cars 10000`.

Each car has three trips of ten minutes, with plain physics and numbers of its own; the lake is Parquet, 500 cars per file.
Prints one CSV row: cars, workers, engine, seconds, seconds per car, bytes per part, pooled coverage, warnings.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from evband.fleet import fit_fleet
from evband.simulation.cycles import follow, random_drive

TRIPS, SECONDS, PER_FILE = 3, 600, 500


def car(number: int) -> pl.DataFrame:
    """Three drives of one car: traction at 85 to 95 %, half of braking back, some hundred watts beside it."""
    rng = np.random.default_rng(number)
    mass, cda, crr = 1600.0 * rng.normal(1.0, 0.08), 0.62 * rng.normal(1.0, 0.08), 0.009 * rng.normal(1.0, 0.15)
    good, aux = rng.uniform(0.85, 0.95), rng.uniform(0.3, 1.0)
    tables = []
    for trip in range(TRIPS):
        reference = random_drive([("town", 200.0), ("rural", 200.0), ("motorway", 300.0)], rng)
        v = follow(reference, 1.0, SECONDS, 0.5, rng)
        a = np.gradient(v)
        wheel = (1.05 * mass * a + crr * mass * 9.81 * (v > 0.1) + 0.6 * cda * v**2) * v / 1000.0
        power = aux + np.where(wheel > 0, wheel / good, 0.6 * wheel) + 0.5 * rng.standard_normal(SECONDS)
        columns = {"time_s": np.arange(float(SECONDS)), "speed_kmh": 3.6 * v, "power_kw": power}
        tables.append(pl.DataFrame(columns).with_columns(trip_id=pl.lit(f"{number}-{trip}")))
    return pl.concat(tables).with_columns(vehicle_id=pl.lit(f"car{number:06d}"))


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cars", type=int, default=100)
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--ray", default="off")
    given = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lake, fleet = Path(folder) / "lake", Path(folder) / "fleet"
        lake.mkdir()
        for first in range(0, given.cars, PER_FILE):
            numbers = range(first, min(first + PER_FILE, given.cars))
            pl.concat([car(n) for n in numbers]).write_parquet(lake / f"{first}.parquet")
        began = time.perf_counter()
        table = fit_fleet([str(lake)], fleet, mass_kg=1600.0, cda_m2=0.62, workers=given.workers, ray=given.ray)
        seconds = time.perf_counter() - began
        size = sum(file.stat().st_size for file in (fleet / "cars").iterdir()) / max(1, len(table))
    warned = int((table["warning"] != "").sum())
    print("cars,workers,ray,seconds,seconds_per_car,bytes_per_part,coverage,warnings")
    print(
        f"{given.cars},{given.workers},{given.ray},{seconds:.1f},{seconds / given.cars:.4f},{size:.0f},"
        f"{np.nanmean(table['coverage'].to_numpy().astype(float)):.3f},{warned}"
    )


if __name__ == "__main__":
    main()
