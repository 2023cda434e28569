"""Does the epistemic part tell what a model does not know? It must fall with data and rise where nothing was trained on.

    python -m benchmarks.measured.epistemic --data ../shared/data [--members 10] [--models .bench/epistemic]

`amount`: nested training sets of 1x, 4x and 16x trips, the same test trips (fold 0 of splits.csv).
`city`: Tesla trips that never pass 80 km/h train; asked are other such trips, and the rows over 90 km/h of trips with a
motorway, with and without the trip bootstrap. `ratio` is the epistemic deviation there over that on the city trips.

Deviations are roots of mean variances over rows after 30 s of warm-up; `epistemic_kw` is that of the members, before calibration
multiplies all by `stretch`. Coverage is that of the calibrated 90 % bands, its interval the honest one over trips.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.results_file import Row, show, write
from benchmarks.common.tasks import TASKS, split, trips_of
from benchmarks.measured.season import fitted
from evband.bands import Bands
from evband.scores import coverage_interval
from evband.settings import Settings
from evband.trips import Trip, Trips

AMOUNTS = {"i3_motion": (2, 8, 32), "tesla_road": (3, 12, 48)}  # task -> trips
CITY_KMH, MOTORWAY_KMH = 80.0, 90.0
HELD_OUT = 4  # of the city trips every fourth


def scores(bands: Bands, use: NDArray[np.bool_]) -> dict[str, float]:
    """Scores of the rows `use`, which must have measured power."""
    bands = bands.rows(use)
    y = np.asarray(bands.power_kw)
    lower, upper = bands.interval(0.9)
    covered = (lower <= y) & (y <= upper)
    low, high = coverage_interval(covered, bands.trip_id)
    return {
        "rows": len(y),
        "epistemic_kw": float(np.sqrt(np.mean((bands.epistemic / bands.stretch) ** 2))),
        "epistemic_median_kw": float(np.median(bands.epistemic / bands.stretch)),
        "aleatoric_kw": float(np.sqrt(np.mean((bands.aleatoric / bands.stretch) ** 2))),
        "stretch": float(np.median(bands.stretch)),
        "rmse_kw": float(np.sqrt(np.mean((y - bands.mean) ** 2))),
        "bias_kw": float(np.mean(y - bands.mean)),
        "coverage": float(covered.mean()),
        "low": low,
        "high": high,
        "width_kw": float((upper - lower).mean()),
    }


def scored(bands: Bands) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = np.isfinite(np.asarray(bands.power_kw)) & ~bands.warmup
    return mask


def amount(data: Path, models: Path | None, name: str, **settings: Any) -> list[dict[str, Any]]:
    """One row for each amount of training trips."""
    task = TASKS[name]
    train, test = split(task, data, 0)
    order = np.random.default_rng(0).permutation(len(train))
    rows = []
    for trips in AMOUNTS[name]:
        path = None if models is None else models / f"{name}_{trips}.evband"
        model = fitted(
            Trips(train[int(i)] for i in order[:trips]), path, features=task.features, hz=task.hz, **settings
        )
        bands = model.predict(test)
        asked = {"study": "amount", "log": name, "resample": "", "train_trips": trips, "asked": f"{len(test)} trips"}
        rows.append(asked | scores(bands, scored(bands)))
        print(rows[-1], flush=True)
    return rows


def top_speed(trip: Trip) -> float:
    return float(np.nanmax(trip.table["speed_kmh"].to_numpy()))


def city(data: Path, models: Path | None, resample: str | None, **settings: Any) -> list[dict[str, Any]]:
    """The rows of a model that never saw a motorway: on city trips, and on the motorway."""
    trips = trips_of(TASKS["tesla_road"], data)
    slow = [trip for trip in trips if top_speed(trip) <= CITY_KMH]
    fast = Trips(trip for trip in trips if top_speed(trip) > MOTORWAY_KMH)
    train, held = Trips(t for i, t in enumerate(slow) if i % HELD_OUT), Trips(slow[::HELD_OUT])
    path = None if models is None else models / f"city_{resample or 'plain'}.evband"
    model = fitted(train, path, resample=resample, **settings)
    near, far = model.predict(held), model.predict(fast)
    assert far.speed_kmh is not None
    head = {"study": "city", "log": "tesla_road", "resample": resample or "none", "train_trips": len(train)}
    rows: list[dict[str, Any]] = [
        head | {"asked": f"{len(held)} city trips"} | scores(near, scored(near)),
        head
        | {"asked": f"over {MOTORWAY_KMH:.0f} km/h, {len(fast)} trips"}
        | scores(far, scored(far) & (far.speed_kmh > MOTORWAY_KMH)),
    ]
    rows[1]["ratio"] = rows[1]["epistemic_kw"] / rows[0]["epistemic_kw"]
    print(*rows, sep="\n", flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--models", type=Path)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/epistemic.csv"))
    given = parser.parse_args()
    found = [
        row for resample in (None, "trips") for row in city(given.data, given.models, resample, members=given.members)
    ]
    found += [row for name in AMOUNTS for row in amount(given.data, given.models, name, members=given.members)]
    rows: list[Row] = [
        {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in {**row, "ratio": row.get("ratio", "")}.items()}
        for row in found
    ]
    show("epistemic part", rows)
    write(given.out, rows, f"1 Hz, {given.members} members, temperature {Settings().temperature:g}, seed 0")


if __name__ == "__main__":
    main()
