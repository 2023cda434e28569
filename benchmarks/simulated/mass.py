"""A data sheet that is 20 % off in mass: how soon the car's own minutes find it out, and whether the band holds meanwhile.

    PYTHONPATH=. python -m benchmarks.simulated.mass            # -> results/mass.csv

Vehicles of the population that the base never saw, a fifth too heavy and a fifth too light on paper, with the log of a
bus logger (a late GPS log hides how a car pulls). The right mass is what the simulator moved in the minutes learned from,
each drive's load included; `moves_like` is the card's effective mass over it, `within` the share of cars where it is within 5 %.
Coverage and epistemic part are of three later drives.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

import numpy as np

import evband
from benchmarks.common.results_file import RESULTS, show, write
from evband.adaptation.mass import effective_mass
from evband.simulation.population import Specimen, draw, drive, set_out
from evband.trips import Trip, Trips

CARS, WRONG, MINUTES = 20, (0.8, 1.0, 1.2), (0, 5, 15, 60)
LONGEST, LATER = 15.0, 3  # minutes of a drive; drives for the test
CLEAN_S = 0.4  # a bus logger reads the speed at least so often


def specimen(number: int) -> tuple[Specimen, list[Trip], list[float]]:
    """A car with a clean log, its drives and the mass that it moved on each."""
    rng = np.random.default_rng([78, number])
    car = draw(rng)
    while car.heavy or car.logger.speed_every_s > CLEAN_S:
        car = draw(rng)
    found, masses = list[Trip](), list[float]()
    while len(found) < LATER + 60 / LONGEST + 2:
        _, _, mass = set_out(car, LONGEST, deepcopy(rng))
        try:
            found.append(Trip(f"v{number}_{len(found)}", drive(car, LONGEST, rng)).on_grid(1.0))
        except RuntimeError:  # FASTSim: not enough power for this hill
            continue
        masses.append(mass)
    return car, found, masses


def first_minutes(trips: list[Trip], minutes: int) -> Trips:
    left, found = 60 * minutes, []
    for trip in trips:
        if left < 60:
            break
        found.append(replace(trip, table=trip.table.head(left)))
        left -= len(found[-1])
    return Trips(found)


def curve(number: int) -> list[dict[str, float]]:
    car, trips, masses = specimen(number)
    rows = []
    for wrong in WRONG:
        model = evband.start(mass_kg=wrong * car.mass_kg, cda_m2=car.cda_m2, crr=car.crr, seed=number)
        for minutes in MINUTES:
            now, right = model, car.mass_kg
            if minutes:
                learned = first_minutes(trips[LATER:], minutes)
                now = evband.adapt(model, learned)
                right = float(np.average(masses[LATER:][: len(learned)], weights=[*map(len, learned)]))
            scores = evband.evaluate(now.predict(Trips(trips[:LATER])))
            read = effective_mass(now)
            rows.append({
                "car": number, "sheet": wrong, "minutes": minutes, "moves_like": float(read.mean()) / right,
                "sd": float(read.std()) / right, "coverage": scores["coverage"], "crps_kw": scores["crps_kw"],
                "epistemic_kw": scores["epistemic_kw"],
            })  # fmt: skip
    return rows


def main() -> None:
    rows = [row for number in range(CARS) for row in curve(number)]
    table = []
    for wrong in WRONG:
        for minutes in MINUTES:
            same = [r for r in rows if (r["sheet"], r["minutes"]) == (wrong, minutes)]
            ratio = np.array([r["moves_like"] for r in same])
            table.append({
                "sheet": wrong, "minutes": minutes, "cars": len(same), "moves_like": round(float(np.median(ratio)), 3),
                "within": round(float(np.mean(np.abs(ratio - 1.0) <= 0.05)), 3), "median_error": round(float(np.median(np.abs(ratio - 1.0))), 3), "largest_error": round(float(np.abs(ratio - 1.0).max()), 3),
                **{name: round(float(np.mean([r[name] for r in same])), 3) for name in ("coverage", "crps_kw", "epistemic_kw")},
                "lowest": round(min(r["coverage"] for r in same), 3),
            })  # fmt: skip
    write(RESULTS / "mass.csv", table, "sheet: its mass over the right one; cars weigh alike")
    show("a sheet with the wrong mass", table)


if __name__ == "__main__":
    main()
