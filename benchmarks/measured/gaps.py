"""One model for feeds of a reading every 1 to 15 s: silences bridged, trained on thinned copies.

    python -m benchmarks.measured.gaps prepare --data DIR           # signals of four logs, thinned, on both grids -> .bench/gaps/
    python -m benchmarks.measured.gaps run --out O                  # also on a GPU machine with torch, numpy, scipy and numba only
    python -m benchmarks.measured.gaps boosting --data DIR --out O  # the rival, here
    python -m benchmarks.measured.gaps table --out O                # -> results/gaps.csv

Every third trip is tested. Inputs of the test trips are thinned to a reading every 1 (as logged), 2, 5 or 15 s; power is
that of the full log at 1 Hz. `cut`: silences over 10 s reset the state, as `bridge_s=0` does; `one`: bridged 30 s and
trained on thinned copies, too, as a fit with `bridge_s=30` is; `alone`: bridged, trained on trips thinned as the test trips are;
`boosting`: least squares + boosting of its residual, on the log as it is. Scores are over all rows that the cut grid of
the full log has too, warm-up included, so that models compare on the same rows (a cut grid of a thinned log has fewer:
`n`); `warmup` is the share of a model's own rows. Members start from the base, calibrated as a fit is; `one` takes twice the
epochs of the others. How often copies have which period (`evband.trips.thinning.OFTEN`), their number and those epochs were
chosen while looking at the i3, road and ved_leaf_10; ved_leaf_455 was not looked at.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(".bench/gaps")
LOGS = {  # name -> file, features
    "ved_leaf_10": ("fleet/ved_leaf_10.parquet", "auto"),
    "ved_leaf_455": ("fleet/ved_leaf_455.parquet", "auto"),
    "i3": ("bmw_i3_road/bmw_i3_road_10hz.parquet", "motion"),
    "road": ("tesla_model3_road/tesla_model3_road_4hz.parquet", "auto"),
}
PERIODS_S = (1, 2, 5, 15)
BRIDGE_S = 30.0
WARMUP_S = 30.0
MODELS = {  # label -> training rows, thinning
    "cut": ("cut", 0.0), "bridged": ("bridged", 0.0), "one": ("bridged", 1.0),
    **{f"alone {period}": (f"alone {period}", 0.0) for period in PERIODS_S[1:]},
}  # fmt: skip
Arrays = dict[str, Any]


# Here, where tables are -----------------------------------------------------------------------------------------------


def read_every(trip: Any, period_s: float) -> Any:
    """The trip of which inputs were read only every so many seconds, acceleration not at all; electrical channels stay."""
    import polars as pl

    from evband.channels import ELECTRICAL
    from evband.trips import Trip

    time = trip.series("speed_kmh")[0]
    kept = time[np.append(True, np.diff(np.floor((time - time[0]) / period_s + 1e-6)) > 0)]
    here = pl.Series(np.isin(trip.table["time_s"].to_numpy(), kept))
    inputs = [c for c in trip.table.columns if c != "time_s" and c not in ELECTRICAL]
    blank = [pl.when(here).then(pl.col(c)).otherwise(None).alias(c) for c in inputs]
    return Trip(trip.trip_id, trip.table.with_columns(blank).drop("acceleration_ms2", strict=False))


def slower(trips: Any, period_s: float) -> Any:
    from evband.trips import Trips

    return trips if period_s == 1 else Trips(read_every(trip, period_s) for trip in trips)


def split(data: Path, name: str) -> tuple[Any, Any]:
    """(train, test) of a log, as it was logged."""
    import evband

    raw = evband.read_trips(data / LOGS[name][0])
    train, test = (raw.subset(i for k, i in enumerate(raw.ids) if (k % 3 == 0) == held) for held in (False, True))
    return train, test


def rows_of(trips: Any, channels: tuple[str, ...]) -> Arrays:
    """Signals, power and places of gridded trips; time in whole seconds since each trip began."""
    from evband.features.map import FeatureMap
    from evband.features.rows import power_of, starts_of

    features = FeatureMap(channels=channels, hz=1.0, edges=True, fade=True, ages=True)
    signals = [features.signals_of(trip) for trip in trips]
    found: Arrays = {f"signal.{k}": np.concatenate([s[k] for s in signals]).astype(np.float32) for k in signals[0]}
    found["y"] = np.concatenate([power_of(trip) for trip in trips]).astype(np.float32)
    found["start"] = np.concatenate([starts_of(trip) for trip in trips])
    found["trip"] = np.repeat(np.arange(len(trips)), [len(trip) for trip in trips]).astype(np.int32)
    found["time"] = np.concatenate([np.rint(t.table["time_s"].to_numpy()) for t in trips]).astype(np.int64)
    return found


def prepare(data: Path) -> None:
    from evband.features.names import resolve_features
    from evband.preparing import copies_of
    from evband.settings import Settings
    from evband.trips import Trips

    HERE.mkdir(parents=True, exist_ok=True)
    for name, (_, wanted) in LOGS.items():
        train, test = split(data, name)
        cut, bridged = (train.on_grid(1.0, bridge_s=s) for s in (0.0, BRIDGE_S))
        channels = resolve_features(wanted, cut)
        copies = copies_of(bridged, train, Settings(bridge_s=BRIDGE_S))
        sets = {"train cut": cut, "train bridged": bridged} | {f"copies {k}": Trips(c) for k, c in enumerate(copies)}
        for period in PERIODS_S:
            feed = slower(test, period)
            sets |= {
                f"test cut {period}": feed.on_grid(1.0),
                f"test bridged {period}": feed.on_grid(1.0, bridge_s=BRIDGE_S),
            }
            if period > 1:
                sets[f"train alone {period}"] = slower(train, period).on_grid(1.0, bridge_s=BRIDGE_S)
        found = {f"{label}.{k}": v for label, trips in sets.items() for k, v in rows_of(trips, channels).items()}
        np.savez_compressed(HERE / f"{name}.npz", channels=np.array(channels), **found)
        print(f"{name}: {len(train)} + {len(test)} trips, {', '.join(channels)}", flush=True)


# There ----------------------------------------------------------------------------------------------------------------


def part_of(arrays: Arrays, label: str) -> Arrays:
    part = {k.removeprefix(f"{label}."): v for k, v in arrays.items() if k.startswith(f"{label}.")}
    part["y"] = part["y"].astype(float)
    part["signals"] = {k.removeprefix("signal."): v.astype(float) for k, v in part.items() if k.startswith("signal.")}
    return part


def bands_of(part: Arrays, features: Any, arch: Any, theta: np.ndarray, rows: np.ndarray) -> Any:
    from evband.bands import Bands
    from evband.bands.from_network import distribution
    from evband.network.predict import predict

    x, r, which = features.arrays({k: part["signals"][k][rows] for k in names_of(features)})
    start = part["start"][rows].copy()
    start[0] = True
    index = np.arange(len(rows))
    since = index - np.maximum.accumulate(np.where(start, index, 0))
    members = distribution(predict(arch, theta, x, r, start), arch.levels, features.y_mean, features.y_std)
    return Bands(
        trip_id=part["trip"][rows].astype(str), time_s=part["time"][rows].astype(float), members=members,
        warmup=since < WARMUP_S, outside=which.any(1), power_kw=part["y"][rows],
        speed_kmh=part["signals"]["speed_kmh"][rows], hz=1.0,
    )  # fmt: skip


def names_of(features: Any) -> tuple[str, ...]:
    return (*features.channels, "kinetic", "speed_change", "fade", *(["age_s"] if features.ages else []))


def trained(arrays: Arrays, label: str, seed: int, members: int) -> tuple[Any, Any, np.ndarray, tuple[float, float]]:
    """(features, architecture, weights, stretches) of a model, fitted and calibrated as `evband fit` does it."""
    from dataclasses import replace

    from evband.adaptation import Base
    from evband.adaptation.transfer import start_weights
    from evband.bands import Bands
    from evband.calibration import fit_stretches
    from evband.features import FeatureMap
    from evband.settings import Settings, when_from_base
    from evband.training.loop import Data
    from evband.training.plan import Job, assign_folds, left_out, repeats, resolve_device, train

    which, thinning = MODELS[label]
    part = part_of(arrays, f"train {which}")
    ages = which != "cut"
    features = FeatureMap(
        channels=tuple(map(str, arrays["channels"])), hz=1.0, edges=True, fade=True, products=True, ages=ages
    )
    signals = {k: part["signals"][k] for k in names_of(features)}
    known = np.isfinite(part["y"]) & np.all([np.isfinite(s) for s in signals.values()], axis=0)
    features.learn({k: s[known] for k, s in signals.items()}, part["y"][known], hinges=True)
    numbers = sorted({k.split(".")[0] for k in arrays if k.startswith("copies ")}) if thinning else []
    sets = [part, *(part_of(arrays, number) for number in numbers)]
    made = [features.arrays({k: p["signals"][k] for k in names_of(features)})[:2] for p in sets]
    x, r = (np.concatenate([m[i] for m in made]) for i in range(2))
    y, start, trip = (np.concatenate([p[k] for p in sets]) for k in ("y", "start", "trip"))
    first = np.append(True, np.diff(trip) != 0)
    copy = np.repeat(np.arange(len(sets)), [len(p["y"]) for p in sets]) if thinning else None
    data = Data(x, r, (y - features.y_mean) / features.y_std, start | first, trip.astype(np.int64), copy)
    speed, lengths = part["signals"]["speed_kmh"], np.bincount(part["trip"])
    fold = assign_folds(lengths, repeats([speed[part["trip"] == t] for t in range(len(lengths))]))
    job = Job(data, fold)
    settings = Settings(seed=seed, members=members, bridge_s=BRIDGE_S * ages, thinning=thinning)
    settings = replace(settings, **when_from_base(settings))
    unknown = np.full(len(part["y"]), np.nan)
    wanted = ("speed_kmh", "acceleration_ms2", "elevation_m", "ambient_temp_c", "kinetic", "speed_change", "fade")
    begin = start_weights(Base.load(), features, {k: part["signals"].get(k, unknown) for k in wanted}, job, settings)
    theta = train(job, settings, resolve_device("auto"), start=begin)[0].cpu().numpy()
    arch, out = job.architecture(settings), left_out(job, settings)
    bands = [
        bands_of(part, features, arch, theta[[n for n, f in enumerate(out) if f == k]], np.flatnonzero(np.isin(part["trip"], np.flatnonzero(fold == k))))
        for k in range(job.folds)
    ]  # fmt: skip
    return features, arch, theta, fit_stretches(Bands.concat(bands), members=len(theta))


def keys(part: Arrays) -> np.ndarray:
    return np.asarray(part["trip"].astype(np.int64) * 10**10 + part["time"])


def work(item: tuple[str, str, int, int, float]) -> list[dict[str, Any]]:
    name, label, seed, members, deadline = item
    if time.time() > deadline:
        return []
    try:
        with np.load(HERE / f"{name}.npz", allow_pickle=False) as file:
            arrays = {k: file[k] for k in file.files}
        features, arch, theta, (moving, standing) = trained(arrays, label, seed, members)
        common = keys(part_of(arrays, "test cut 1"))
        grid = "cut" if label == "cut" else "bridged"
        found = []
        for period in [int(label.split()[1])] if label.startswith("alone") else PERIODS_S:
            part = part_of(arrays, f"test {grid} {period}")
            bands = bands_of(part, features, arch, theta, np.arange(len(part["y"])))
            bands = bands.stretched(np.where(bands.standing, standing, moving))
            found.append(
                {"log": name, "model": label, "period_s": period, "members": members, "seed": seed}
                | scored(bands, np.isin(keys(part), common))
            )
            print(found[-1], flush=True)
        return found
    except Exception:
        print(item, traceback.format_exc(), flush=True)
        return []


def scored(bands: Any, common: np.ndarray) -> dict[str, Any]:
    """Over the rows that the cut grid of the full log has, and whose power is known."""
    known = np.isfinite(bands.power_kw)
    part = bands.rows(known & common)
    y, (lower, upper) = part.power_kw, part.interval(0.9)
    return {
        "n": len(y), "warmup": float(bands.warmup[known].mean()), "crps_kw": float(part.crps(y).mean()),
        "mae_kw": float(np.abs(y - part.mean).mean()), "coverage": float(np.mean((lower <= y) & (y <= upper))),
        "width_kw": float(np.mean(upper - lower)),
    }  # fmt: skip


def run(out: Path, logs: list[str], models: list[str], seed: int, members: int, processes: int, seconds: float) -> None:
    deadline = time.time() + seconds
    items = [(name, label, seed, members, deadline) for label in models for name in logs]
    rows: list[dict[str, Any]] = []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for found in pool.imap_unordered(work, items):
            rows += found
            (out / f"gaps_{'_'.join(logs)}_{models[0].replace(' ', '_')}.json").write_text(json.dumps(rows))


# Tables ---------------------------------------------------------------------------------------------------------------


def boosting(data: Path, out: Path, logs: list[str], seed: int) -> None:
    from evband.rivals import ResidualBoosting

    rows = []
    for name in logs:
        train, test = split(data, name)
        rival = ResidualBoosting(features=LOGS[name][1], hz=1.0, seed=seed, ours=True).fit(list(train))
        bands = rival.predict(list(test))
        rows.append(
            {"log": name, "model": "boosting", "period_s": 1, "members": 1, "seed": seed}
            | scored(bands, np.ones(len(bands), bool))
        )
        print(rows[-1], flush=True)
        (out / "gaps_boosting.json").write_text(json.dumps(rows))


def table(out: Path) -> None:
    from benchmarks.common.results_file import RESULTS, show, write

    rows = [row for path in sorted(out.glob("gaps*.json")) for row in json.loads(path.read_text())]
    order = [*MODELS, "boosting"]
    rows.sort(key=lambda row: (list(LOGS).index(row["log"]), row["period_s"], order.index(row["model"])))
    rows = [{k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    write(
        RESULTS / "gaps.csv",
        rows,
        "90 % bands, 1 Hz; members start from the base, fitted on one NVIDIA H200",
    )
    show("gaps", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("prepare", "run", "boosting", "table"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--logs", nargs="+", choices=list(LOGS), default=list(LOGS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=36000.0)
    given = parser.parse_args()
    if given.verb == "prepare":
        prepare(given.data)
    elif given.verb == "run":
        run(given.out, given.logs, given.models, given.seed, given.members, given.processes, given.seconds)
    elif given.verb == "boosting":
        boosting(given.data, given.out, given.logs, given.seed)
    else:
        table(given.out)


if __name__ == "__main__":
    main()
