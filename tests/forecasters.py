"""Synthetic forecasters whose truth is known, shared by the tests of scores and calibration."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from evband.bands import Bands, GaussianMixture, StudentMixture


def correlated_errors(rng, lengths, rho=0.95, trip_std=0.3):
    """AR(1) errors with a constant for each trip, unit variance in all."""
    parts = []
    for n in lengths:
        noise = rng.normal(size=n + 200) * np.sqrt((1 - rho**2) * (1 - trip_std**2))
        parts.append(lfilter([1.0], [1.0, -rho], noise)[200:] + trip_std * rng.normal())
    return np.concatenate(parts)


def gaussian_bands(error, lengths, scale=1.0, mean=None):
    """One Gaussian a row around `mean`, with measured power mean + error."""
    mean = np.zeros(len(error)) if mean is None else mean
    return make_bands(GaussianMixture(mean[None], np.full((1, len(error)), scale)), lengths, mean + error)


def make_bands(members, lengths, power_kw=None, **columns):
    n = len(members)
    trip = np.repeat([f"trip {i}" for i in range(len(lengths))], lengths)
    time = np.concatenate([np.arange(1.0, k + 1) for k in lengths])
    columns = {"warmup": np.zeros(n, bool), "outside": np.zeros(n, bool), "hz": 1.0, **columns}
    return Bands(trip, time, members, power_kw=power_kw, **columns)


def student_bands(rng, lengths, members=5, **columns):
    """A spread mixture of Student-t's whose outcomes are drawn from it."""
    n = int(np.sum(lengths))
    centre = rng.normal(10, 15, n)
    mu = centre + 0.5 * rng.normal(size=(members, n))
    s = np.exp(0.4 * rng.normal(size=(members, n)))
    nu = rng.uniform(3, 8, members)
    pick = rng.integers(members, size=n)
    row = np.arange(n)
    y = mu[pick, row] + s[pick, row] * rng.standard_t(nu[pick])
    return make_bands(StudentMixture(mu, s, nu), lengths, y, **columns)
