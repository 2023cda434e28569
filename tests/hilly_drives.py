"""Drives over gentle hills whose power is exactly a road load."""

from __future__ import annotations

import numpy as np
import polars as pl

from evband.trips import Trip

MASS_T, ROLLING_KN, DRAG_GM, GRAVITY = 1.6, 0.15, 0.4e-3, 9.81


def drive(name: str = "a", seed: int = 0, rows: int = 600, hz: float = 1.0, **drop_or_replace: object) -> Trip:
    """A drive over gentle hills whose power is exactly a road load."""
    rng = np.random.default_rng(seed)
    t = np.arange(1, rows + 1) / hz
    v = 12 + 8 * np.sin(t / 37 + rng.uniform(0, 6)) + 3 * np.sin(t / 9)
    a = np.gradient(v, 1 / hz)
    elevation = 300 + 20 * np.sin(np.cumsum(v) / hz / 700)
    ambient = 15 + 10 * np.sin(t / 200 + seed)
    power = MASS_T * a * v + ROLLING_KN * v + DRAG_GM * v**3 + 0.1 * np.maximum(0, 18 - ambient) + 0.5
    columns = {
        "time_s": t,
        "speed_kmh": 3.6 * v,
        "acceleration_ms2": a,
        "motor_torque_nm": 60 * a + 5 + rng.normal(0, 1, rows),
        "elevation_m": elevation,
        "ambient_temp_c": ambient,
        "battery_current_a": power * 3,
        "power_kw": power,
    } | drop_or_replace
    table = pl.DataFrame({k: c for k, c in columns.items() if c is not None})
    segment = (np.arange(rows) >= rows // 2).astype(np.int32)
    return Trip(name, table.with_columns(segment=pl.Series(segment, dtype=pl.Int32)), hz=hz)
