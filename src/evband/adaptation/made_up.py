"""Made-up drives: what a car is asked on a road nobody has logged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evband.channels import DENSE, READINGS
from evband.features.road_load import CHANGE, FADE, KINETIC, edge_signals

Array = NDArray[np.float64]

USUAL_KMH = {"town": 26.0, "rural": 66.0, "motorway": 100.0}  # mean speed on each kind of road


def roads_of(speed_kmh: float) -> dict[str, float]:
    """Shares in time of the roads that a trip of such a mean speed is on: their usual speeds have that mean."""
    town, rural, motorway = USUAL_KMH.values()
    fast = float(np.clip((speed_kmh - town) / (motorway - town), 0.0, 1.0)) ** 1.5
    slow = float(np.clip((rural + (motorway - rural) * fast - speed_kmh) / (rural - town), 0.0, 1.0 - fast))
    return {"town": slow, "rural": 1.0 - fast - slow, "motorway": fast}


def drive(stretches: Sequence[tuple[str, float]], rng: np.random.Generator) -> Array:
    """Speed in km/h at steps of 1 s over stretches (kind of road, about how many seconds), from rest to rest."""
    from evband.simulation.cycles import follow, random_drive

    reference = random_drive(stretches, rng)
    return 3.6 * follow(reference, 1.0, int(reference[0][-1]), 0.5, rng)


def drive_of_mean(speed_kmh: float, seconds: float, rng: np.random.Generator) -> Array:
    """A drive over the roads that such a mean speed is usual on, scaled to that mean."""
    speed = drive([(kind, share * seconds) for kind, share in roads_of(speed_kmh).items() if share > 0.02], rng)
    return np.asarray(speed * speed_kmh / speed.mean())


def signals_of(
    speed: Array, ambient_c: float, fade: Array | float = 0.0, grade: float = 0.0, readings: float = DENSE
) -> dict[str, Array]:
    """Signals of the bins between speeds at steps of 1 s; a temperature or grade of NaN is unknown."""
    edges = edge_signals(speed[:-1], speed[1:], 1.0)
    count = len(speed) - 1
    return {
        "speed_kmh": (speed[1:] + speed[:-1]) / 2, "acceleration_ms2": edges[CHANGE], "elevation_m": np.full(count, grade),
        "ambient_temp_c": np.full(count, ambient_c), KINETIC: edges[KINETIC], CHANGE: edges[CHANGE],
        FADE: np.zeros(count) + fade, READINGS: np.full(count, readings),
    }  # fmt: skip
