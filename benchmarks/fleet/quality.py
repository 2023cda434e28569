"""With three trips per car: the fleet's part against the prior alone and against a fit of the car's own trips.

    python -m benchmarks.fleet.quality --cars 400                   # simulated -> results/fleet_quality.csv
    python -m benchmarks.fleet.quality --data DIR                   # adds the real cars, each make left out in turn
    python -m benchmarks.fleet.quality                              # the summary of the cars that are kept

Simulated cars are those of `benchmarks.fleet.simulated` beyond the first 10,000; trips 0 to 2 are learned from, the
next twenty are the test (on two, cars that are all covered alike would seem to differ). A real car learns from its first
three trips of at least five minutes and is tested on up to 20 later ones; its base is learned from the cars of the other makes. *Own* is least squares on the road load with Student-t residuals,
`evband.rivals.LeastSquares`, on the same trips (a whole ensemble on so few is in results/cold_start.csv, `alone`).
Intervals are 95 %, over cars: of means by Student-t, of medians by order statistics. `_if_alike` and `of_it_the_test` say how far cars would seem to differ if every one
were covered at 0.9 in truth: coverage differs from trip to trip, and the test has few.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import quantile_test, sem, t

import evband
from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.fleet import simulated
from evband.adaptation import Base
from evband.adaptation.starting import sheet_of, started
from evband.errors import EvbandError
from evband.fleet.learning import learned
from evband.fleet.prior import between, facts_of
from evband.rivals.least_squares import LeastSquares
from evband.trips import Trips
from evband.vehicles import Sheet

FIRST, LEARN, TEST = 10_000, 3, 20
LEAST_S, MOST_TEST = 300, 20

Car = tuple[str, Sheet, Trips, Trips, Base]


def simulated_cars(count: int) -> Iterator[Car]:
    for number in range(FIRST, FIRST + count):
        trips = evband.read_trips(simulated.table(number, range(LEARN + TEST)).drop("vehicle_id"), hz=1.0)
        yield f"car{number:06d}", simulated.car(number)[0], trips[:LEARN], trips[LEARN:], Base.load()


def real_cars(data: Path) -> Iterator[Car]:
    from benchmarks.measured.cold_start import CARS

    found = {}
    for car, (logs, mass, cda, crr) in CARS.items():
        trips = evband.read_trips(str(data / logs), hz=1.0, skipped=[])
        long = [t for t in trips if t.has("power_kw") and len(t) >= LEAST_S]
        found[car] = sheet_of(None, mass_kg=mass, cda_m2=cda, crr=crr), Trips(long[: LEARN + MOST_TEST])
    taught = {  # members of different cars are different draws, as in a fleet
        car: facts_of(learned(started(Base.load(), sheet, seed), trips, seed, 0.9).model)
        for seed, (car, (sheet, trips)) in enumerate(found.items(), 100)
    }
    for car, (sheet, trips) in found.items():
        others = [facts for name, facts in taught.items() if name.split("_")[0] != car.split("_")[0]]
        yield car, sheet, trips[:LEARN], trips[LEARN:], between(Base.load(), others)


def scores(car: Car) -> dict[str, Any]:
    name, sheet, learn, test, base = car
    prior = started(base, sheet, 1)
    part = learned(prior, learn, 1, 0.9).model
    row: dict[str, Any] = {"car": name}
    for method, model in (("prior", prior), ("part", part), ("own", LeastSquares(hinges=True).fit(learn))):
        bands = model.predict(test)
        found = evband.evaluate(bands, test)
        row |= {f"{method}_crps_kw": round(found["crps_kw"], 4), f"{method}_coverage": round(found["coverage"], 4)}
        if method == "part":
            row["part_coverage_error"] = round(of_the_test(bands, test), 4)
    return row


def of_the_test(bands: evband.Bands, test: Trips) -> float:
    """Standard error of a car's coverage: that of its trips differs, and they are few."""
    power = np.concatenate([trip.table["power_kw"].to_numpy() for trip in test])
    inside, which = (
        np.abs(bands.cdf(power) - 0.5) <= 0.45,
        np.repeat(np.arange(len(test)), [len(trip) for trip in test]),
    )
    each = np.array([inside[which == k][np.isfinite(power[which == k])].mean() for k in range(len(test))])
    return float(each.std(ddof=1) / len(each) ** 0.5)


def summary(kind: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Means, paired differences with intervals over cars, and how cars are covered."""
    crps = {m: np.array([row[f"{m}_crps_kw"] for row in rows]) for m in ("prior", "part", "own")}
    inside = np.array([row["part_coverage"] for row in rows])
    found: dict[str, Any] = {"kind": kind, "cars": len(rows)}
    found |= {f"{m}_crps_kw": round(float(values.mean()), 3) for m, values in crps.items()}
    for other in ("prior", "own"):
        ratio = np.log(crps["part"] / crps[other])
        student = t.interval(0.95, len(ratio) - 1, ratio.mean(), sem(ratio))
        ordered: Any = quantile_test(ratio, p=0.5).confidence_interval(0.95)
        for label, low, middle, high in (("change", student[0], ratio.mean(), student[1]),
                                         ("median", ordered.low, np.median(ratio), ordered.high)):  # fmt: skip
            found |= {f"{label}_from_{other}_percent": percent(middle)}
            found |= {f"{label}_from_{other}_low": percent(low), f"{label}_from_{other}_high": percent(high)}
        found |= {f"better_than_{other}": round(float((ratio < 0).mean()), 3)}
    found |= {"coverage": round(float(inside.mean()), 4)}
    error = np.array([row["part_coverage_error"] for row in rows])
    alike = 0.9 + error * np.random.default_rng(0).standard_normal((1000, len(rows)))  # cars that are all covered alike
    found |= {f"cars_within_0.80_0.97{name}": round(float(((some >= 0.80) & (some <= 0.97)).mean()), 3)
              for name, some in (("", inside), ("_if_alike", alike))}  # fmt: skip
    return found | {
        "deviation_of_cars": round(float(inside.std(ddof=1)), 4),
        "of_it_the_test": round(float((error**2).mean() ** 0.5), 4),
    }


def percent(log_ratio: float) -> float:
    return round(100.0 * (float(np.exp(log_ratio)) - 1.0), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cars", type=int, default=0)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    kind = "real" if given.data else "simulated"
    rows = []
    for car in real_cars(given.data) if given.data else simulated_cars(given.cars):
        try:
            rows.append(scores(car))
        except EvbandError as problem:
            print(car[0], problem, flush=True)
            continue
        if given.data or len(rows) % 10 == 0:
            print(rows[-1], flush=True)
    if rows:
        write(
            RESULTS / f"fleet_quality_{kind}.csv", rows, "car by car, on trips after the three learned from; 90 % asked"
        )
    found = [summary(kind, kept(kind)) for kind in ("real", "simulated")]
    write(RESULTS / "fleet_quality.csv", found, "three trips per car; 90 % asked")
    show("three trips per car", found)


def kept(kind: str) -> list[dict[str, Any]]:
    """Rows of the last run of a kind."""
    lines = (RESULTS / f"fleet_quality_{kind}.csv").read_text().splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [{name: value if name == "car" else float(value) for name, value in row.items()} for row in rows]


if __name__ == "__main__":
    main()
