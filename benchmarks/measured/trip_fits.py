"""The part of trip_drives.py that trains: one (log, split, variant) in a process of its own, arrays in, predicted drives out."""

from __future__ import annotations

import json
import time
import traceback
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from benchmarks.measured.from_base import started
from benchmarks.measured.trip_drives import BLOCK_S, HERE, Arrays, arrays_of, save
from evband.bands import Bands
from evband.bands.from_network import distribution
from evband.bands.mixtures import LocationScale
from evband.calibration import fit_stretches
from evband.channels import READINGS, SENSED
from evband.errors import TripsError
from evband.features import FeatureMap
from evband.features.physics import limits_of
from evband.features.road_load import FEW_TRIPS
from evband.network.predict import predict
from evband.settings import FROM_BASE, Settings
from evband.training.loop import Data
from evband.training.plan import Job, assign_folds, least_squares, members_of, repeats, train

CABIN = "hvac_power_kw"
WARMUP_S = 30.0
Item = tuple[str, str | int, str, int, float]


@dataclass(frozen=True)
class Fit:
    """A fitted fold and how to predict with it."""

    settings: Settings
    features: FeatureMap
    theta: torch.Tensor

    def predict(self, signals: Arrays, start: np.ndarray, members: list[int] | slice) -> tuple[LocationScale, np.ndarray, np.ndarray]:  # fmt: skip
        """(mixture, road-load features, outside) of rows."""
        arch = self.settings.architecture(len(self.features.input_names), len(self.features.road_names))
        x, r, which = self.features.arrays(signals)
        found = predict(arch, self.theta[members], x, r, start, 0.0, None)
        mixture = distribution(found, arch.levels, self.features.y_mean, self.features.y_std)
        assert isinstance(mixture, LocationScale)
        return mixture, r, np.any(which, axis=1)

    def path(self, r: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return np.asarray(self.features.y_mean + self.features.y_std * (r.astype(np.float64) @ weights))


def work(item: Item) -> str:
    log, split, variant, members, deadline = item
    target = HERE / "predicted" / f"{log}@{split}@{variant}.npz"
    if target.exists() or time.time() > deadline:
        return f"{target.stem}: {'there' if target.exists() else 'out of time'}"
    try:
        began = time.time()
        found = _fold(log, split, variant, members)
        save(target, found)
        return f"{target.stem}: {time.time() - began:.0f} s"
    except Exception:
        return f"{target.stem}: {traceback.format_exc()}"


def _fold(log: str, split: str | int, variant: str, members: int) -> Arrays:
    torch.set_num_threads(min(2, torch.get_num_threads()))
    device = "cuda" if torch.cuda.is_available() else "cpu"
    a = arrays_of(log)
    hz, number = float(a["hz"]), a["trip"].astype(int)
    test = a["late"] if split == "time" else a["fold"] == split
    signals = {k.removeprefix("signal."): v.astype(float) for k, v in a.items() if k.startswith("signal.")}
    every = dict(signals)
    for name in (READINGS, SENSED):  # only the base sees them
        signals.pop(name)
    if variant != "hvac":
        signals.pop(CABIN, None)
    rows = ~test[number]
    trips, trip = np.unique(number[rows], return_inverse=True)
    if len(trips) < 5:
        signals.pop("fade")
    channels = tuple(c for c in map(str, a["channels"]) if c in signals)
    features = FeatureMap(channels=channels, hz=hz, edges=True, fade="fade" in signals, products=True)
    known = rows & np.isfinite(a["y"]) & np.all([np.isfinite(s) for s in signals.values()], axis=0)
    reach = 1.0 if len(trips) < FEW_TRIPS else 3.5
    features.learn({c: s[known] for c, s in signals.items()}, a["y"][known].astype(float), hinges=True, reach=reach)
    x, r, _ = features.arrays({c: s[rows] for c, s in signals.items()})
    y = (a["y"][rows].astype(float) - features.y_mean) / features.y_std
    group = repeats([signals["speed_kmh"][rows][trip == t] for t in range(len(trips))])
    job = Job(Data(x, r, y, a["start"][rows], trip), assign_folds(np.bincount(trip), group), limits_of(features))
    settings = Settings(hz=hz, features=",".join(channels), members=members)
    start = started(features, job, settings, {c: s[rows] for c, s in every.items()})
    chosen: dict[str, Any] = {"from_base": False} if start is None else FROM_BASE
    settings = replace(settings, **chosen)
    theta, _ = train(job, settings, device, start=start)
    fit = Fit(settings, features, theta.half().float().to(device))
    return _predicted(fit, log, job, trips, test, signals)


def _predicted(fit: Fit, log: str, job: Job, trips: np.ndarray, test: np.ndarray, signals: Arrays) -> Arrays:
    """Out-of-bag and held-out drives, and their plans."""
    a = arrays_of(log)
    number, plan = a["trip"].astype(int), members_of(job, fit.settings)
    parts: dict[str, list[Arrays]] = {"oob": [], "plan_oob": []}
    out_of_bag = []
    path = np.full(int((~test[number]).sum()), np.nan)
    for inner in range(job.folds):
        held = np.flatnonzero(job.fold == inner)
        never = [n for n, m in enumerate(plan) if not np.isin(held, m.train).any()]
        weights = least_squares(job.data, np.flatnonzero(job.fold != inner), job.limits)
        path[np.isin(job.data.trip, held)] = fit.path(job.data.r[np.isin(job.data.trip, held)], weights)
        if never:
            out_of_bag.append(_bands(fit, a, np.isin(number, trips[held]), signals, never))
            parts["oob"].append(_rows(fit, out_of_bag[-1]))
            parts["plan_oob"] += _plan_rows(fit, log, trips[held], never, weights)
    everything = least_squares(job.data, np.arange(len(trips)), job.limits)
    bands = _bands(fit, a, test[number], signals, slice(None))
    held_out = _rows(fit, bands)
    _, r, _ = fit.predict({c: s[test[number]] for c, s in signals.items()}, a["start"][test[number]], [0])
    found = {f"test.{k}": v for k, v in held_out.items()} | {"ls.test": fit.path(r, everything).astype(np.float16)}
    found |= {"ls.oob": path.astype(np.float16), "ls.oob_trip": number[~test[number]].astype(np.int16)}
    for planned in _plan_rows(fit, log, np.flatnonzero(test), slice(None), everything):
        found |= {f"plan_test.{k}": v for k, v in planned.items()}
    for name, pieces in parts.items():
        few = min((p["dev"].shape[0] for p in pieces), default=0)
        for key in pieces[0] if pieces else ():
            found[f"{name}.{key}"] = np.concatenate([p[key][:few] if key == "dev" else p[key] for p in pieces], axis=-1)  # fmt: skip
    info = {"channels": fit.features.channels, "rows": _row_coverage(Bands.concat(out_of_bag), bands)}
    return found | {"info": np.array(json.dumps(info))}


def _row_coverage(out_of_bag: Bands, bands: Bands) -> list[dict[str, float]]:
    """Rows after warm-up that calibrated 90 % bands hold, trip by trip."""
    try:
        moving, standing = fit_stretches(out_of_bag, members=bands.members.count)
    except TripsError:  # too few to calibrate on
        moving = standing = 1.0
    assert bands.power_kw is not None
    scored = bands.stretched(np.where(bands.standing, standing, moving)).rows(
        np.isfinite(bands.power_kw) & ~bands.warmup
    )
    lower, upper = scored.interval(0.9)
    assert scored.power_kw is not None
    inside = (scored.power_kw >= lower) & (scored.power_kw <= upper)
    own = {t: scored.trip_id == t for t in dict.fromkeys(scored.trip_id.tolist())}
    return [{"n": int(which.sum()), "covered": float(inside[which].sum())} for which in own.values()]


def _bands(fit: Fit, a: Arrays, rows: np.ndarray, signals: Arrays, members: list[int] | slice) -> Bands:
    own = {c: s[rows] for c, s in signals.items()}
    mixture, _, outside = fit.predict(own, a["start"][rows], members)
    start, index = a["start"][rows], np.arange(int(rows.sum()))
    warm = (index - np.maximum.accumulate(np.where(start, index, 0))) / fit.settings.hz < WARMUP_S
    return Bands(
        trip_id=a["trip"][rows].astype(str), time_s=index / fit.settings.hz, members=mixture, warmup=warm, outside=outside,
        power_kw=a["y"][rows].astype(float), speed_kmh=own["speed_kmh"], acceleration_ms2=own["acceleration_ms2"], hz=fit.settings.hz,
    )  # fmt: skip


def _rows(fit: Fit, bands: Bands) -> Arrays:
    mixture, trip = bands.members, bands.trip_id.astype(int)
    assert isinstance(mixture, LocationScale)
    mean = mixture.mu.astype(np.float64).mean(0)
    rows = {"mean": mean.astype(np.float16), "outside": np.asarray(bands.outside), "trip": trip.astype(np.int16)}
    return rows | _blocked(fit, mixture, mean, trip)


def _plan_rows(fit: Fit, log: str, trips: np.ndarray, members: list[int] | slice, weights: np.ndarray) -> list[Arrays]:
    """Of those of these trips that have a plan; plans know no cabin, so models that need it have none."""
    if not (HERE / f"{log}.plan.npz").exists() or CABIN in fit.features.channels:
        return []
    p = arrays_of(f"{log}.plan")
    rows = np.isin(p["trip"], trips)
    if not rows.any():
        return []
    trip = p["trip"][rows].astype(int)
    signals = {k.removeprefix("signal."): v[rows].astype(float) for k, v in p.items() if k.startswith("signal.")}
    if not fit.features.fade:
        signals.pop("fade")
    mixture, r, outside = fit.predict(signals, np.append(True, np.diff(trip) != 0), members)
    mean = mixture.mu.astype(np.float64).mean(0)
    rows_of_block = round(BLOCK_S * fit.settings.hz)
    of_blocks = {"mean": blocks(mean, trip, rows_of_block), "ls": blocks(fit.path(r, weights), trip, rows_of_block)}
    return [{"outside": outside, "trip": trip.astype(np.int16)} | of_blocks | _blocked(fit, mixture, mean, trip)]


def _blocked(fit: Fit, mixture: LocationScale, mean: np.ndarray, trip: np.ndarray) -> Arrays:
    rows = round(BLOCK_S * fit.settings.hz)
    return {"dev": blocks(mixture.mu - mean, trip, rows), "noise": blocks(np.asarray(mixture.aleatoric), trip, rows)}


def blocks(values: np.ndarray, trip: np.ndarray, rows: int) -> np.ndarray:
    """Means [..., blocks] of so many rows of each trip, in half precision."""
    first = np.flatnonzero(np.append(True, np.diff(trip) != 0))
    at = np.concatenate([np.arange(a, b, rows) for a, b in zip(first, [*first[1:], len(trip)], strict=True)])
    count = np.diff(np.append(at, len(trip)))
    return np.asarray(np.add.reduceat(values.astype(np.float64), at, axis=-1) / count, dtype=np.float16)
