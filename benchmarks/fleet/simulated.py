"""A fleet drawn from the catalogue: `python -m benchmarks.fleet.simulated --cars 10000 --trips 3 -o LAKE`.

Each car is a sheet of the catalogue whose true mass, drag and tyres differ from it as `evband.simulation.population`
says; driver, terrain, wind, cabin and regeneration come from there, too. In place of FASTSim, which takes 90 ms per trip,
the drive train is a closed formula of its efficiency map, so the base was not taught with these very equations. A
telematics box logs one row per second: speed and power with their noise, elevation and temperature in most cars.
Cars k and trips j are the same whatever else is drawn; `rolling` scales the tyres' resistance (drift).
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.simulation import population
from evband.simulation.cycles import follow, random_drive, smooth_noise
from evband.simulation.population import STEP_S, Specimen
from evband.vehicles import Sheet
from evband.vehicles.find import catalogue

Array = NDArray[np.float64]

SEED, SECONDS, PER_FILE = 18, 600, 50
SLOWEST = 3  # times as long a way back may take


def car(number: int) -> tuple[Sheet, Specimen]:
    """Car number so and so: what its sheet says, and what it is."""
    rng = np.random.default_rng([SEED, number])
    sheet = catalogue()[rng.integers(len(catalogue()))]
    drawn, printed = population.draw(rng), (sheet.mass_kg, sheet.cda_m2, sheet.crr)
    while drawn.heavy != (sheet.mass_kg > population.HEAVY_KG):  # a bus has another heater and other roads than a car
        drawn = population.draw(rng)
    off = np.exp(rng.standard_normal(3) * [population.MASS_ERROR, population.CDA_ERROR, population.CRR_ERROR])
    mass, cda, crr = np.array(printed) * off
    power = sheet.max_power_kw or 0.075 * sheet.mass_kg
    return sheet, replace(drawn, sheet=printed, mass_kg=mass, cda_m2=cda, crr=crr, motor_kw=power)


def trip(number: int, which: int, rolling: float = 1.0, home: bool = False) -> pl.DataFrame:
    """Ten minutes of one car on a road of its own; with `home` every second trip goes back along the road of the one before,
    as long as that takes."""
    specimen = car(number)[1]
    specimen = replace(specimen, crr=specimen.crr * rolling)
    rng = np.random.default_rng([SEED, number, which])
    ambient = float(np.clip(12.0 + 10.0 * rng.standard_normal(), -18.0, 38.0))
    back = home and which % 2 == 1
    speed, mass, elevation, grade = _on_a_road(specimen, rng, SLOWEST * SECONDS if back else SECONDS)
    if back:
        out = np.random.default_rng([SEED, number, which - 1])
        out.standard_normal()
        speed, elevation, grade = _way_back(speed, _on_a_road(specimen, out, SECONDS))
    force = population._resistance(specimen, mass, speed, elevation, grade, ambient, rng)
    limit = population._limit_kw(specimen, rng)
    power = population._with_regeneration(specimen, mass, speed, drive_train(specimen, mass, speed, force), limit)
    power = power + population._auxiliaries(specimen, len(speed), ambient, rng)
    return _logged(specimen, speed, power, elevation, ambient, rng)


def _on_a_road(specimen: Specimen, rng: np.random.Generator, seconds: int) -> tuple[Array, float, Array, Array]:
    """(speed, mass, elevation, grade) of a drive."""
    stretches = [(kind, duration / 2.0) for kind, duration in population._stretches(specimen, rng)[:6]]
    reference = random_drive(stretches, rng, population._roads(specimen))
    speed = follow(reference, STEP_S, int(seconds / STEP_S), float(rng.uniform(0.5, 2.0)), rng)
    mass = specimen.mass_kg * (1.0 + float(rng.random() < 1 / 3) * rng.uniform(0.0, 0.15))
    return speed, mass, *population._terrain(specimen, np.cumsum(speed) * STEP_S, rng)


def _way_back(speed: Array, road: tuple[Array, float, Array, Array]) -> tuple[Array, Array, Array]:
    """(speed, elevation, grade) along a road from its end to its beginning, in whole seconds."""
    there, _, elevation, grade = road
    gone, back = np.cumsum(there) * STEP_S, np.cumsum(speed) * STEP_S
    steps = int(1.0 / STEP_S)
    count = max(120, int(np.searchsorted(back, gone[-1])) // steps) * steps
    left = gone[-1] - back[:count]
    return speed[:count], np.interp(left, gone, elevation), -np.interp(left, gone, grade)


def drive_train(specimen: Specimen, mass: float, speed: Array, force_n: Array) -> Array:
    """Battery power in kW: losses of motor and battery by load, with transmission's on the way back as on the way there."""
    wheel = (force_n + 1.04 * mass * np.gradient(speed, STEP_S)) * speed / 1000.0
    load = np.minimum(np.abs(wheel) / specimen.motor_kw, 1.0)
    motor = specimen.peak_efficiency - specimen.low_load_loss * np.exp(-load / 0.06) - 0.02 * load
    through = np.maximum(motor, 0.4) * specimen.battery
    return np.asarray(np.where(wheel > 0, wheel / through, wheel * through))


def _logged(
    specimen: Specimen, speed: Array, power: Array, elevation: Array, ambient: float, rng: np.random.Generator
) -> pl.DataFrame:
    logger, steps = specimen.logger, int(1.0 / STEP_S)
    each = slice(steps - 1, None, steps)
    seconds = len(speed) // steps
    time_s: Array = np.arange(1.0, seconds + 1.0)
    noise = logger.power_noise * rng.standard_t(4.0, seconds)
    readings = {
        "time_s": time_s,
        "speed_kmh": 3.6 * speed[each] * logger.speed_gain + logger.speed_noise_kmh * rng.standard_normal(seconds),
        "power_kw": power.reshape(-1, steps).mean(1) * (1.0 + noise) + 0.05 * rng.standard_normal(seconds),
    }
    readings["speed_kmh"] = np.where(speed[each] < 0.1, 0.0, np.maximum(readings["speed_kmh"], 0.0))
    if logger.elevation:
        readings["elevation_m"] = elevation[each] + logger.elevation_noise_m * smooth_noise(seconds, 15.0, rng)
    if logger.ambient:
        readings["ambient_temp_c"] = np.full(seconds, ambient + logger.ambient_bias_c)
    return pl.DataFrame({name: np.round(values, 2) for name, values in readings.items()})


def table(number: int, trips: range, rolling: float = 1.0, home: bool = False) -> pl.DataFrame:
    """Some trips of one car, with its id and theirs; of a car without a channel that is empty."""
    found = [
        trip(number, j, rolling, home).with_columns(
            trip_id=pl.lit(f"{number}-{j}"), vehicle_id=pl.lit(f"car{number:06d}")
        )
        for j in trips
    ]
    return pl.concat(found, how="diagonal")


def write_file(path: Path, numbers: range, trips: range) -> None:
    if not path.exists():
        whole = pl.concat([table(number, trips) for number in numbers], how="diagonal")
        whole.with_columns(pl.col(pl.Float64).cast(pl.Float32)).write_parquet(path)


def write_lake(folder: Path, cars: int, trips: range, workers: int = 1) -> None:
    """Partitions of `PER_FILE` cars, and `sheets.toml` beside the folder, which names each car's sheet."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [range(first, min(first + PER_FILE, cars)) for first in range(0, cars, PER_FILE)]
    with ProcessPoolExecutor(workers) as pool:
        done = [pool.submit(write_file, folder / f"part-{part[0]:06d}.parquet", part, trips) for part in parts]
        for one in done:
            one.result()
    names = [f'car{number:06d} = "{car(number)[0].name}"' for number in range(cars)]
    folder.with_suffix(".toml").write_text("[cars]\n" + "\n".join(names) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cars", type=int, default=10_000)
    parser.add_argument("--first-trip", type=int, default=0)
    parser.add_argument("--trips", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    trips = range(given.first_trip, given.first_trip + given.trips)
    write_lake(given.output, given.cars, trips, given.workers)


if __name__ == "__main__":
    main()
