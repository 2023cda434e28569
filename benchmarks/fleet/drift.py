"""How soon a rise in rolling resistance is found: `python -m benchmarks.fleet.drift --cars 30` -> results/fleet_drift.csv.

Simulated cars of `benchmarks.fleet.simulated`, 40 trips as they are, then 10 with tyres that roll 10, 20 and 30 % harder
(the same drives in all three and without a change). Every second trip is the way back of the one before
(roads: home), or each is on a road of its own (own), whose height between start and end nobody knows in a
car that logs no elevation. Two trips a day are read against the model before it learns from them, as `evband fleet
update` does. The false-alarm rate is that of histories of 5,000 readings drawn from each car's own without a change,
1,000 trips per year. Constants of `evband.fleet.drift` and `evband.fleet.rolling` were set on `--others`, cars that are not
among those reported; their false alarms by limit are results/fleet_drift_limit.csv. Cars are kept in `--kept` as they are
done.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

import evband
from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.fleet import simulated
from evband.adaptation import Base
from evband.adaptation.starting import started
from evband.fleet import drift
from evband.fleet.drift import Drift
from evband.fleet.learning import learned
from evband.fleet.rolling import Reading

FIRST, OTHERS, LEARNED, BEFORE, AFTER, RISES = 20_000, 30_000, 4, 40, 10, (0.0, 0.1, 0.2, 0.3)
LIMITS = (7.2, drift.RISE, 9.2)
PER_YEAR, DRAWN = 1_000, 5_000


def car_readings(number: int, home: bool, rises: Sequence[float] = RISES) -> dict[Any, Any]:
    """Of one car: the common history, then each rise, with the model learning on in each."""
    trips = evband.read_trips(simulated.table(number, range(BEFORE), home=home).drop("vehicle_id"), hz=1.0)
    sheet = simulated.car(number)[0]
    model = learned(started(Base.load(), sheet, number), trips[:LEARNED], number, 0.9).model
    model, common = _after(model, trips[LEARNED:])
    found: dict[Any, Any] = {"before": common, "elevation": trips[0].has("elevation_m")}
    for rise in rises:
        later = simulated.table(number, range(BEFORE, BEFORE + AFTER), 1.0 + rise, home)
        _, found[rise] = _after(model, evband.read_trips(later.drop("vehicle_id"), hz=1.0))
    return found


def _after(model: Any, trips: evband.Trips) -> tuple[Any, list[Reading]]:
    """Two trips a day."""
    found: list[Reading] = []
    for k in range(0, len(trips), 2):
        day = learned(model, trips[k : k + 2], len(found), 0.9)
        model, found = day.model, found + day.readings
    return model, found


def first_alarm(state: Drift, values: list[Reading]) -> float:
    """Trips until an upward alarm, inf where there is none."""
    trips = 0
    for value in values:
        state, trips = state.after(value), trips + value.trips
        if state.alarm > 0 and state.since == 0:
            return trips
    return np.inf


def false_alarms(car: dict[Any, Any], rng: np.random.Generator) -> tuple[int, float]:
    """(alarms, years) of a history drawn from the car's readings without a change."""
    values, state, count, trips = [*car["before"], *car[0.0]], Drift(), 0, 0
    for k in rng.integers(len(values), size=DRAWN):
        state, trips = state.after(values[k]), trips + values[k].trips
        count += bool(state.alarm and state.since == 0)
    return count, trips / PER_YEAR


def rows_of(cars: list[dict[Any, Any]], roads: str) -> list[dict[str, Any]]:
    rng, rows = np.random.default_rng(0), []
    for which, some in (
        ("all", cars),
        ("with elevation", [car for car in cars if car["elevation"]]),
        ("without", [car for car in cars if not car["elevation"]]),
    ):
        alarms, years = np.sum([false_alarms(car, rng) for car in some], 0)
        for rise in RISES[1:]:
            states = [reduce(Drift.after, car["before"], Drift()) for car in some]
            delays = np.array([first_alarm(state, car[rise]) for state, car in zip(states, some, strict=True)])
            found = {f"found_within_{n}": round(float(np.mean(delays <= n)), 3) for n in (4, 6, 10)}
            reads = np.mean(
                [np.mean([r.share for r in car[rise]]) - np.mean([r.share for r in car[0.0]]) for car in some]
            )
            rows.append({"roads": roads, "cars": which, "number": len(some), "rise": rise} | found | {
                "reading_rises_by": round(float(reads), 3), "false_alarms_per_10_car_years": round(float(10 * alarms / years), 2),
            })  # fmt: skip
    return rows


def limits_of(cars: list[dict[Any, Any]], roads: str) -> list[dict[str, Any]]:
    """False alarms of cars by the limit of an alarm."""
    rows, chosen = [], drift.RISE
    for limit in LIMITS:
        drift.RISE, rng = limit, np.random.default_rng(0)
        alarms, years = np.sum([false_alarms(car, rng) for car in cars], 0)
        rate = round(float(10 * alarms / years), 2)
        rows.append({"roads": roads, "cars": len(cars), "limit": limit, "false_alarms_per_10_car_years": rate})
    drift.RISE = chosen
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cars", type=int, default=30)
    parser.add_argument("--others", type=int, default=16)
    parser.add_argument("--kept", type=Path, default=Path("drift_cars"), help="folder of readings, car by car")
    given = parser.parse_args()
    given.kept.mkdir(exist_ok=True)
    rows: list[dict[str, Any]] = []
    limits: list[dict[str, Any]] = []
    for roads in ("home", "own"):
        others = [kept(given.kept, n, roads, RISES[:1]) for n in range(OTHERS, OTHERS + given.others)]
        limits += limits_of(others, roads)
        write(RESULTS / "fleet_drift_limit.csv", limits, "false alarms of the cars that the limit was set on")
        rows += rows_of([kept(given.kept, n, roads, RISES) for n in range(FIRST, FIRST + given.cars)], roads)
        write(RESULTS / "fleet_drift.csv", rows, "trips until an alarm after a rise in rolling resistance")
        show("drift", rows)


def kept(folder: Path, number: int, roads: str, rises: Sequence[float]) -> dict[Any, Any]:
    path = folder / f"{roads}_{number}.pickle"
    if not path.exists():
        path.write_bytes(pickle.dumps(car_readings(number, roads == "home", rises)))
        print(path.stem, flush=True)
    found: dict[Any, Any] = pickle.loads(path.read_bytes())
    return found


if __name__ == "__main__":
    main()
