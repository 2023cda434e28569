"""Cars that nobody has measured: from the data sheet alone, then with 5, 15 and 60 minutes of their own driving.

    python -m benchmarks.measured.cold_start prepare --data DIR                # arrays of nine cars -> .carry/cold/
    PYTHONPATH=src python -m benchmarks.measured.cold_start run --out O        # also where only torch, NumPy, SciPy, Numba are
    python -m benchmarks.measured.cold_start table --out O                     # -> results/cold_start.csv, cold_start_cars.csv

Each car's last 30 % of drives are the test; minutes are whole drives of the rest in an order that the seed draws, the
last one cut. `own` is `evband fit` on all of the rest, `alone` is `evband fit --from-scratch` on the minutes, `sheet` what `evband start`
gives and `evband adapt` makes of it, `linear` the same prior without a network (location and scale linear in the terms
of the present second), `squares` least squares on the minutes. The base saw no measured log. Trips over 5 minutes count
for energy. `table` writes what it finds in O, and keeps what the last table says of methods that O does not have.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import time
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.channels import READINGS, SENSED

HERE = Path(".carry/cold")
MINUTES = (0, 5, 15, 60)
WARMUP_S = 30.0
SHORTEST_S = 300  # of a trip whose energy counts
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
# How noisy logs of each make are: offset of the log scale after an hour of them, mean over cars and seeds, by this base
# (`level` in O's rows).
# Each make is scored with a base whose two constants of that noise come from the other makes.
LEVELS = {
    "sheet": {"i3": 0.09, "tesla": 0.12, "e208": 0.28, "ved": 0.42, "cc": 0.11},
    "linear": {"i3": 0.14, "tesla": 0.15, "e208": 0.12, "ved": 0.16, "cc": 0.13},
}
FEW_MAKES = (
    1.5  # what a fifth make may differ by, over the deviation of four: between a normal's 1.1 and a Student-t's 1.9
)
SCORES = (
    "crps_kw", "rmse_kw", "coverage", "width_kw", "epistemic_kw", "trip_error", "energy_coverage", "energy_width",
)  # fmt: skip
RIVALS = ("own", "alone", "squares", "climatology")
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
        for name in (READINGS, SENSED):
            found[f"signal.{name}"] = np.concatenate([t.table[name].to_numpy() for t in trips])
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
    """Bands of these rows, each stretch between resets from its beginning on."""
    from evband.bands.from_network import distribution
    from evband.network.predict import predict

    features = model.feature_map_
    x, r, which = features.arrays(signals_for(features, arrays, rows))
    start = arrays["start"][rows].copy()
    start[0], start[1:] = True, start[1:] | (np.diff(rows) != 1)
    theta = model.theta_ if networks is None else model.theta_[networks]
    said = predict(model.architecture_, theta, x, r, start)
    members = distribution(said, model.architecture_.levels, features.y_mean, features.y_std)
    steps = model.calibration_.steps(features.scaled_input)
    return _bands(arrays, rows, members, which.any(1)).stretched(steps.of(x))


def plain_bands(arrays: Arrays, rows: NDArray[np.int64], mean: NDArray[np.float64], scale: float, nu: float) -> Any:
    """Of one Student-t per row."""
    from evband.bands import StudentMixture

    mu, s = mean[None].astype(np.float32), np.full((1, len(rows)), scale, np.float32)
    return _bands(arrays, rows, StudentMixture(mu, s, np.array([nu])), np.zeros(len(rows), bool))


def _bands(arrays: Arrays, rows: NDArray[np.int64], members: Any, outside: NDArray[np.bool_]) -> Any:
    from evband.bands import Bands

    return Bands(
        trip_id=arrays["trip"][rows].astype(str), time_s=np.arange(len(rows)).astype(float), members=members,
        warmup=arrays["since"][rows] < WARMUP_S, outside=outside, power_kw=arrays["y"][rows],
        speed_kmh=arrays["signals"]["speed_kmh"][rows], hz=1.0,
    )  # fmt: skip


def signals_for(features: Any, arrays: Arrays, rows: NDArray[np.int64]) -> dict[str, NDArray[np.float64]]:
    unknown = np.full(len(arrays["y"]), np.nan)
    extra = (
        [k for k in ("kinetic", "speed_change") if features.edges]
        + ["fade"] * features.fade
        + [name for name in (READINGS, SENSED) if name in features.input_names]
    )
    return {name: arrays["signals"].get(name, unknown)[rows] for name in (*features.channels, *extra)}


def scores(arrays: Arrays, bands: Any, errors: Any = None) -> dict[str, float]:
    """Of rows after warm-up, and of whole trips' energy, its bias and bands where an error model is given."""
    ok = np.isfinite(bands.power_kw) & ~bands.warmup
    trips = [bands.trip_id == t for t in np.unique(bands.trip_id)]
    mean, power = bands.mean + (0.0 if errors is None else errors.bias), bands.power_kw
    energy = [
        (mean[t & np.isfinite(power)].sum(), power[t & np.isfinite(power)].sum())
        for t in trips
        if np.isfinite(power[t]).sum() > SHORTEST_S
    ]
    off = [abs(a - b) / b for a, b in energy if b > 0]
    energy_bands = {} if errors is None else energy_coverage(bands, errors)
    at = np.flatnonzero(ok)
    bands = bands.rows(at[:: max(1, len(at) // MOST_TEST_ROWS)])
    y, (low, high) = bands.power_kw, bands.interval(0.9)
    return {
        "n": int(ok.sum()), "crps_kw": float(bands.crps(y).mean()), "rmse_kw": float(np.sqrt(np.mean((bands.mean - y) ** 2))),
        "coverage": float(np.mean((y >= low) & (y <= high))), "width_kw": float(np.mean(high - low)),
        "epistemic_kw": float(np.sqrt(np.mean(bands.epistemic**2))), "trip_error": float(np.median(off)) if off else float("nan"),
    } | energy_bands  # fmt: skip


def energy_coverage(bands: Any, errors: Any) -> dict[str, float]:
    """Share of trips whose measured energy lies inside its 90 % band, and the band's width over the energy."""
    from evband.energy.drives import drives_of
    from evband.energy.trip import trip_energy

    drives = [drive for drive in drives_of(bands) if np.isfinite(drive.power_kw).sum() > SHORTEST_S]
    found = [one for one in trip_energy(drives, errors, 0.9) if one.energy_kwh is not None]
    kwh = np.array([one.energy_kwh for one in found], float)
    low, high = np.array([one.interval(0.9) for one in found]).T
    wide, inside = (high - low) / np.maximum(np.abs(kwh), 0.1), (low <= kwh) & (kwh <= high)
    return {"trips": len(found), "energy_coverage": float(np.mean(inside)), "energy_width": float(np.median(wide))}


def started(arrays: Arrays, car: str, seed: int, base: str | None) -> Iterator[dict[str, Any]]:
    """Zero minutes, then the others, each from the start."""
    from evband.adaptation.base import Base
    from evband.adaptation.starting import sheet_of
    from evband.adaptation.starting import started as begun
    from evband.adaptation.update import evidence_of, updated

    _, mass, cda, crr = CARS[car]
    levels = LEVELS["sheet" if base is None else "linear"]
    others = [level for make, level in levels.items() if make != car.split("_")[0]]
    shift, spread = float(np.mean(others)), FEW_MAKES * float(np.std(others, ddof=1))
    ground = replace(Base.load(None if base is None else Path(base)), scale_shift=shift, scale_sd=spread)
    model = begun(ground, sheet_of(None, mass_kg=mass, cda_m2=cda, crr=crr), seed)
    features, test = model.feature_map_, np.flatnonzero(arrays["test"])
    for minutes in MINUTES:
        adapted = model
        if minutes:
            rows = minutes_of(arrays, minutes, seed)
            x, r, _ = features.arrays(signals_for(features, arrays, rows))
            begin = arrays["start"][rows].copy()
            begin[0], begin[1:] = True, begin[1:] | (np.diff(rows) != 1)
            trip, speed = arrays["trip"][rows].astype(np.int64), arrays["signals"]["speed_kmh"][rows]
            evidence = evidence_of(model, x, r, begin, arrays["y"][rows], trip, speed)
            adapted = updated(model, evidence, 1, ["a"], seed)
        level = adapted.adaptation_.scale[0]
        yield {"minutes": minutes, "level": level} | scores(arrays, bands_of(arrays, test, adapted), adapted.errors_)


def work(item: tuple[str, str, int, int, str | None]) -> list[dict[str, Any]]:
    from benchmarks.measured import cold_rivals as rivals

    car, method, minutes, seed, base = item
    try:
        arrays, about = load(car), {"car": car, "method": method, "seed": seed}
        if method in RIVALS:
            rows = np.flatnonzero(~arrays["test"]) if method == "own" else minutes_of(arrays, minutes, seed)
            if method == "climatology":
                found = rivals.climatology(arrays)
            elif method == "squares":
                found = rivals.squares(arrays, rows, CARS[car][1:])
            else:
                found = rivals.fitted(arrays, rows, seed, from_base=method == "own")
            return [about | {"minutes": minutes} | found]
        return [about | row for row in started(arrays, car, seed, base)]
    except Exception:
        print(item, traceback.format_exc(), flush=True)
        return []


def run(out: Path, methods: list[str], seeds: list[int], processes: int, linear: str | None, cars: list[str]) -> None:
    import numba

    threads = max(1, (os.cpu_count() or 2) // processes)
    os.environ |= {"NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    numba.set_num_threads(1)
    out.mkdir(parents=True, exist_ok=True)
    items: list[tuple[str, str, int, int, str | None]] = []
    for method in methods:
        budgets = MINUTES[1:] if method in ("alone", "squares") else (0,)
        items += [
            (c, method, m, s, linear if method == "linear" else None) for m in budgets for s in seeds for c in cars
        ]
    began, rows = time.time(), []
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for found in pool.imap_unordered(work, items):
            rows += found
            (
                out / f"cold_{'_'.join([*methods, *map(str, seeds), *(cars if len(cars) < len(CARS) else [])])}.json"
            ).write_text(json.dumps(rows))
    print(f"{len(rows)} rows in {time.time() - began:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("prepare").add_argument("--data", type=Path, required=True)
    running = verbs.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--methods", nargs="+", default=[*RIVALS, "sheet", "linear"])
    running.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    running.add_argument("--processes", type=int, default=2)
    running.add_argument("--linear", help="the base without a network, of tools.base_model")
    running.add_argument("--cars", nargs="+", default=list(CARS))
    verbs.add_parser("table").add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    if args.verb == "prepare":
        prepare(args.data)
    elif args.verb == "run":
        run(args.out, args.methods, args.seeds, args.processes, args.linear, args.cars)
    else:
        from benchmarks.measured.cold_table import table

        table(args.out)


if __name__ == "__main__":
    main()
