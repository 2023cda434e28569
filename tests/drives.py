"""Made-up drives of a made-up car, and a small model fitted to them, shared by the tests of energy, range and stream."""

from __future__ import annotations

import functools

import numpy as np
import polars as pl

from evband.model import PowerModel
from evband.trips import Trip, Trips


def made_up_trip(name: str, seconds: int = 400, seed: int = 0, heater_kw: float = 0.0, torque: bool = False) -> Trip:
    """1 Hz: speed wanders, the road climbs and falls, power by physics + a trip effect + correlated noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(seconds + 1.0)
    at = 25.0 * np.arange(seconds // 25 + 2)
    knots = np.interp(t, at, np.append(0, np.maximum(rng.uniform(-20, 120, len(at) - 1), 0)))
    speed = np.convolve(np.pad(knots, 5, mode="edge"), np.ones(11) / 11, mode="valid")
    slope = 0.03 * np.sin(2 * np.pi * t / 300 + rng.uniform(0, 6))
    elevation = 200 + np.cumsum(speed / 3.6 * slope)
    ambient = np.full(len(t), rng.uniform(-5, 25))
    v, a = speed / 3.6, np.gradient(speed) / 3.6
    noise = np.convolve(rng.normal(size=len(t) + 20), np.ones(21) / 21, mode="valid") * 2
    power = 1.6 * a * v + 0.15 * v + 0.0004 * v**3 + 16 * v * slope + 0.5 + heater_kw + noise
    table = {"time_s": t, "speed_kmh": speed, "elevation_m": elevation, "ambient_temp_c": ambient, "power_kw": power}
    if torque:
        table["motor_torque_nm"] = 100 * a + 30
    return Trip(name, pl.DataFrame(table))


def made_up_trips(count: int = 12, seconds: int = 400, torque: bool = False) -> Trips:
    heater = np.random.default_rng(99).normal(0, 0.5, count)
    return Trips(made_up_trip(f"trip{i}", seconds + 10 * i, i, float(heater[i]), torque) for i in range(count))


@functools.cache
def small_model(**settings) -> PowerModel:
    """Seconds to fit, once a test process; members enough for every trip to be left out by some; what fades would need longer training."""
    chosen = {
        "members": 5,
        "epochs": 3,
        "hidden": 8,
        "window": 64,
        "burn_in": 8,
        "device": "cpu",
        "fade": False,
    } | settings
    return PowerModel(**chosen).fit(made_up_trips(torque=chosen.get("features") == "torque"))
