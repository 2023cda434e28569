"""Synthetic drives of a car with known mass, drag and noise, already on the grid; and settings of tiny, quick models."""

from __future__ import annotations

import numpy as np
import polars as pl

from evband.network.anchors import make_prior
from evband.network.architecture import Architecture
from evband.training.loop import Data, Member
from evband.trips import Trip, Trips

TINY = {"members": 3, "hidden": 8, "epochs": 3, "window": 32, "burn_in": 8, "batch": 16, "device": "cpu"}
MASS_T, ROLLING_KN, DRAG, AUX_KW = 1.6, 0.12, 0.00045, 0.5  # of v in m/s: P = AUX + ROLLING v + DRAG v^3 + MASS a v


def speed_profile(rng, seconds):
    """Smooth random speed in m/s between 0 and 35, with standstill."""
    knots = rng.uniform(-5, 35, seconds // 15 + 2)
    return np.maximum(0.0, np.interp(np.arange(seconds), 15.0 * np.arange(len(knots)), knots))


def drive(trip_id, seconds=300, seed=0, noise_kw=0.5, nu=5.0, power=None, extra=None, top_ms=None):
    """One gridded trip; `power(v, a)` replaces the road load in kW, `extra(rng, seconds)` adds channels."""
    rng = np.random.default_rng([seed, sum(map(ord, trip_id))])
    v = speed_profile(rng, seconds) * (1.0 if top_ms is None else top_ms / 35.0)
    a = np.diff(v, prepend=v[0])
    load = AUX_KW + ROLLING_KN * v + DRAG * v**3 + MASS_T * a * v if power is None else power(v, a)
    table = {
        "time_s": 1.0 + np.arange(seconds),
        "speed_kmh": 3.6 * v,
        "acceleration_ms2": a,
        "power_kw": load + noise_kw * rng.standard_t(nu, seconds),
        **(extra(rng, seconds) if extra else {}),
    }
    return Trip(trip_id, pl.DataFrame(table).with_columns(segment=pl.lit(0, pl.Int32)), hz=1.0)


def drives(count=10, **how):
    return Trips(drive(f"drive {i}", **how) for i in range(count))


def arrays(rng, lengths=(90, 70, 120), inputs=2, road=2):
    """Training data without any trips behind it: y is linear in r plus noise; a few targets are unknown."""
    n = sum(lengths)
    start = np.zeros(n, bool)
    start[np.cumsum([0, *lengths[:-1]])] = True
    x, r = rng.normal(size=(n, inputs)).astype(np.float32), rng.normal(size=(n, road)).astype(np.float32)
    y = r @ np.linspace(0.5, 1.0, road) + 0.3 * rng.normal(size=n)
    y[rng.random(n) < 0.05] = np.nan
    return Data(x, r, y, start, np.repeat(np.arange(len(lengths)), lengths))


def members(arch: Architecture, count=3, train=(0, 1), held_out=(2,), beta=0.5, temperature=1.0):
    prior = make_prior(arch)
    return [Member(m, np.array(train), np.array(held_out, np.int64), prior, beta, temperature) for m in range(count)]


def dropping(rate):
    """Settings of a method with this dropout rate."""
    return {"method": "t-dropout", "dropout": rate} if rate else {}
