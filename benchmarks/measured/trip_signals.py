"""The part of trip_drives.py that needs tables: signals, folds and plans of every log as arrays."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import polars as pl

import evband
from benchmarks.measured.trip_drives import HERE, LOGS, Arrays, Log, save
from evband.channels import READINGS, SENSED
from evband.energy.planned import router_says
from evband.features import FeatureMap
from evband.features.density import tilt_of
from evband.features.names import resolve_features
from evband.features.rows import power_of, starts_of
from evband.trips import Trip, Trips

CABIN = "hvac_power_kw"


def prepare(data: Path) -> None:
    HERE.mkdir(parents=True, exist_ok=True)
    for name, log in LOGS.items():
        trips = _with_cabin(evband.read_trips(str(data / log.files)), data, log).on_grid(log.hz)
        channels = resolve_features(log.features + (f",{CABIN}" if log.cabin else ""), trips)
        features = FeatureMap(channels=channels, hz=log.hz, edges=True, fade=True)
        drive = [i.split("_")[1] if name.startswith("cc_") else i for i in trips.ids]
        of_base = {c: np.concatenate([trip.table[c].to_numpy() for trip in trips]) for c in (READINGS, SENSED)}
        found = (
            _signals(features, list(trips))
            | {f"signal.{c}": values.astype(np.float32) for c, values in of_base.items()}
            | dict(
                y=np.concatenate([power_of(trip) for trip in trips]).astype(np.float32),
                start=np.concatenate([starts_of(trip) for trip in trips]),
                trip=np.repeat(np.arange(len(trips)), [len(trip) for trip in trips]).astype(np.int16),
                fold=_folds(name, log, data, trips, drive),
                late=_late(trips.ids, drive, name),
                hz=np.array(log.hz),
                channels=np.array(channels),
            )
        )
        save(HERE / f"{name}.npz", found)
        if log.plannable:
            known = tuple(c for c in channels if c != CABIN)
            tilt = tilt_of(list(trips))  # of the car's sensor, so all trips tell it
            _plans(name, trips, FeatureMap(channels=known, hz=log.hz, edges=True, fade=True, tilt=tilt))
        print(name, trips, channels, flush=True)


def _signals(features: FeatureMap, trips: list[Trip]) -> Arrays:
    found = [features.signals_of(trip) for trip in trips]
    return {f"signal.{c}": np.concatenate([s[c] for s in found]).astype(np.float32) for c in found[0]}


def _with_cabin(trips: Trips, data: Path, log: Log) -> Trips:
    """The i3's tables have heating and air conditioning apart, under names of their own."""
    if log.folds != "bmw_i3_road" or all(trip.has(CABIN) for trip in trips):
        return trips
    draw = pl.read_parquet(data / log.files).select(
        "trip_id", pl.col("time_s").cast(pl.Float64), (pl.col("heating_power_kw") + pl.col("aircon_power_kw")).cast(pl.Float64).alias(CABIN)
    )  # fmt: skip
    own = {str(trip[0]): part.drop("trip_id") for trip, part in draw.group_by("trip_id")}
    tables = [(trip.trip_id, trip.table.join(own[trip.trip_id], on="time_s", how="left", maintain_order="left")) for trip in trips]  # fmt: skip
    return Trips(Trip(trip_id, table) for trip_id, table in tables)


def _folds(name: str, log: Log, data: Path, trips: Trips, drive: list[str]) -> np.ndarray:
    if log.folds is not None:
        with (data / "splits.csv").open() as file:
            given = {row["trip_id"]: int(row["fold"]) for row in csv.DictReader(file) if row["log"] == log.folds}
        return np.array([given[i] for i in trips.ids])
    drives, rng = sorted(set(drive)), np.random.default_rng(0)
    dealt = [drives[i] for i in rng.permutation(len(drives))]
    if name.startswith("ved"):
        dealt = [drives[i] for i in rng.permutation(len(drives))]
        fold = {d: k % 5 for k, d in enumerate(dealt)}
    else:  # few drives of very different length: the longest first, each to the fold with the fewest rows
        rows = {d: sum(len(t) for t, own in zip(trips, drive, strict=True) if own == d) for d in drives}
        load, fold = np.zeros(min(5, len(drives))), {}
        for d in sorted(dealt, key=lambda d: -rows[d]):
            fold[d] = int(load.argmin())
            load[fold[d]] += rows[d]
    return np.array([fold[d] for d in drive])


def _late(ids: tuple[str, ...] | list[str], drive: list[str], name: str) -> np.ndarray:
    """[trips]: whether a trip is of the last third of the drives in time order."""
    numbered = name.startswith(("cc_", "ved"))
    key = [tuple(int(x) for x in i.split("_")[1:]) if numbered else (k,) for k, i in enumerate(ids)]
    first = {d: min(k for k, own in zip(key, drive, strict=True) if own == d) for d in drive}
    order = sorted(first, key=lambda d: first[d])
    late = set(order[len(order) - len(order) // 3 :])
    return np.array([d in late for d in drive])


def _plans(name: str, trips: Trips, features: FeatureMap) -> None:
    """Each trip as a router would have planned it."""
    found = [(number, router_says(trip)) for number, trip in enumerate(trips)]
    planned = [(number, route.on_grid(features.hz)) for number, route in found if route is not None]
    number = np.concatenate([np.full(len(trip), n) for n, trip in planned]).astype(np.int16)
    save(HERE / f"{name}.plan.npz", _signals(features, [trip for _, trip in planned]) | {"trip": number})
