"""Cars that nobody has measured: from the data sheet alone, then with 5, 15 and 60 minutes of their own driving.

    python -m benchmarks.measured.cold_start prepare --data DIR                # arrays of nine cars -> .carry/cold/
    PYTHONPATH=src python -m benchmarks.measured.cold_start run --out O        # also where only torch, NumPy, SciPy, Numba are
    python -m benchmarks.measured.cold_start table --out O                     # -> results/cold_start.csv, cold_start_cars.csv

Each car's last 30 % of drives are the test; minutes are whole drives of the rest in an order that the seed draws, the
last one cut. `own` is `evband fit` on all of the rest, `alone` the same fit on the minutes, `sheet` what `evband start`
gives and `evband adapt` makes of it, `linear` the same prior without a network. The base saw no measured log.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

HERE = Path(".carry/cold")
MINUTES = (0, 5, 15, 60)
WARMUP_S = 30.0
MOST_TEST_ROWS = 12000  # every so-manieth row of longer tests is scored
CARS = {  # car -> (logs, mass kg, CdA m2, c_rr)
    "i3": ("bmw_i3_road/*.parquet", 1345, 0.69, 0.0090),
    "tesla_road": ("tesla_model3_road/*.parquet", 1930, 0.53, 0.0085),
    "e208": ("peugeot_e208_carscanner/raw/*.csv.gz", 1600, 0.64, 0.0090),
    "ved_10": ("fleet/ved_leaf_10.parquet", 1670, 0.62, 0.0090),
    "ved_455": ("fleet/ved_leaf_455.parquet", 1670, 0.62, 0.0090),
    "cc_pittsburgh": ("fleet/chargecar_pittsburgh.parquet", 1660, 0.90, 0.0100),
    "cc_georgia": ("fleet/chargecar_georgia.parquet", 1660, 0.90, 0.0100),
    "cc_unknown": ("fleet/chargecar_unknown.parquet", 1660, 0.90, 0.0100),
    "cc_belmont": ("fleet/chargecar_belmont.parquet", 1660, 0.90, 0.0100),
}
Arrays = dict[str, Any]


# Here, where tables are -----------------------------------------------------------------------------------------------


def prepare(data: Path) -> None:
    import evband
    from evband.features.map import FeatureMap
    from evband.features.rows import power_of, starts_of

    HERE.mkdir(parents=True, exist_ok=True)
    for car, (logs, *_) in CARS.items():
        trips = [t for t in evband.read_trips(str(data / logs)).on_grid(1.0) if t.has("power_kw") and len(t) >= 30]
        channels = ["speed_kmh", "acceleration_ms2"]
        channels += [c for c in ("elevation_m", "ambient_temp_c") if all(t.has(c) for t in trips)]
        features = FeatureMap(channels=tuple(channels), hz=1.0, edges=True, fade=True)
        signals = [features.signals_of(t) for t in trips]
        drives = list(dict.fromkeys(drive_of(t.trip_id) for t in trips))
        train = set(drives[: round(0.7 * len(drives))])
        found: Arrays = {f"signal.{name}": np.concatenate([s[name] for s in signals]) for name in signals[0]}
        found["y"] = np.concatenate([power_of(t) for t in trips])
        found = {name: values.astype(np.float32) for name, values in found.items()}
        found["start"] = np.concatenate([starts_of(t) for t in trips])
        found["trip"] = np.repeat(np.arange(len(trips)), [len(t) for t in trips]).astype(np.int32)
        found["train"] = np.array([drive_of(t.trip_id) in train for t in trips])
        found["channels"] = np.array(channels)
        np.savez_compressed(HERE / f"{car}.npz", **found)
        print(f"{car}: {len(trips)} trips")


def drive_of(trip_id: str) -> str:
    """Legs of one ChargeCar drive belong together."""
    return "_".join(trip_id.split("_")[:2]) if trip_id.startswith("cc_") else trip_id


# There ----------------------------------------------------------------------------------------------------------------


def load(car: str) -> Arrays:
    with np.load(HERE / f"{car}.npz", allow_pickle=False) as file:
        arrays: Arrays = {name: file[name] for name in file.files}
    arrays["signals"] = {
        k.removeprefix("signal."): v.astype(float) for k, v in arrays.items() if k.startswith("signal.")
    }
    arrays["y"] = arrays["y"].astype(float)
    start, trip = arrays["start"].copy(), arrays["trip"]
    start[0], start[1:] = True, start[1:] | (np.diff(trip) != 0)
    index = np.arange(len(trip))
    arrays["since"] = index - np.maximum.accumulate(np.where(start, index, 0))
    arrays["start"], arrays["test"] = start, ~arrays["train"][trip]
    return arrays


def minutes_of(arrays: Arrays, minutes: int, seed: int) -> NDArray[np.int64]:
    """Rows of the first minutes, in an order of drives that the seed draws."""
    trips, left, rows = np.random.default_rng(seed).permutation(np.flatnonzero(arrays["train"])), 60 * minutes, []
    for trip in trips:
        own = np.flatnonzero(arrays["trip"] == trip)[: max(left, 0)]
        left -= len(own)
        rows.append(own)
    return np.sort(np.concatenate(rows))


def bands_of(arrays: Arrays, rows: NDArray[np.int64], model: Any, networks: Any = None) -> Any:
    """Uncalibrated bands of these rows, each stretch between resets from its beginning on."""
    from evband.bands import Bands
    from evband.bands.from_network import distribution
    from evband.network.predict import predict

    features = model.feature_map_
    x, r, which = features.arrays(signals_for(features, arrays, rows))
    start = arrays["start"][rows].copy()
    start[0], start[1:] = True, start[1:] | (np.diff(rows) != 1)
    theta = model.theta_ if networks is None else model.theta_[networks]
    said = predict(model.architecture_, theta, x, r, start)
    members = distribution(said, model.architecture_.levels, features.y_mean, features.y_std)
    return Bands(
        trip_id=arrays["trip"][rows].astype(str), time_s=np.arange(len(rows)).astype(float), members=members,
        warmup=arrays["since"][rows] < WARMUP_S, outside=which.any(1), power_kw=arrays["y"][rows],
        speed_kmh=arrays["signals"]["speed_kmh"][rows], hz=1.0,
    )  # fmt: skip


def signals_for(features: Any, arrays: Arrays, rows: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    unknown = np.full(len(arrays["y"]), np.nan)
    extra = [k for k in ("kinetic", "speed_change") if features.edges] + ["fade"] * features.fade
    return {name: arrays["signals"].get(name, unknown)[rows] for name in (*features.channels, *extra)}


def scores(arrays: Arrays, bands: Any) -> dict[str, float]:
    """Of rows after warm-up, and of whole trips' energy."""
    ok = np.isfinite(bands.power_kw) & ~bands.warmup
    trips = [bands.trip_id == t for t in np.unique(bands.trip_id)]
    mean, power = bands.mean, bands.power_kw
    energy = [
        (mean[t & np.isfinite(power)].sum(), power[t & np.isfinite(power)].sum())
        for t in trips
        if np.isfinite(power[t]).sum() > 300
    ]
    off = [abs(a - b) / b for a, b in energy if b > 0]
    at = np.flatnonzero(ok)
    bands = bands.rows(at[:: max(1, len(at) // MOST_TEST_ROWS)])
    y, (low, high) = bands.power_kw, bands.interval(0.9)
    return {
        "n": int(ok.sum()), "crps_kw": float(bands.crps(y).mean()), "rmse_kw": float(np.sqrt(np.mean((bands.mean - y) ** 2))),
        "coverage": float(np.mean((y >= low) & (y <= high))), "width_kw": float(np.mean(high - low)),
        "epistemic_kw": float(np.sqrt(np.mean(bands.epistemic**2))), "trip_error": float(np.median(off)) if off else float("nan"),
    }  # fmt: skip


def started(arrays: Arrays, car: str, seed: int, base: str | None) -> Iterator[dict[str, Any]]:
    """Zero minutes, then the others, each from the start."""
    from evband.adaptation.members import Evidence
    from evband.adaptation.starting import start
    from evband.adaptation.update import trip_effects, updated
    from evband.network.predict import hidden_states

    _, mass, cda, crr = CARS[car]
    model = start(mass_kg=mass, cda_m2=cda, crr=crr, base=base, seed=seed)
    features, test = model.feature_map_, np.flatnonzero(arrays["test"])
    for minutes in MINUTES:
        adapted = model
        if minutes:
            rows = minutes_of(arrays, minutes, seed)
            x, r, _ = features.arrays(signals_for(features, arrays, rows))
            begin = arrays["start"][rows].copy()
            begin[0], begin[1:] = True, begin[1:] | (np.diff(rows) != 1)
            h, known = hidden_states(model.architecture_, model.theta_, x, begin), np.isfinite(arrays["y"][rows])
            moving = arrays["signals"]["speed_kmh"][rows][known] >= 1.0
            terms = r[known].astype(float)
            power = arrays["y"][rows][known] / features.y_std
            evidence = Evidence(
                terms,
                h[:, known],
                power,
                arrays["trip"][rows][known].astype(np.int64),
                moving,
                trip_effects(model, terms),
            )
            adapted = updated(model, evidence, 1, ["a"], seed)
        yield {"minutes": minutes, "seconds": 0.0} | scores(arrays, bands_of(arrays, test, adapted))


def fitted(arrays: Arrays, rows: NDArray[np.int64], seed: int) -> dict[str, Any]:
    """`evband fit` on these rows, calibrated as fit does it."""
    from evband.bands import Bands
    from evband.calibration import calibration_trips, fit_stretches, minimum_trips
    from evband.errors import EvbandError
    from evband.features import FeatureMap
    from evband.features.map import FEW_REACH, REACH
    from evband.features.road_load import FEW_TRIPS
    from evband.model import PowerModel
    from evband.settings import Settings
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
    settings = Settings(seed=seed)
    theta, _ = train(job, settings, resolve_device("auto"))
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


def work(item: tuple[str, str, int, int, str | None]) -> list[dict[str, Any]]:
    car, method, minutes, seed, base = item
    try:
        arrays, about = load(car), {"car": car, "method": method, "seed": seed}
        if method in ("own", "alone"):
            rows = np.flatnonzero(~arrays["test"]) if method == "own" else minutes_of(arrays, minutes, seed)
            return [about | {"minutes": minutes} | fitted(arrays, rows, seed)]
        return [about | row for row in started(arrays, car, seed, base)]
    except Exception:
        print(item, traceback.format_exc(), flush=True)
        return []


def run(out: Path, methods: list[str], seeds: list[int], processes: int, linear: str | None) -> None:
    import numba

    threads = max(1, (os.cpu_count() or 2) // processes)
    os.environ |= {"NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    numba.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    items: list[tuple[str, str, int, int, str | None]] = []
    for method in methods:
        budgets = {"own": (0,), "alone": MINUTES[1:]}.get(method, (0,))
        items += [
            (c, method, m, s, linear if method == "linear" else None) for m in budgets for s in seeds for c in CARS
        ]
    began, rows = time.time(), []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for found in pool.imap_unordered(work, items):
            rows += found
            (out / f"cold_{'_'.join(methods)}.json").write_text(json.dumps(rows))
    print(f"{len(rows)} rows in {time.time() - began:.0f} s", flush=True)


# Tables ---------------------------------------------------------------------------------------------------------------


def ratios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over seeds of each car, method and budget; CRPS also over that of the car's own fit."""
    own = {car: np.mean([r["crps_kw"] for r in rows if r["car"] == car and r["method"] == "own"]) for car in CARS}
    table = []
    for car in CARS:
        for method, minutes in dict.fromkeys((r["method"], r["minutes"]) for r in rows if r["car"] == car):
            same = [r for r in rows if (r["car"], r["method"], r["minutes"]) == (car, method, minutes)]
            mean = {k: float(np.mean([r[k] for r in same])) for k in same[0] if isinstance(same[0][k], float)}
            table.append(
                {
                    "car": car,
                    "method": method,
                    "minutes": minutes,
                    "seeds": len(same),
                    "ratio": mean["crps_kw"] / own[car],
                }
                | mean
            )
    return table


def table(out: Path) -> None:
    from benchmarks.common.results_file import RESULTS, show, write

    rows = [row for path in sorted(out.glob("cold_*.json")) for row in json.loads(path.read_text())]
    cars = [
        {k: round(v, 4) if isinstance(v, float) else v for k, v in row.items() if k != "seconds"}
        for row in ratios(rows)
    ]
    summary = []
    for method, minutes in dict.fromkeys((r["method"], r["minutes"]) for r in cars):
        same = [r for r in cars if (r["method"], r["minutes"]) == (method, minutes)]
        summary.append({
            "method": method, "minutes": minutes, "cars": len(same), "ratio": round(np.mean([r["ratio"] for r in same]), 3),
            "worst": round(max(r["ratio"] for r in same), 2), "coverage": round(np.mean([r["coverage"] for r in same]), 3),
            "lowest": round(min(r["coverage"] for r in same), 3), "highest": round(max(r["coverage"] for r in same), 3),
            "epistemic_kw": round(np.mean([r["epistemic_kw"] for r in same]), 2),
            "trip_error": round(float(np.median([r["trip_error"] for r in same])), 3),
        })  # fmt: skip
    note = "ratio: CRPS over that of evband fit on the first 70 % of the car's own drives, cars weighing alike"
    then = "own, alone and linear ran on a GPU machine; linear with scale constants 0.4, 0.75 and 0.3 instead of 0.8, 0.9 and 0.45"
    write(RESULTS / "cold_start_cars.csv", cars, note, then)
    write(RESULTS / "cold_start.csv", summary, note, then)
    show("cold start", summary)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("prepare").add_argument("--data", type=Path, required=True)
    running = verbs.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--methods", nargs="+", default=["own", "alone", "sheet", "linear"])
    running.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    running.add_argument("--processes", type=int, default=2)
    running.add_argument("--linear", help="the base without a network, of tools.base_model")
    verbs.add_parser("table").add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.verb == "prepare":
        prepare(args.data)
    elif args.verb == "run":
        run(args.out, args.methods, args.seeds, args.processes, args.linear)
    else:
        table(args.out)


if __name__ == "__main__":
    main()
