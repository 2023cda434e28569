"""How simulated drivers differ from plans, per tonne of car: the numbers of `evband.adaptation.plans`.

python -m tools.started_plans    # about two minutes
"""

from __future__ import annotations

import numpy as np
import polars as pl

from evband.adaptation.starting import sheet_of, start
from evband.channels import DENSE, EDGES, READINGS
from evband.energy.calibrating import predicted_drives
from evband.energy.planned import Planned, fit_planned, router_says
from evband.simulation.population import STEP_S, draw, driven
from evband.trips import Trip, Trips

CARS = (
    "BMW i3 94 Ah",
    "Renault Zoe 52 kWh",
    "Tesla Model 3 Long Range AWD",
)  # light to heavy; what is per tonne hardly differs
DRIVES, LONGEST_MIN, SEED = 120, 40.0, 0


def simulated_trip(number: int, rng: np.random.Generator) -> Trip:
    """A drive of a simulated driver on a grid of 1 Hz."""
    car = draw(rng)
    while car.heavy:
        car = draw(rng)
    speed = 3.6 * driven(car, float(rng.uniform(5.0, LONGEST_MIN)), rng)[:: round(1.0 / STEP_S)]
    table = pl.DataFrame(
        {
            "time_s": np.arange(1.0, len(speed)), "speed_kmh": (speed[1:] + speed[:-1]) / 2, EDGES[0]: speed[:-1], EDGES[1]: speed[1:],
            "acceleration_ms2": np.diff(speed) / 3.6, "elevation_m": np.zeros(len(speed) - 1), "ambient_temp_c": np.full(len(speed) - 1, 15.0),
            READINGS: np.full(len(speed) - 1, DENSE),
        }
    )  # fmt: skip
    return Trip(f"sim_{number}", table.with_columns(segment=pl.lit(0, dtype=pl.Int32)), 1.0)


def per_tonne(vehicle: str, drives: int = DRIVES, seed: int = SEED) -> Planned:
    """What the drives of so many drivers take beyond their plans, in that car started from its sheet."""
    model, rng = start(vehicle), np.random.default_rng(seed)
    trips = Trips(simulated_trip(number, rng) for number in range(drives))
    plans = Trips(
        Trip(t.trip_id, route.on_grid(1.0).table, 1.0) for t in trips if (route := router_says(t)) is not None
    )
    tonnes = sheet_of(vehicle).mass_kg / 1000.0
    kwh = {d.trip_id: float(d.mean.sum()) / 3600.0 for d in predicted_drives(model, trips)}
    beyond = [(kwh[d.trip_id] - float(d.mean.sum()) / 3600.0) / tonnes for d in predicted_drives(model, plans)]
    found = fit_planned(beyond, [(t.table["speed_kmh"].to_numpy(), 1.0) for t in plans])
    assert found is not None
    return found


if __name__ == "__main__":
    for vehicle in CARS:
        print(vehicle, per_tonne(vehicle), flush=True)
