"""Planned energy of cars that nobody has measured: `evband start` with a data sheet, then each measured trip as a router would plan it.

    python -m benchmarks.measured.started_plans --data DIR      # -> results/started_plans.csv; predicts only

`with drivers`: what drives take beyond plans as simulated drivers say it (`evband.adaptation.plans`); `as planned`: without it. Of
trips over 5 minutes: `cover90` of the 90 % band, its mean width over the mean energy, the median error over the trip's energy and
the bias: sum of predicted minus measured energy over the sum of measured. Cars count alike in the row `all`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import stdtrit

import evband
from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.measured.cold_start import CARS, SHORTEST_S
from evband.energy import ErrorModel, stretch_energy
from evband.energy.calibrating import planned_of, predicted_drives
from evband.energy.drives import Drive
from evband.energy.planned import Planned, router_says
from evband.features.rows import power_of
from evband.trips import Trip, Trips

MEASURED = 0.95  # share of a trip's rows whose power is known


def plans_of(data: Path, logs: str) -> dict[str, tuple[Trip, float]]:
    """Trips of a log as planned, and the kWh that each took."""
    found = {}
    for trip in evband.read_trips(str(data / logs)).on_grid(1.0):
        if not trip.has("power_kw") or len(trip) < SHORTEST_S:
            continue
        power, route = power_of(trip), router_says(trip)
        if route is not None and np.isfinite(power).mean() >= MEASURED:
            kwh = float(np.nanmean(power)) * len(trip) / 3600.0
            found[trip.trip_id] = (Trip(trip.trip_id, route.on_grid(1.0).table, 1.0), kwh)
    return found


def scored(drives: list[Drive], used: np.ndarray, errors: ErrorModel, beyond: Planned) -> dict[str, Any]:
    bands = [stretch_energy(drive, slice(0, len(drive)), errors) for drive in drives]
    more = [beyond.over(d.distance_km[-1], beyond.counted_km(d.speed_kmh, d.hz)) for d in drives]
    mean = np.array([band.mean_kwh + float(shift) for band, (shift, _) in zip(bands, more, strict=True)])
    half = float(stdtrit(errors.dof, 0.95)) * np.array(
        [np.hypot(b.scale_kwh, np.sqrt(v)) for b, (_, v) in zip(bands, more, strict=True)]
    )
    return {
        "trips": len(used), "cover90": float(np.mean(np.abs(used - mean) <= half)), "width90": 2 * float(half.mean() / used.mean()),
        "median_error": float(np.median(np.abs(used - mean) / np.maximum(np.abs(used), 0.1))), "bias": float((mean - used).sum() / used.sum()),
    }  # fmt: skip


def car_rows(data: Path, car: str) -> list[dict[str, Any]]:
    logs, mass, cda, crr = CARS[car]
    model, found = evband.start(mass_kg=mass, cda_m2=cda, crr=crr), plans_of(data, str(logs))
    drives = predicted_drives(model, Trips(plan for plan, _ in found.values()))
    used = np.array([kwh for _, kwh in found.values()])
    drivers = planned_of(model)
    assert drivers is not None
    contenders = {"with drivers": drivers, "as planned": Planned(0.0, 0.0, 0.0, 1)}
    return [{"car": car, "contender": n, **scored(drives, used, model.errors_, b)} for n, b in contenders.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    rows = []
    for car in CARS:
        rows += car_rows(given.data, car)
        print(rows[-2:], flush=True)
    for name in dict.fromkeys(row["contender"] for row in rows):
        same = [row for row in rows if row["contender"] == name]
        mean = {k: float(np.mean([row[k] for row in same])) for k in ("cover90", "width90", "median_error", "bias")}
        rows.append({"car": "all", "contender": name, "trips": sum(row["trips"] for row in same), **mean})
    shown = [{k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    write(RESULTS / "started_plans.csv", shown, "data sheets as in cold_start.py; no measured log is used but to score")
    show("started plans", shown)


if __name__ == "__main__":
    main()
