"""Are real logs read right? Every check of the readers and the grid, against plain arithmetic on the raw files.

    python -m benchmarks.checks.read_logs --data DIR

DIR holds the logs (`peugeot_e208_carscanner/raw`, `car_scanner_long`, `bmw_i3_road`, ...). Each e-208 export is parsed a
second time with Python's own csv module, so that nothing under test is used to test it. One line a check goes to
`benchmarks/results/read_logs.csv`; the exit status is 1 if any fails.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import platform
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

import evband
from evband.trips import Trip
from evband.trips.power import PowerCurve

RESULTS = Path(__file__).parents[1] / "results" / "read_logs.csv"
GAP_S = 10.0
HZ = 0.5
Check = tuple[str, str, str, str, bool]  # log, check, measured, wanted, passed


def plain_columns(path: Path, *names: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """(seconds since midnight, value) of columns of an app's wide export, by the csv module alone."""
    with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as file:
        rows = list(csv.reader(file))
    found = []
    for name in names:
        column = rows[0].index(name)
        read = [(row[0], row[column]) for row in rows[1:] if row[column]]
        clock = [
            sum(float(part) * unit for part, unit in zip(t.split(":"), (3600, 60, 1), strict=True)) for t, _ in read
        ]
        seconds, value = np.array(clock), np.array([float(v) for _, v in read])
        kept = np.append(np.diff(seconds) > 0, True)
        found.append((seconds[kept], value[kept]))
    return found


def check_e208(path: Path) -> Iterator[Check]:
    trip = evband.read_trips(path)[0]
    current, voltage, speed = plain_columns(
        path, "Battery DC Current (A)", "Battery DC Voltage (V)", "Vehicle speed (km/h)"
    )
    log = path.name.removesuffix(".csv.gz")

    kw = current[1] * np.interp(current[0], *voltage) / 1000
    plain = plain_energy(current[0], kw, [(-np.inf, np.inf)])
    kept = PowerCurve.of(trip.series("power_kw"), GAP_S).energy_kwh()
    yield (
        log,
        "energy / plain trapezoids - 1",
        f"{kept / plain - 1:+.6f}",
        "within 0.005",
        abs(kept / plain - 1) <= 0.005,
    )

    shift = speed[0][0] - trip.series("speed_kmh")[0][0]  # the trip counts from its first reading
    grid = trip.on_grid(HZ)
    rows = grid.table.filter(pl.col("power_kw").is_not_null())
    gridded = float(rows["power_kw"].sum()) / HZ / 3600
    in_rows = plain_energy(current[0], kw, [(end - 1 / HZ, end) for end in rows["time_s"].to_numpy() + shift])
    off = gridded / in_rows - 1
    yield (
        log,
        "energy on the grid / plain trapezoids over its rows - 1",
        f"{off:+.6f}",
        "within 0.005",
        abs(off) <= 0.005,
    )
    yield log, "share of energy in no row (speed silent, ends)", f"{1 - in_rows / plain:.5f}", "told", True

    for rate in (10.0, HZ):  # finer than the readings, and coarser: neither may rest on a reading to come
        changed = rows_that_know_the_future(trip, rate)
        yield log, f"of 20 cuts at {rate:g} Hz, those after which earlier rows change", str(changed), "0", changed == 0


def plain_energy(seconds: np.ndarray, kw: np.ndarray, stretches: list[tuple[float, float]]) -> float:
    """kWh of straight lines between readings at most a gap apart, inside these stretches."""
    total = 0.0
    for start, end in stretches:
        first, last = np.searchsorted(seconds, [start, end])
        for i in range(max(first - 1, 0), min(last, len(seconds) - 1)):
            a, b = max(start, seconds[i]), min(end, seconds[i + 1])
            if b > a and seconds[i + 1] - seconds[i] <= GAP_S:
                at_a, at_b = np.interp([a, b], seconds[i : i + 2], kw[i : i + 2])
                total += (b - a) * (at_a + at_b) / 2
    return total / 3600


def rows_that_know_the_future(trip: Trip, hz: float, cuts: int = 20) -> int:
    """At how many of `cuts` instants the rows so far are not what they are in a log that ends there."""
    wrong, grid = 0, trip.on_grid(hz)
    inputs = [
        name for name in ("time_s", "speed_kmh", "acceleration_ms2", "ambient_temp_c") if name in grid.table.columns
    ]
    times = grid.table["time_s"].to_numpy()
    for cut in times[np.linspace(1, len(times) - 1, cuts).astype(int)]:
        ended = trip.between(-np.inf, float(cut)).on_grid(hz)
        before = grid.table.filter(pl.col("time_s") <= cut)
        names = [name for name in inputs if name in ended.table.columns]  # a slow channel may not have come yet
        wrong += int(not ended.table.select(names).equals(before.head(len(ended)).select(names)))
    return wrong


def check_parked(path: Path) -> Iterator[Check]:
    trip = evband.read_trips(path)[0]
    speed, volts = trip.series("speed_kmh")[1], trip.series("battery_voltage_v")[1]
    yield "car_scanner_long", "largest speed, km/h", f"{np.abs(speed).max():g}", "0", bool((speed == 0).all())
    spread = f"{volts.min():.1f}..{volts.max():.1f}"
    yield "car_scanner_long", "pack voltage, V", spread, "one, near 353", bool(((volts > 350) & (volts < 356)).all())


def check_tables(data: Path) -> Iterator[Check]:
    """The three tables: fills found by themselves, energy kept, and the time it takes."""
    for name, hz in (("bmw_i3_road", 10.0), ("tesla_model3_dyno", 10.0), ("tesla_model3_road", 4.0)):
        began = time.perf_counter()
        trips = evband.read_trips(str(data / name / "*.parquet"))
        read = time.perf_counter()
        grid = trips.on_grid(1.0)
        took = f"{read - began:.2f} read, {time.perf_counter() - read:.2f} grid"
        yield name, f"seconds for {sum(map(len, trips))} rows", took, "under 10", time.perf_counter() - began < 10
        fills = [(t.trip_id, f) for t in trips if t.report for f in t.report.of("fill")]
        told = "; ".join(f"{trip} {f.start_s:.1f}-{f.end_s:.1f} s" for trip, f in fills) or "none"
        wanted = "TripB02 39-199 s" if name == "bmw_i3_road" else "none"
        right = [trip for trip, _ in fills] == (["TripB02"] if name == "bmw_i3_road" else [])
        yield name, "straight-line fills", told, wanted, right and all(abs(f.end_s - 199) < 1 for _, f in fills)
        logged = sum(float(t.table["power_kw"].sum()) for t in trips) / hz / 3600
        kept = sum(float(t.table["power_kw"].sum()) for t in grid) / 3600
        yield (
            name,
            "energy on the grid / as logged - 1",
            f"{kept / logged - 1:+.6f}",
            "within 0.001",
            abs(kept / logged - 1) < 1e-3,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the real logs")
    data = parser.parse_args().data
    checks: list[Check] = []
    drives = sorted((data / "peugeot_e208_carscanner" / "raw").glob("*.csv.gz"))
    checks.append(("peugeot_e208_carscanner", "drives", str(len(drives)), "19", len(drives) == 19))
    for path in drives:
        checks.extend(check_e208(path))
    for path in (data / "car_scanner_long").glob("*.csv.gz"):
        checks.extend(check_parked(path))
    checks.extend(check_tables(data))
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("w", newline="", encoding="utf-8") as file:
        file.write("# command: python -m benchmarks.checks.read_logs --data DIR\n")
        file.write(f"# machine: {os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, ")
        file.write(f"polars {pl.__version__}, evband {evband.__version__}\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["log", "check", "measured", "wanted", "passed"])
        writer.writerows((*check[:4], "yes" if check[4] else "NO") for check in checks)
    for check in checks:
        if not check[4]:
            print("failed:", *check[:4], sep="  ")
    print(f"{sum(check[4] for check in checks)} of {len(checks)} checks passed; {RESULTS}")
    sys.exit(any(not check[4] for check in checks))


if __name__ == "__main__":
    main()
