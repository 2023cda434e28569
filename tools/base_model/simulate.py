"""The population that the base model is taught with, as arrays.

    python -m tools.base_model.simulate --cars 2500 -o .carry/base/population.npz

Each vehicle drives four trips of 6 to 18 minutes; its log is read on the grid as any log would be.
"""

from __future__ import annotations

import argparse
from multiprocessing import Pool
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.starting import RANGES
from evband.channels import READINGS, SENSED
from evband.features.road_load import CHANGE, FADE, KINETIC
from evband.features.rows import power_of, starts_of
from evband.features.wheel import INPUTS, SheetMap
from evband.simulation.population import Specimen, draw, drive
from evband.trips import Trip

SEED = 24
TRIPS, MINUTES = 4, (6.0, 18.0)
SIGNALS = (*RANGES, KINETIC, CHANGE, FADE, READINGS, SENSED)
STEPS = 2.0 ** -np.array(
    [8, 9, 13, 3, 6, 8, 9, 0, 0, 7, 0, 0]
)  # signals, power, start, trip are rounded to: a smaller file


def vehicle(number: int, trips: int = TRIPS) -> tuple[Specimen, list[Trip]]:
    """Vehicle number so and so of the population, with its drives on the grid; a drive beyond its motor is left out."""
    rng = np.random.default_rng([SEED, number])
    car, found = draw(rng), []
    for k in range(trips):
        try:
            table = drive(car, float(rng.uniform(*MINUTES)), rng)
        except RuntimeError:  # FASTSim: not enough power for this hill
            continue
        found.append(Trip(f"v{number}_{k}", table).on_grid(1.0))
    return car, found


def rows_of(trips: list[Trip]) -> NDArray[np.float32]:
    """[rows, signals + (power, start, trip)]."""
    features, parts = SheetMap(channels=tuple(RANGES), hz=1.0, edges=True, fade=True, input_names=INPUTS), []
    for k, trip in enumerate(trips):
        signals = features.signals_of(trip)
        columns = [signals[name] for name in SIGNALS]
        parts.append(np.stack([*columns, power_of(trip), starts_of(trip), np.full(len(trip), k)], 1))
    return (np.round(np.concatenate(parts) / STEPS) * STEPS).astype(np.float32)


def _one(number: int) -> tuple[int, NDArray[np.float64], NDArray[np.float32]] | None:
    car, trips = vehicle(number)
    return (number, np.array(car.sheet), rows_of(trips)) if trips else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cars", type=int, default=2500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--processes", type=int, default=2)
    args = parser.parse_args()
    with Pool(args.processes) as pool:
        numbers = range(args.first, args.first + args.cars)
        found = [one for one in pool.imap(_one, numbers, chunksize=5) if one is not None]
    args.output.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(
        args.output,
        sheet=np.stack([sheet for _, sheet, _ in found]),
        rows=np.concatenate([rows for _, _, rows in found]),
        car=np.repeat(np.arange(len(found)), [len(rows) for _, _, rows in found]).astype(np.int16),
    )
    print(f"{args.output}: {len(found)} vehicles, {sum(len(rows) for _, _, rows in found)} rows")


if __name__ == "__main__":
    main()
