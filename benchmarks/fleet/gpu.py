"""Cars adapted side by side on a GPU, and one by one on CPU cores: cars per second, and how far apart the answers are.

    python -m benchmarks.fleet.gpu prepare --cars 1000                 # signals of simulated cars -> .carry/fleet_gpu.npz
    PYTHONPATH=src python -m benchmarks.fleet.gpu run --out O          # also where only torch, NumPy, SciPy, Numba are
    python -m benchmarks.fleet.gpu table --out O                       # -> results/fleet_gpu.csv

Three trips of ten minutes per car, two updates each, as `evband fleet fit` does them: all trips but the last, then that one.
Seconds are those of hidden states and updates from features in memory to models in memory; reading logs, features, scores,
energies and writing parts are the same with a GPU or without, and are not in them. Of the first `COMPARED` cars, mean and 90 % band
of the last trip's rows are compared; `double` is the CPU with thinned rows in double precision, as on the GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(".carry/fleet_gpu.npz")
TRIPS, COMPARED = 3, 100
NO_ENERGY = 0  # trips whose energies are learned from, too: that needs tables
AT_ONCE = (1, 10, 50, 500)  # cars; a task of a fleet has 50
Car = dict[str, Any]


# Here, where tables are -----------------------------------------------------------------------------------------------


def prepare(cars: int) -> None:
    from benchmarks.fleet.simulated import car, trip
    from evband.adaptation.base import Base
    from evband.adaptation.starting import sheet_map
    from evband.trips import Trip

    found: dict[str, list[Any]] = {}
    for number in range(cars):
        sheet = car(number)[0]
        wheel = (sheet.mass_kg, sheet.cda_m2, sheet.crr)
        features = sheet_map(Base.load(), wheel, 1.0)
        found.setdefault("wheel", []).append(wheel)
        for j in range(TRIPS):
            one = Trip(f"{number}-{j}", trip(number, j)).on_grid(1.0)
            signals = features.signals_of(one) | {"power_kw": one.table["power_kw"].to_numpy()}
            found.setdefault("rows", []).append(len(one))
            for name, values in signals.items():
                found.setdefault(name, []).append(values.astype(np.float32))
    rows = found.pop("rows")
    arrays: dict[str, Any] = {name: np.array(v) if name == "wheel" else np.concatenate(v) for name, v in found.items()}
    FILE.parent.mkdir(exist_ok=True)
    np.savez_compressed(FILE, rows=np.array(rows).reshape(cars, TRIPS), **arrays)


# There ----------------------------------------------------------------------------------------------------------------


def load(some: slice) -> list[Car]:
    """Started models and features of cars."""
    from evband.adaptation.base import Base
    from evband.adaptation.starting import sheet_of, started

    with np.load(FILE, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    rows, wheels = arrays.pop("rows"), arrays.pop("wheel")
    first = np.concatenate([[0], np.cumsum(rows.sum(1))])
    cars = []
    for k in range(len(rows))[some]:
        sheet = sheet_of(None, **dict(zip(("mass_kg", "cda_m2", "crr"), map(float, wheels[k]), strict=True)))
        model = started(Base.load(), sheet, k)
        signals = {name: values[first[k] : first[k + 1]].astype(float) for name, values in arrays.items()}
        power = signals.pop("power_kw")
        x, r, _ = model.feature_map_.arrays(signals)
        trip = np.repeat(np.arange(TRIPS), rows[k])
        start = np.diff(trip, prepend=-1) > 0
        cars.append({"model": model, "features": (x, r, start, power, trip, signals["speed_kmh"]), "seed": k})
    return cars


def steps(car: Car) -> Any:
    """As `evband.fleet.learning`, but for its scores, energies and bands at a standstill."""
    from evband.adaptation.asks import States, Update
    from evband.adaptation.update import evidence_of

    model, (x, r, start, power, trip, speed) = car["model"], car["features"]
    rows = evidence_of(model, x, r, start, power, trip, speed, (yield States(model, x, start)))
    *_, last = rows.groups
    model = yield Update(model, rows.of(slice(0, last.start)), NO_ENERGY, ["a"], car["seed"])
    return (yield Update(model, rows.of(last), NO_ENERGY, ["b"], car["seed"]))


def adapted(cars: list[Car], at_once: int, answer: Any) -> list[Any]:
    from evband.adaptation.asks import done_together

    batches = [cars[k : k + at_once] for k in range(0, len(cars), at_once)]
    return [model for batch in batches for model in done_together([steps(car) for car in batch], answer)]


def band(car: Car, model: Any) -> np.ndarray:
    """[3, rows] mean and 90 % band of the last trip in kW."""
    from evband.bands.from_network import distribution
    from evband.network.predict import predict

    x, r, start, _, trip, _ = car["features"]
    last, features = trip == TRIPS - 1, model.feature_map_
    said = predict(model.architecture_, model.theta_, x[last], r[last], start[last])
    members = distribution(said, model.architecture_.levels, features.y_mean, features.y_std)
    return np.stack([members.mean, members.quantile(0.05), members.quantile(0.95)])


def one_worker(some: tuple[int, int]) -> tuple[float, float]:
    """When a process of several began and ended, once all is compiled."""
    from evband.adaptation.asks import one_by_one

    cars = load(slice(*some))
    adapted(cars[:1], 1, one_by_one)
    began = time.time()
    adapted(cars, 1, one_by_one)
    return began, time.time()


def on_cores(cars: int, processes: int) -> dict[str, Any]:
    """One thread each: cars per second while all are at work."""
    os.environ |= dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1"
    )
    shares = [(k * cars // processes, (k + 1) * cars // processes) for k in range(processes)]
    with get_context("spawn").Pool(processes) as pool:
        spans = pool.map(one_worker, shares, chunksize=1)
    rate = sum((b - a) / (end - began) for (a, b), (began, end) in zip(shares, spans, strict=True))
    return _row("CPU, one thread each", processes, 1, cars, rate)


def on_gpu(cars: list[Car], at_once: int) -> tuple[dict[str, Any], list[Any]]:
    import torch

    from evband.adaptation.side_by_side import SideBySide

    answer, some = SideBySide("cuda"), cars[: max(50, 2 * at_once)]
    adapted(some[:at_once], at_once, answer)  # compiles, and finds memory
    torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    models = adapted(some, at_once, answer)
    torch.cuda.synchronize()
    rate = len(some) / (time.perf_counter() - began)
    memory = torch.cuda.max_memory_allocated() / 1e9
    return _row(torch.cuda.get_device_name(), 1, at_once, len(some), rate, gpu_gb=round(memory, 2)), models


def _row(device: str, processes: int, at_once: int, cars: int, rate: float, **more: Any) -> dict[str, Any]:
    about = {"device": device, "processes": processes, "cars_at_once": at_once, "cars": cars}
    return about | {"cars_per_s": round(rate, 1), "ms_per_car": round(1e3 / rate, 2), "gpu_gb": ""} | more


def differences(cars: list[Car], models: list[Any]) -> Iterator[dict[str, Any]]:
    """Of the GPU's bands from the CPU's, with thinned rows in single precision and in double."""
    from evband.adaptation import members
    from evband.adaptation.asks import one_by_one

    ours = [band(car, model) for car, model in zip(cars, models, strict=True)]
    for name, kind in (("single", np.float32), ("double", np.float64)):
        members.THINNED = kind  # type: ignore[assignment]
        theirs = adapted(cars, 1, one_by_one)
        off = [np.abs(a - band(car, b)).max() for car, a, b in zip(cars, ours, theirs, strict=True)]
        weights = [np.abs(a.theta_ - b.theta_).max() for a, b in zip(models, theirs, strict=True)]
        yield {
            "thinned rows on the CPU": name, "cars": len(cars), "largest_kw": f"{max(off):.2g}",
            "median_of_cars_kw": f"{np.median(off):.2g}", "largest_weight": f"{max(weights):.2g}",
        }  # fmt: skip


def run(out: Path) -> None:
    rows, cores = [], len(os.sched_getaffinity(0))
    with np.load(FILE) as file:
        count = len(file["rows"])
    for processes in (1, cores):
        rows.append(on_cores(min(count, 20 * processes), processes))
        print(rows[-1], flush=True)
    cars = load(slice(0, count))
    for at_once in AT_ONCE:
        row, models = on_gpu(cars, at_once)
        rows.append(row)
        print(row, flush=True)
    compared = list(differences(cars[:COMPARED], models[:COMPARED]))
    cpu = next(
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    )
    import torch

    about = f"{cpu}, {cores} cores; Python {platform.python_version()}, torch {torch.__version__}"
    (out / "fleet_gpu.json").write_text(json.dumps({"rows": rows, "compared": compared, "about": about}))
    print(compared)


# Here again -----------------------------------------------------------------------------------------------------------


def table(out: Path) -> None:
    from benchmarks.common.results_file import RESULTS, show, write

    found = json.loads((out / "fleet_gpu.json").read_text())
    notes = [", ".join(f"{name} {value}" for name, value in one.items()) for one in found["compared"]]
    write(
        RESULTS / "fleet_gpu.csv", found["rows"], f"run on {found['about']}", *(f"GPU against CPU: {n}" for n in notes)
    )
    show("cars side by side", found["rows"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["prepare", "run", "table"])
    parser.add_argument("--cars", type=int, default=1000)
    parser.add_argument("--out", type=Path, default=Path(".carry"))
    given = parser.parse_args()
    if given.step == "prepare":
        prepare(given.cars)
    else:
        (run if given.step == "run" else table)(given.out)


if __name__ == "__main__":
    main()
