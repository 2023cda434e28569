"""How soon a rise in rolling resistance can be found at best: `python -m benchmarks.fleet.drift_bound --cars 30`.

An observer of the cars of `benchmarks.fleet.drift` who knows more than any log tells: the car exactly as it was (mass,
drag, tyres, losses), speed, and elevation where it is logged, without error. What changes from trip to trip in the
simulation and is in no log stays unknown to it, too: wind, wet roads, load, cabin, and hills where elevation is not
logged; of these it knows the variances, so that the variance of its reading of rolling resistance on a trip (or on a way
there and back) is that of the best linear estimate, a Cramer-Rao bound where they are Gaussian. Its test is a CUSUM that
knows the size of the change and every reading's variance, at one false alarm in ten years of 1,000 trips (limit by
Siegmund's formula). What it does not find within ten trips, nobody does from these logs. -> results/fleet_drift_bound.csv
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.fleet import simulated
from benchmarks.fleet.drift import AFTER, BEFORE, FIRST, PER_YEAR, RISES
from evband.simulation.population import STEP_S, Specimen
from evband.simulation.vehicles import GRAVITY

Array = NDArray[np.float64]

BIN = 10  # steps
ROTATING, LOSSES = 1.04, 1.1
LOAD_SD, WET_SD, WARMTH_SD = 0.043, 0.052, 0.03  # of mass; of rolling: wet roads; temperature where it is not logged
WIND_SD, GUST_SD, TURNS = 0.7 * 3.0 / 2**0.5, 0.6, 1.5  # m/s along the road; rad by which headings wander
HILLS = ((9.0, 1400.0), (30.0, 10_000.0))  # deviation of heights in m at terrain 1, and over what length they change
TAIL = 7.0 / 5.0  # of Student-t noise with 4 degrees: squared scale over what a row tells of its mean
DRAWN, BURN_IN = 4000, 40


class Drive(NamedTuple):
    """Means of bins."""

    speed: Array  # m/s
    power: Array  # W/kg at the wheels
    place: Array  # m
    time: Array  # s
    inertia: Array  # W/kg
    ambient: float


def drive(number: int, which: int, home: bool) -> Drive:
    """What `simulated.trip` drives, with its random numbers."""
    specimen = simulated.car(number)[1]
    rng = np.random.default_rng([simulated.SEED, number, which])
    ambient = float(np.clip(12.0 + 10.0 * rng.standard_normal(), -18.0, 38.0))
    back = home and which % 2 == 1
    seconds = simulated.SECONDS * (simulated.SLOWEST if back else 1)
    speed, _, _, grade = simulated._on_a_road(specimen, rng, seconds)
    if back:
        out = np.random.default_rng([simulated.SEED, number, which - 1])
        out.standard_normal()
        speed, _, grade = simulated._way_back(speed, simulated._on_a_road(specimen, out, simulated.SECONDS))
    inertia = ROTATING * np.gradient(speed, STEP_S) * speed
    drag = 0.6 * specimen.cda_m2 / specimen.mass_kg * speed**3
    power = inertia + drag + (specimen.crr + grade) * GRAVITY * speed
    count = len(speed) // BIN * BIN
    place, time = np.cumsum(speed) * STEP_S, np.arange(len(speed)) * STEP_S
    columns = {"speed": speed, "power": power, "place": place, "time": time, "inertia": inertia}
    return Drive(**{name: values[:count].reshape(-1, BIN).mean(1) for name, values in columns.items()}, ambient=ambient)


def variance(specimen: Specimen, drives: list[Drive]) -> float:
    """Of the share of rolling resistance read from a trip, or from a way there and back."""
    rolling = np.concatenate([specimen.crr * GRAVITY * one.speed for one in drives])
    whose = np.repeat(np.arange(len(drives)), [len(one.speed) for one in drives])
    cover = np.zeros((len(rolling), len(rolling)))
    for k, one in enumerate(drives):
        cover[np.ix_(whose == k, whose == k)] = _of_a_trip(specimen, one)
    if not specimen.logger.elevation:
        place = np.concatenate(
            [one.place if k == 0 else drives[0].place[-1] - one.place for k, one in enumerate(drives)]
        )
        push = GRAVITY * np.concatenate([one.speed if k == 0 else -one.speed for k, one in enumerate(drives)])
        far = (place[:, None] - place) ** 2
        slopes = sum((specimen.terrain * height / length) ** 2 * 2.0 * (1.0 - 2.0 * far / length**2) * np.exp(-far / length**2)
                     for height, length in HILLS)  # fmt: skip
        cover += push[:, None] * push * slopes
    return float(1.0 / (rolling @ np.linalg.solve(cover, rolling)))


def _of_a_trip(specimen: Specimen, one: Drive) -> Array:
    """Covariance in (W/kg)^2, at the wheels, of what a trip has of its own and of a log's noise."""
    lag = np.abs(one.time[:, None] - one.time)
    turned = 2.0 * TURNS**2 * (1.0 - np.exp(-((lag / 120.0) ** 2)))
    wind = WIND_SD**2 * np.exp(-turned / 2.0) + GUST_SD**2 * np.exp(-((lag / 16.0) ** 2))
    push = 1.2 * specimen.cda_m2 / specimen.mass_kg * one.speed**2
    rolling = specimen.crr * GRAVITY * one.speed
    warmth = 0.0 if specimen.logger.ambient else WARMTH_SD
    loaded = one.inertia + rolling  # slope is small beside them
    asked = specimen.heating_kw_c * max(0.0, 18.0 - one.ambient) + specimen.cooling_kw_c * max(0.0, one.ambient - 22.0)
    cabin = min(asked, specimen.cabin_kw) * 1000.0 / specimen.mass_kg / LOSSES
    always = (0.2 * specimen.aux_kw * 1000.0 / specimen.mass_kg / LOSSES) ** 2 + (0.45 * cabin) ** 2
    first = 0.3 * specimen.warm_up * cabin * np.exp(-one.time / specimen.warm_up_s)
    noise = TAIL * ((specimen.logger.power_noise * one.power) ** 2 + (50.0 / specimen.mass_kg) ** 2) / (BIN * STEP_S)
    return np.asarray(
        push[:, None] * push * wind + (WET_SD**2 + warmth**2) * rolling[:, None] * rolling
        + LOAD_SD**2 * loaded[:, None] * loaded + always + first[:, None] * first
        + (0.25 * cabin) ** 2 * np.exp(-((lag / 80.0) ** 2)) + np.diag(noise + 1e-6)
    )  # fmt: skip


def found_within(deviations: Array, trips: int, rise: float, rng: np.random.Generator) -> dict[int, float]:
    """Chance of an alarm within so many trips of a change, readings of `trips` trips each with these deviations."""
    d = rise / deviations
    usual = float(np.sqrt(np.mean(d**2)))
    wanted = 10.0 * PER_YEAR / trips  # readings from one false alarm to the next

    def short(limit: float) -> float:
        grown = limit + 1.166 * usual
        return float(np.log(2.0 * (np.exp(grown) - 1.0 - grown) / usual**2 / wanted))

    limit = brentq(short, 1e-3, 40.0) if short(1e-3) < 0 else 1e-3
    total, ended = np.zeros(DRAWN), np.full(DRAWN, np.inf)
    for k in range(BURN_IN + AFTER // trips):
        step, changed = rng.choice(d, DRAWN), k >= BURN_IN
        total = np.maximum(0.0, total + step * rng.standard_normal(DRAWN) + (1 if changed else -1) * step**2 / 2.0)
        over = total >= limit
        total[over & (not changed)] = 0.0
        ended[over & changed & np.isinf(ended)] = trips * (k - BURN_IN + 1)
    return {n: float(np.mean(ended <= n)) for n in (4, 6, 10)}


def of_car(number: int, home: bool) -> dict[str, Any]:
    specimen, rng = simulated.car(number)[1], np.random.default_rng(number)
    drives = [drive(number, which, home) for which in range(BEFORE, BEFORE + AFTER)]
    size = 2 if home else 1
    deviations = np.array([variance(specimen, drives[k : k + size]) for k in range(0, AFTER, size)]) ** 0.5
    found = {rise: found_within(deviations, size, rise, rng) for rise in RISES[1:]}
    return {"elevation": specimen.logger.elevation, "deviation": float(np.median(deviations)), "found": found}


def rows_of(cars: list[dict[str, Any]], roads: str) -> list[dict[str, Any]]:
    rows = []
    for which, wanted in (("all", (True, False)), ("with elevation", (True,)), ("without", (False,))):
        some = [car for car in cars if car["elevation"] in wanted]
        for rise in RISES[1:]:
            found = {
                f"found_within_{n}": round(float(np.mean([car["found"][rise][n] for car in some])), 3)
                for n in (4, 6, 10)
            }
            deviation = round(float(np.median([car["deviation"] for car in some])), 3)
            rows.append(
                {"roads": roads, "cars": which, "number": len(some), "rise": rise, "deviation": deviation} | found
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cars", type=int, default=30)
    given = parser.parse_args()
    numbers = range(FIRST, FIRST + given.cars)
    rows = [row for roads in ("home", "own") for row in rows_of([of_car(n, roads == "home") for n in numbers], roads)]
    write(
        RESULTS / "fleet_drift_bound.csv",
        rows,
        "an observer who knows the car, speed and logged heights exactly; deviation of a reading",
    )
    show("drift at best", rows)


if __name__ == "__main__":
    main()
