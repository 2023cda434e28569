"""A fleet's own prior on real cars: what logs of other makes teach about a car that nobody has measured.

    python -m benchmarks.measured.cold_start prepare --data DIR     # arrays of nine cars -> .carry/cold/
    python -m benchmarks.measured.own_prior                         # -> results/own_prior.csv

As `evband prior` does it: every car is started from its data sheet and adapted to `HOURS` of its drives, and the base is
learned from all cars but those of the left-out make. That make's cars are then started on it, and on the shipped base,
with 0, 15 and 60 minutes of their own; the last 30 % of drives are the test, as in `cold_start`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.measured.cold_start import CARS, Arrays, bands_of, load, minutes_of, scores, signals_for
from evband.adaptation import Base
from evband.adaptation.starting import sheet_of, started
from evband.adaptation.update import evidence_of, updated
from evband.fleet.prior import between, facts_of

HOURS, MINUTES, SEED = 3, (0, 15, 60), 0


def make_of(car: str) -> str:
    return car.split("_")[0]


def start_car(car: str, base: Base, seed: int = SEED) -> Any:
    _, mass, cda, crr = CARS[car]
    return started(base, sheet_of(None, mass_kg=mass, cda_m2=cda, crr=crr), seed)


def adapted(model: Any, arrays: Arrays, rows: NDArray[np.int64], seed: int = SEED) -> Any:
    features = model.feature_map_
    x, r, _ = features.arrays(signals_for(features, arrays, rows))
    begin = arrays["start"][rows].copy()
    begin[0], begin[1:] = True, begin[1:] | (np.diff(rows) != 1)
    trip, speed = arrays["trip"][rows].astype(np.int64), arrays["signals"]["speed_kmh"][rows]
    found = evidence_of(model, x, r, begin, arrays["y"][rows], trip, speed)
    return updated(model, found, len(np.unique(trip)), ["a"], seed)


def main() -> None:
    shipped = Base.load()
    cars = {car: load(car) for car in CARS}
    learned = {}
    for seed, (car, arrays) in enumerate(cars.items(), SEED + 100):  # members of different cars are different draws
        learned[car] = adapted(start_car(car, shipped, seed), arrays, minutes_of(arrays, 60 * HOURS, SEED), seed)
        print(f"{car}: learned", flush=True)
    rows: list[dict[str, Any]] = []
    for make in dict.fromkeys(map(make_of, CARS)):
        own = between(shipped, [facts_of(model) for car, model in learned.items() if make_of(car) != make])
        for car in (car for car in CARS if make_of(car) == make):
            test = np.flatnonzero(cars[car]["test"])
            for name, base in (("shipped", shipped), ("other makes", own)):
                model = start_car(car, base)
                for minutes in MINUTES:
                    mine = adapted(model, cars[car], minutes_of(cars[car], minutes, SEED)) if minutes else model
                    found = scores(cars[car], bands_of(cars[car], test, mine))
                    rows.append({"car": car, "base": name, "minutes": minutes} | {
                        k: round(found[k], 4) for k in ("crps_kw", "coverage", "width_kw", "epistemic_kw")
                    })  # fmt: skip
                    print(rows[-1], flush=True)
    for name in ("shipped", "other makes"):
        for minutes in MINUTES:
            same = [r for r in rows if (r["base"], r["minutes"]) == (name, minutes)]
            mean = {k: round(float(np.mean([r[k] for r in same])), 4) for k in same[0] if isinstance(same[0][k], float)}
            rows.append({"car": "mean", "base": name, "minutes": minutes} | mean)
    write(RESULTS / "own_prior.csv", rows, f"{HOURS} h of each of the other makes' cars; one seed")
    show("a fleet's own prior", rows[-6:])


if __name__ == "__main__":
    main()
