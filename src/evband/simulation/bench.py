"""A chassis dynamometer's log, simulated: every channel in every row, and power noise that is Student-t, exactly.

This is the simulation against which aleatoric estimates are checked. Row t tells of (t - 1/hz, t]; given its
`speed_kmh` and `acceleration_ms2`,

    power_kw = true_power_kw + true_scale_kw * T,    T ~ Student-t(true_nu), independent from row to row,

where `true_scale_kw` is `Car.noise_scale_kw` of those two logged values, and `true_power_kw` is a function of the
noise-free motion. So a model on the log's own grid faces exactly this t, except for what the sensors hide: their noise,
below, blurs the mean by less than half a per cent of the noise's variance (docs/notes/simulation.md).
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.simulation.cycles import Reference, follow, random_drive, standard_cycle
from evband.simulation.physics import Physics, drive
from evband.simulation.vehicles import CARS, Car

Array = NDArray[np.float64]

PHYSICS_HZ = 10.0  # the physics never runs coarser than this
SPEED_NOISE_KMH = 0.02
ACCELERATION_NOISE_MS2 = 0.001
FORCE_NOISE_N = 3.0
PARASITIC_NOISE_N = 0.5
WANDER_KMH = 0.7


def bench_run(name: str, trip: int, hz: float, rng: np.random.Generator) -> pl.DataFrame:
    """The log of run number `trip`: 0, 4, 8, ... drive HWFET, 1, 5, ... UDDS, the others a made-up cycle each."""
    reference = _reference(trip, rng)
    steps = math.ceil(PHYSICS_HZ / hz - 1e-9)  # of the physics to a row of the log
    rows = math.floor(reference[0][-1] * hz + 1e-9)
    step_s = 1.0 / (hz * steps)
    speed = follow(reference, step_s, rows * steps + 1, WANDER_KMH, rng)
    truth = drive(CARS[name], speed, step_s).every(steps)
    return _log(CARS[name], truth, reference, np.arange(rows + 1) / hz, rng)


def _reference(trip: int, rng: np.random.Generator) -> Reference:
    if trip % 4 < 2:
        return standard_cycle(("hwfet", "udds")[trip % 4])
    kinds = rng.permutation(["town", "rural", "motorway"])
    return random_drive([(str(kind), float(rng.uniform(180.0, 420.0))) for kind in kinds], rng)


def _log(car: Car, truth: Physics, reference: Reference, time_s: Array, rng: np.random.Generator) -> pl.DataFrame:
    def noise(size: float) -> Array:
        return size * rng.standard_normal(len(time_s))

    speed_kmh = np.maximum(3.6 * truth.speed_ms + noise(SPEED_NOISE_KMH), 0.0)
    acceleration = truth.acceleration_ms2 + noise(ACCELERATION_NOISE_MS2)
    scale_kw = car.noise_scale_kw(speed_kmh / 3.6, acceleration)
    warming = 1.0 - 0.08 * (1.0 - np.exp(-time_s / 300.0))  # the rolls' bearings turn easier as they warm up
    parasitic = warming * (18.0 + 0.20 * speed_kmh + 0.0012 * speed_kmh**2)
    return pl.DataFrame(
        {
            "time_s": time_s,
            "speed_kmh": speed_kmh,
            "acceleration_ms2": acceleration,
            "force_n": car.force_n(truth.speed_ms, truth.acceleration_ms2) + noise(FORCE_NOISE_N),
            "road_load_n": car.road_load_n(speed_kmh / 3.6),  # set by the bench from the speed it measures
            "parasitic_n": parasitic + noise(PARASITIC_NOISE_N),
            "drive_ref_kmh": 3.6 * np.interp(time_s, *reference),
            "power_kw": truth.power_kw + scale_kw * rng.standard_t(car.nu, len(time_s)),
            "true_power_kw": truth.power_kw,
            "true_scale_kw": scale_kw,
            "true_nu": np.full(len(time_s), car.nu),
        }
    )
