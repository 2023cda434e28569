"""What is to be driven, and a driver who follows it imperfectly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evband.simulation.vehicles import import_fastsim

Array = NDArray[np.float64]
AT_REST_MS = 0.005  # slower is standing still
Reference = tuple[Array, Array]  # (time_s, speed in m/s): corner points of the speed asked for


@dataclass(frozen=True)
class Road:
    """How one kind of road is driven: target speeds, how long each lasts, how hard it is reached, how often one stops."""

    speed_kmh: tuple[float, float]
    hold_s: tuple[float, float]
    acceleration_ms2: tuple[float, float]
    stop_share: float


ROADS = {
    "town": Road((20.0, 58.0), (6.0, 35.0), (0.6, 1.6), 0.40),
    "rural": Road((50.0, 95.0), (15.0, 70.0), (0.4, 1.3), 0.08),
    "motorway": Road((88.0, 122.0), (25.0, 120.0), (0.2, 0.8), 0.0),
    "traffic": Road((15.0, 85.0), (8.0, 30.0), (0.4, 1.2), 0.10),
}


def standard_cycle(name: str) -> Reference:
    """A regulatory cycle that ships with FASTSim: `hwfet` (765 s, 16.5 km) or `udds` (1369 s, 12 km)."""
    cycle = import_fastsim().Cycle.from_resource(f"{name}.csv").to_dict()
    return np.asarray(cycle["time_seconds"]), np.asarray(cycle["speed_meters_per_second"])


def random_drive(
    stretches: Sequence[tuple[str, float]], rng: np.random.Generator, roads: Mapping[str, Road] = ROADS
) -> Reference:
    """A made-up drive over stretches (kind of road, about how many seconds), from rest to rest."""
    times, speeds = [0.0, 5.0], [0.0, 0.0]

    def go(target_ms: float, acceleration_ms2: float, hold_s: float) -> None:
        ramp = abs(target_ms - speeds[-1]) / acceleration_ms2 + 0.1
        times.extend([times[-1] + ramp, times[-1] + ramp + hold_s])
        speeds.extend([target_ms, target_ms])

    for kind, duration_s in stretches:
        road, until = roads[kind], times[-1] + duration_s
        while times[-1] < until:
            stop = rng.random() < road.stop_share and speeds[-1] > 0.0
            target = 0.0 if stop else rng.uniform(*road.speed_kmh) / 3.6
            go(target, rng.uniform(*road.acceleration_ms2), rng.uniform(*road.hold_s))
    go(0.0, rng.uniform(0.6, 1.2), 8.0)
    return np.asarray(times), np.asarray(speeds)


def smooth_noise(count: int, memory: float, rng: np.random.Generator) -> Array:
    """Gaussian noise of unit variance [count] whose correlation falls as exp(-(lag / (2 memory))^2), memory in samples.

    Drawn at a tenth of its memory and interpolated, so that a memory of minutes costs no more than one of seconds.
    """
    from scipy.ndimage import gaussian_filter1d

    stride = max(1, int(memory / 10))
    sigma = memory / stride
    pad = int(4 * sigma) + 1
    noise = gaussian_filter1d(rng.standard_normal(count // stride + 2 + 2 * pad), sigma)[pad:-pad]
    noise *= np.sqrt(2.0 * sigma * np.sqrt(np.pi))
    return np.interp(np.arange(count), stride * np.arange(len(noise)), noise)


def hills(end_m: float, wave_m: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """(metres along the way, height) every 20 m: hills of some 10 m within a kilometre on waves of `wave_m` in some five."""
    posts = np.arange(0.0, end_m, 20.0)
    return posts, 9.0 * smooth_noise(len(posts), 35.0, rng) + wave_m * smooth_noise(len(posts), 250.0, rng)


def elevation_and_grade(distance_m: Array, posts: Array, height: Array) -> tuple[Array, Array]:
    """(elevation [m], grade [-]) at these distances, straight between posts."""
    return np.interp(distance_m, posts, height), np.interp(distance_m, posts, np.gradient(height, posts))


def rolling(speed_ms: Array) -> Array:
    """How much of a driver's restlessness a car shows: none at rest, all of it from some 8 m/s on."""
    return np.asarray(1.0 - np.exp(-((speed_ms / 4.0) ** 2)))


def around(rng: np.random.Generator, middle: float, spread: float) -> float:
    """A log-normal draw."""
    return float(middle * np.exp(spread * rng.standard_normal()))


def follow(reference: Reference, step_s: float, count: int, wander_kmh: float, rng: np.random.Generator) -> Array:
    """The speed driven [count] at steps of `step_s`: the reference rounded off, late, and with a slow wander about it.

    A driver sees corners coming (Gaussian smoothing, 0.7-1.1 s), answers 0.2-0.5 s late, and lets the speed wander by
    `wander_kmh` (standard deviation, memory about 4 s) once the car rolls.
    """
    from scipy.ndimage import gaussian_filter1d

    time_s = np.arange(count) * step_s
    late, rounding = rng.uniform(0.2, 0.5), rng.uniform(0.7, 1.1)
    asked = np.interp(time_s - late, *reference)
    speed = gaussian_filter1d(asked, rounding / step_s, mode="nearest")
    wander = wander_kmh / 3.6 * smooth_noise(count, 4.0 / step_s, rng)
    speed = np.maximum(speed + rolling(speed) * wander, 0.0)
    speed[speed < AT_REST_MS] = 0.0
    return np.asarray(speed)
