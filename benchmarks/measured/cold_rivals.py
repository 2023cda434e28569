"""What a cold start is measured against: the car's own minutes without a prior, and what its power is like on the whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measured.cold_start import WARMUP_S, Arrays, bands_of, plain_bands, scores, signals_for

SIGNALS = ("speed_kmh", "acceleration_ms2", "elevation_m", "ambient_temp_c", "kinetic", "speed_change", "fade")
TAILS = 4.0  # degrees of freedom of a Student-t about least squares


def fitted(arrays: Arrays, rows: NDArray[np.int64], seed: int, from_base: bool) -> dict[str, Any]:
    """`evband fit` on these rows, calibrated as fit does it; without the base it is `evband fit --from-scratch`."""
    from benchmarks.measured.from_base import started
    from evband.bands import Bands
    from evband.calibration import calibration_trips, fit_stretches, minimum_trips
    from evband.errors import EvbandError
    from evband.features import FeatureMap
    from evband.features.map import FEW_REACH, REACH
    from evband.features.road_load import FEW_TRIPS
    from evband.model import PowerModel
    from evband.settings import FROM_BASE, Settings
    from evband.training.loop import Data
    from evband.training.plan import Job, assign_folds, members_of, repeats, resolve_device, train

    trips, trip = np.unique(arrays["trip"][rows], return_inverse=True)
    features = FeatureMap(
        channels=tuple(map(str, arrays["channels"])), hz=1.0, edges=True, fade=len(trips) >= 5, products=True
    )
    signals = signals_for(features, arrays, rows)
    y, speed = arrays["y"][rows], arrays["signals"]["speed_kmh"][rows]
    known = np.isfinite(y) & np.all([np.isfinite(s) for s in signals.values()], axis=0)
    features.learn(
        {c: s[known] for c, s in signals.items()}, y[known], True, FEW_REACH if len(trips) < FEW_TRIPS else REACH
    )
    x, r, _ = features.arrays(signals)
    begin = arrays["start"][rows].copy()
    begin[0], begin[1:] = True, begin[1:] | (np.diff(rows) != 1)
    z = (y - features.y_mean) / features.y_std
    job = Job(
        Data(x, r, z, begin, trip),
        assign_folds(np.bincount(trip), repeats([speed[trip == t] for t in range(len(trips))])),
    )
    settings, own = Settings(seed=seed, from_base=from_base), {k: v[rows] for k, v in arrays["signals"].items()}
    start = started(features, job, settings, own) if from_base else None
    settings = replace(settings, from_base=start is not None, **({} if start is None else FROM_BASE))
    theta, _ = train(job, settings, resolve_device("auto"), start=start)
    model = PowerModel.of(settings)
    model.settings_, model.feature_map_, model.theta_ = settings, features, theta.cpu().numpy()
    factors, parts, plan = (1.0, 1.0), [], members_of(job, settings)
    for fold in range(job.folds):
        held = np.flatnonzero(job.fold == fold)
        never = [n for n, m in enumerate(plan) if len(held) and not np.isin(held, m.train).any()]
        if never:
            parts.append(bands_of(arrays, rows[np.isin(trip, held)], model, never))
    try:
        if parts and calibration_trips(left_out := Bands.concat(parts)) >= minimum_trips(0.9):
            factors = fit_stretches(left_out, 0.9, len(theta))
    except EvbandError:
        pass  # too few standing or moving rows: bands as trained
    bands = bands_of(arrays, np.flatnonzero(arrays["test"]), model)
    return scores(arrays, bands.stretched(np.where(bands.standing, factors[1], factors[0])))


def squares(arrays: Arrays, rows: NDArray[np.int64], wheel: tuple[float, float, float]) -> dict[str, Any]:
    """Least squares on these rows alone, on the terms of the data sheet, with the scale of its own errors."""
    from evband.features.wheel import wheel_terms

    unknown = np.full(len(arrays["y"]), np.nan)
    signals = {name: arrays["signals"].get(name, unknown) for name in SIGNALS}
    terms = np.nan_to_num(np.stack(list(wheel_terms(signals, wheel)[1].values()), 1))
    size = np.sqrt((terms[rows] ** 2).mean(0))
    terms /= np.where(size > 1e-6, size, 1.0)
    known = rows[np.isfinite(arrays["y"][rows])]
    weights = np.linalg.lstsq(terms[known], arrays["y"][known], rcond=1e-4)[0]
    test, free = np.flatnonzero(arrays["test"]), max(1, len(known) - terms.shape[1])
    spread = float(np.sqrt(((arrays["y"][known] - terms[known] @ weights) ** 2).sum() / free))
    scale = spread * (1.0 - 2.0 / TAILS) ** 0.5
    return scores(arrays, plain_bands(arrays, test, terms[test] @ weights, scale, TAILS))


def climatology(arrays: Arrays) -> dict[str, Any]:
    """CRPS of the distribution of the car's own power, whatever it does: mean |X - y| - mean |X - X'| / 2."""
    own = arrays["y"][~arrays["test"]]
    sample = np.quantile(own[np.isfinite(own)], (np.arange(400) + 0.5) / 400)
    y = arrays["y"][arrays["test"] & (arrays["since"] >= WARMUP_S)]
    y = y[np.isfinite(y)][:: max(1, len(y) // 4000)]
    within = np.abs(sample[:, None] - sample).mean() / 2
    return {"crps_kw": float(np.mean([np.abs(sample - one).mean() for one in y]) - within)}
