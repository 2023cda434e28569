"""How soon a rise in rolling resistance is found: `python -m benchmarks.fleet.drift --cars 100` -> results/fleet_drift.csv.

Simulated cars of `benchmarks.fleet.simulated`, 40 trips of ten minutes each as they are, then 20 with tyres that roll 10, 20
and 30 % harder (the same drives in all three and without a change). Each trip is read against the model before it is
learned from, as `evband fleet update` does daily. The false-alarm rate is that of trips without a change: counted on
the cars' own trips, and on histories of 2,000 trips drawn from each car's readings, 1,000 trips per year.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

import evband
from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.fleet import simulated
from evband.adaptation import Base
from evband.adaptation.starting import started
from evband.adaptation.update import evidence, updated
from evband.fleet.drift import Drift, reading
from evband.fleet.learning import FEWEST_TRIPS, learned

FIRST, BEFORE, AFTER, RISES = 20_000, 40, 20, (0.0, 0.1, 0.2, 0.3)
PER_YEAR, DRAWN = 1_000, 2_000


def readings(number: int) -> dict[float, list[float]]:
    """Of one car: the common history, then each rise, with the model learning on in each."""
    trips = evband.read_trips(simulated.table(number, range(BEFORE)).drop("vehicle_id"), hz=1.0)
    model = learned(started(Base.load(), simulated.car(number)[0], number), trips[:FEWEST_TRIPS], number, 0.9).model
    common: list[float] = []
    for k in range(FEWEST_TRIPS, len(trips)):
        model = _after(model, trips[k : k + 1], common)
    found = {}
    for rise in RISES:
        later = simulated.table(number, range(BEFORE, BEFORE + AFTER), _steady(1.0 + rise))
        on, own = model, list(common)
        for trip in evband.read_trips(later.drop("vehicle_id"), hz=1.0):
            on = _after(on, evband.Trips([trip]), own)
        found[rise] = own
    return found


def _steady(share: float) -> Callable[[int], float]:
    return lambda _: share


def _after(model: Any, trip: Any, taken: list[float]) -> Any:
    rows = evidence(model, trip)
    taken.append(reading(model, rows))
    return updated(model, rows, 1, trip.fingerprints, len(taken))


def alarms(values: list[float] | np.ndarray) -> list[int]:
    """Trips at which there is an alarm."""
    state, found = Drift(), []
    for k, value in enumerate(values):
        state = state.after(float(value))
        if state.alarm and state.since == 0:
            found.append(k)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cars", type=int, default=100)
    given = parser.parse_args()
    cars = []
    for number in range(FIRST, FIRST + given.cars):
        cars.append(readings(number))
        if len(cars) % 10 == 0:
            print(len(cars), "cars", flush=True)
    start = BEFORE - FEWEST_TRIPS
    rows: list[dict[str, Any]] = []
    for rise in RISES[1:]:
        delays = []
        for car in cars:
            state = reduce(Drift.after, car[rise][:start], Drift())
            late = [k for k in _alarms_from(state, car[rise][start:]) if k >= 0]
            delays.append(late[0] + 1 if late else np.inf)
        found = {f"found_within_{n}": round(float(np.mean([d <= n for d in delays])), 3) for n in (3, 5, 10, 20)}
        size = np.mean([np.mean(car[rise][start:]) - np.mean(car[0.0][start:]) for car in cars])
        spread = np.mean([np.std(car[0.0], ddof=1) for car in cars])
        rows.append({"rise": rise, "cars": len(cars)} | found | {
            "reading_rises_by": round(float(size), 3), "deviation_of_readings": round(float(spread), 3),
        })  # fmt: skip
    rng = np.random.default_rng(0)
    own = sum(len(alarms(car[0.0])) for car in cars)
    drawn = sum(len(alarms(rng.choice(car[0.0], DRAWN))) for car in cars)
    years = len(cars) * DRAWN / PER_YEAR
    note = (
        f"false alarms without a change: {own} in {sum(len(car[0.0]) for car in cars)} trips of the cars; {drawn} in "
        f"{years:.0f} car-years drawn from their readings, {10 * drawn / years:.2f} per ten car-years"
    )
    write(RESULTS / "fleet_drift.csv", rows, note)
    show("drift", rows)
    print(note)


def _alarms_from(state: Drift, values: list[float]) -> list[int]:
    found = []
    for k, value in enumerate(values):
        state = state.after(value)
        if state.alarm and state.since == 0:
            found.append(k)
    return found


if __name__ == "__main__":
    main()
