"""How drives get into logs: when each channel is read, how late, how coarse, and whether it is read at all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.simulation.cycles import around, smooth_noise
from evband.vehicles.physics import GRAVITY

Array = NDArray[np.float64]

WITH_SENSOR = 1 / 3  # share of logs with an accelerometer
QUICK_S = 0.4  # between readings of the speed on the bus
LEVELLED = 0.25  # share of those that tell only the change of speed: made from the wheels, or with the slope taken out


@dataclass(frozen=True)
class Accelerometer:
    """What it shows of the change of speed and, on a slope, of gravity."""

    every_s: float
    gain: float  # the body pitches as it pulls and brakes
    tilt: float  # share of gravity along a slope that it feels
    bias_ms2: float
    noise_ms2: float
    late_s: float


@dataclass(frozen=True)
class Logger:
    """A way of recording a drive."""

    jitter: float  # relative, of the time between readings
    speed_every_s: float
    speed_step_kmh: float
    speed_gain: float
    speed_late_s: float
    speed_noise_kmh: float
    power_every_s: float
    power_mean: bool  # a reading is the mean since the last one, not an instant's
    power_late_s: float
    power_noise: float  # Student-t, relative
    elevation: bool
    elevation_noise_m: float
    elevation_step_m: float
    ambient: bool
    ambient_bias_c: float
    accelerometer: Accelerometer | None = None


def draw_accelerometer(quick: bool, rng: np.random.Generator) -> Accelerometer | None:
    """One log in three has one: that of the car's own brakes, which sets itself to zero, or what a phone reads of it or has."""
    normal = rng.standard_normal
    found = Accelerometer(
        every_s=float(rng.uniform(0.1, 0.3) if quick else rng.uniform(0.5, 1.6)), gain=1.0 + 0.03 * abs(normal()),
        tilt=float(rng.random() > LEVELLED), bias_ms2=(0.03 if quick else 0.1) * normal(),
        noise_ms2=around(rng, 0.04 if quick else 0.08, 0.7), late_s=abs((0.1 if quick else 0.4) * normal()),
    )  # fmt: skip
    return found if rng.random() < WITH_SENSOR else None


def draw_logger(rng: np.random.Generator) -> Logger:
    """What a vehicle is logged with."""
    found = _without_accelerometer(rng)
    return replace(found, accelerometer=draw_accelerometer(found.speed_every_s < QUICK_S, rng))


def _without_accelerometer(rng: np.random.Generator) -> Logger:
    """A bus logger (six in ten), a phone on the diagnostic port (a quarter), or a GPS logger with a current clamp
    (as slow as telemetry over the air at times).

    More clean logs than people have: who learns from noisy ones learns to expect too little of a pedal, and a clean log
    suffers more from that than a noisy one gains.
    """
    kind, normal = rng.random(), rng.standard_normal

    common: dict[str, Any] = {
        "elevation": bool(rng.random() < 0.6), "elevation_noise_m": around(rng, 0.6, 0.9),
        "elevation_step_m": float(rng.choice([0.01, 0.1, 1.0])), "ambient": bool(rng.random() < 0.75),
        "ambient_bias_c": float(1.5 * normal()), "jitter": 0.15,
    }  # fmt: skip
    if kind < 0.6:
        return Logger(
            speed_every_s=float(rng.uniform(0.1, 0.3)), speed_step_kmh=float(rng.choice([0.01, 0.05, 0.1])),
            speed_gain=1.0 + 0.005 * normal(), speed_late_s=abs(0.1 * normal()), speed_noise_kmh=around(rng, 0.03, 0.6),
            power_every_s=float(rng.uniform(0.1, 0.3)), power_mean=True, power_late_s=0.15 * normal(),
            power_noise=around(rng, 0.008, 0.6), **common,
        )  # fmt: skip
    if kind < 0.85:
        return Logger(
            speed_every_s=float(rng.uniform(0.5, 1.6)), speed_step_kmh=float(rng.choice([0.01, 0.1, 0.5, 1.0])),
            speed_gain=1.0 + float(rng.random() < 0.5) * rng.uniform(-0.01, 0.045),
            speed_late_s=max(0.0, 0.2 + 0.4 * normal()), speed_noise_kmh=around(rng, 0.12, 0.9),
            power_every_s=float(rng.uniform(0.4, 1.6)), power_mean=bool(rng.random() < 0.2),
            power_late_s=0.2 + 0.5 * normal(), power_noise=around(rng, 0.02, 0.8), **common,
        )  # fmt: skip
    common["jitter"] = float(rng.choice([0.0, 0.15]))
    return Logger(
        speed_every_s=float(rng.choice([1.0, 1.0, 2.0, 2.0, 3.0, 5.0])), speed_step_kmh=float(rng.choice([0.01, 0.1, 1.0])),
        speed_gain=1.0, speed_late_s=abs(1.5 + 1.2 * normal()), speed_noise_kmh=around(rng, 0.35, 0.6),
        power_every_s=float(rng.choice([0.5, 1.0, 2.0])), power_mean=False, power_late_s=0.5 * normal(),
        power_noise=around(rng, 0.03, 0.8), **common,
    )  # fmt: skip


def logged(
    logger: Logger, step_s: float, truth: dict[str, Array], ambient_c: float, rng: np.random.Generator
) -> pl.DataFrame:
    """The log's table: a row for every instant at which something was read, empty where nothing was."""
    time_s: Array = np.arange(len(truth["speed_kmh"]), dtype=np.float64) * step_s
    end = float(time_s[-1])
    readings = {
        "speed_kmh": _speed(logger, time_s, truth["speed_kmh"], rng),
        "power_kw": _power(logger, time_s, truth["power_kw"], rng),
    }
    if logger.elevation:
        at = _instants(1.0, end, rng)
        height = np.interp(at, time_s, truth["elevation_m"]) + logger.elevation_noise_m * smooth_noise(
            len(at), 15.0, rng
        )
        readings["elevation_m"] = at, np.round(height / logger.elevation_step_m) * logger.elevation_step_m
    if logger.accelerometer is not None:
        readings["acceleration_ms2"] = _acceleration(
            logger.accelerometer, time_s, truth["speed_kmh"], truth["grade"], rng
        )
    if logger.ambient:
        at = np.arange(0.0, end, 20.0)
        readings["ambient_temp_c"] = at, np.full(len(at), np.round(2.0 * (ambient_c + logger.ambient_bias_c)) / 2.0)
    table = pl.DataFrame({"time_s": np.unique(np.round(np.concatenate([at for at, _ in readings.values()]), 3))})
    for channel, (at, values) in readings.items():
        times, first = np.unique(np.round(at, 3), return_index=True)
        own = pl.DataFrame({"time_s": times, channel: values[first]})
        table = table.join(own, on="time_s", how="left", maintain_order="left")
    return table


def _instants(every_s: float, end_s: float, rng: np.random.Generator, jitter: float = 0.15) -> Array:
    at = np.cumsum(every_s * np.exp(jitter * rng.standard_normal(int(end_s / every_s) + 2)))
    return np.asarray(at[at < end_s])


def _speed(logger: Logger, time_s: Array, speed_kmh: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    at = _instants(logger.speed_every_s, float(time_s[-1]), rng, logger.jitter)
    shown = logger.speed_gain * np.interp(at - logger.speed_late_s, time_s, speed_kmh)
    shown = np.where(shown > 0.3, shown + logger.speed_noise_kmh * rng.standard_normal(len(at)), 0.0)
    return at, np.round(np.maximum(shown, 0.0) / logger.speed_step_kmh) * logger.speed_step_kmh


def _acceleration(
    sensor: Accelerometer, time_s: Array, speed_kmh: Array, grade: Array, rng: np.random.Generator
) -> tuple[Array, Array]:
    at = _instants(sensor.every_s, float(time_s[-1]), rng)
    felt = sensor.gain * np.gradient(speed_kmh / 3.6, time_s) + sensor.tilt * GRAVITY * grade + sensor.bias_ms2
    shown = np.interp(at - sensor.late_s, time_s, felt) + sensor.noise_ms2 * rng.standard_normal(len(at))
    return at, np.round(shown, 2)


def _power(logger: Logger, time_s: Array, power_kw: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    at = _instants(logger.power_every_s, float(time_s[-1]), rng, logger.jitter)
    if logger.power_mean:
        step = time_s[1] - time_s[0]
        ends, drawn = np.append(time_s - step, time_s[-1]), np.append(0.0, np.cumsum(power_kw)) * step
        before = np.append(0.0, at[:-1])
        late = logger.power_late_s
        shown = (np.interp(at - late, ends, drawn) - np.interp(before - late, ends, drawn)) / np.maximum(
            at - before, 1e-6
        )
    else:
        shown = np.interp(at - logger.power_late_s, time_s, power_kw)
    return at, shown + (0.05 + logger.power_noise * np.abs(shown)) * rng.standard_t(4.0, len(at))
