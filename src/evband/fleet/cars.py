"""What is done with each car of a batch: start, adapt, score, write its part. A bad car is a row with a warning."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evband.adaptation import Base
from evband.adaptation.asks import Answer, Steps, done_together
from evband.adaptation.checks import new_trips
from evband.adaptation.part import part_meta, part_tensors, read_part, save_part
from evband.adaptation.probes import consumption
from evband.adaptation.starting import started
from evband.errors import EvbandError, FullDiskError, SettingsError, installed, one_line, require
from evband.fleet.drift import Drift
from evband.fleet.lake import DAMAGE, Car, read_cars
from evband.fleet.learning import learning
from evband.trips import Trips
from evband.vehicles import Sheet

if TYPE_CHECKING:
    from evband.model import PowerModel

LEVEL = 0.9
TRACES = "traces"  # of a row: fingerprints of the trips that the car has learned from; not in the table
NUMBERS = ("crps_kw", "coverage", "energy_kwh_100km", "lower", "upper", "expected_kwh_100km", "drift")

Row = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """What all batches share."""

    kind: str  # fit, update, predict, energy, evaluate
    folder: Path
    base: Base
    sheets: dict[str, Sheet]
    usual: Sheet | None
    level: float = LEVEL
    every: int = 1  # rows, one is kept by predict
    device: str = "auto"  # that adapts cars

    def part(self, car: Car) -> Path:
        return self.folder / "cars" / car.file_name


def work(plan: Plan, cars: list[Car]) -> list[Row]:
    """Rows of a batch; what one car's log does never stops the others."""
    done = {car.vehicle_id: _done(plan, car) for car in cars} if plan.kind == "fit" else {}
    todo = [car for car in cars if not done.get(car.vehicle_id)]
    notes: dict[str, list[str]] = {}
    trips = read_cars(todo, 1.0, plan.base.settings(1.0, 0).bridge_s, notes)
    steps = (_one(plan, car, trips.pop(car.vehicle_id), notes.get(car.vehicle_id, [])) for car in todo)
    answer = gpu(plan.device) if plan.kind in ADAPTING else None
    made = done_together(list(steps), answer) if answer else [done_together([one])[0] for one in steps]
    found = {name: [row] for name, row in done.items() if row}
    found |= zip([car.vehicle_id for car in todo], made, strict=True)
    return [row for car in cars for row in found[car.vehicle_id]]


def gpu(device: str) -> Answer | None:
    """What adapts many cars side by side where there is a GPU, or where one is asked for."""
    if device == "cpu" or (device == "auto" and not (_driver() and installed("torch"))):
        return None
    torch = require("torch", "--device cuda")
    if not torch.cuda.is_available():
        if device == "cuda":
            raise SettingsError("--device cuda was asked for, but no GPU is usable here; use --device cpu.")
        return None
    from evband.adaptation.side_by_side import SideBySide

    return SideBySide("cuda")


def _driver() -> bool:
    """Whether NVIDIA's is there: without it, torch need not be imported to know that there is no GPU."""
    try:
        ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return False
    return True


def _one(plan: Plan, car: Car, trips: Trips | EvbandError, notes: list[str]) -> Steps[list[Row]]:
    """Rows of a car, `notes` of what could not be read of its logs among the warnings."""
    try:
        if isinstance(trips, EvbandError):
            raise trips
        if plan.kind in ADAPTING:
            return [(yield from ADAPTING[plan.kind](plan, car, trips, notes))]
        rows = DO[plan.kind](plan, car, trips)
        return (
            [row | {"warning": "; ".join(filter(None, [row.get("warning"), *notes]))} for row in rows]
            if notes
            else rows
        )
    except FullDiskError:  # of every car that follows, too
        raise
    except EvbandError as problem:
        return lost(car, str(problem))
    except (ArithmeticError, LookupError, TypeError, ValueError, OSError, MemoryError, *DAMAGE) as problem:
        return lost(car, one_line(f"{type(problem).__name__}: {problem}"))


def lost(car: Car, why: str) -> list[Row]:
    """The row of a car that could not be done."""
    return [_row(car, warning=why)]


def _row(car: Car, trips: int = 0, hours: float = 0.0, warning: str = "", **numbers: float | None) -> Row:
    known = {name: numbers.get(name) for name in NUMBERS}
    last = {name: known.pop(name) for name in ("expected_kwh_100km", "drift")}
    head = {"vehicle_id": car.vehicle_id, "trips": trips, "hours": hours}
    return {**head, **known, "warning": warning, **last}


def _done(plan: Plan, car: Car) -> Row | None:
    """The row of a car whose part is whole and rests on the same logs, sheet and base."""
    try:
        data = plan.part(car).read_bytes()
        meta = part_meta(data)
        same = meta["base"] == plan.base.digest and meta["stamp"] == car.stamp
        same = same and meta["sheet"] == _sheet(plan, car).sharpened().to_dict() and bool(part_tensors(data))
        return {**meta["row"], TRACES: meta["fingerprints"]} if same else None
    except (EvbandError, OSError, LookupError, TypeError, ValueError):
        return None


def _sheet(plan: Plan, car: Car) -> Sheet:
    sheet = plan.sheets.get(car.vehicle_id, plan.usual)
    if sheet is None:
        raise SettingsError("the car has no data sheet; name it in --sheets, or give --mass-kg and --cda-m2.")
    return sheet


def _fit(plan: Plan, car: Car, trips: Trips, notes: list[str]) -> Steps[Row]:
    model = started(plan.base, _sheet(plan, car), car.seed)
    return (yield from _learn(plan, car, model, trips, notes, float(consumption(model).mean())))


def _update(plan: Plan, car: Car, trips: Trips, notes: list[str]) -> Steps[Row]:
    if not plan.part(car).exists():
        return (yield from _fit(plan, car, trips, notes))
    model, meta = _load(plan, car), part_meta(plan.part(car).read_bytes())
    if model.adaptation_.base != plan.base.digest:
        raise SettingsError(
            "its part rests on another base than the fleet's; run evband fleet fit with its logs again."
        )
    row = dict(meta["row"])
    try:
        fresh, _ = new_trips(model, trips)
    except EvbandError:  # nothing new
        return {**row, TRACES: model.fingerprints_}
    drift = Drift.of(meta.get("drift", ()))
    return (yield from _learn(plan, car, model, fresh, notes, float(row["expected_kwh_100km"]), drift))


def _learn(
    plan: Plan,
    car: Car,
    model: PowerModel,
    trips: Trips,
    notes: list[str],
    expected: float,
    drift: Drift | None = None,
) -> Steps[Row]:
    """Learn from trips, write the part, and give the row of the table."""
    found = yield from learning(model, trips, car.seed, plan.level)
    drift = reduce(Drift.after, found.readings, drift or Drift())
    model, notes = found.model, [*notes, *found.notes, *drift.notes(len(found.readings))]
    model.adaptation_ = state = replace(model.adaptation_, notes=tuple(notes))
    kwh = consumption(model)
    lower, upper = map(float, np.quantile(kwh, [0.5 - plan.level / 2, 0.5 + plan.level / 2]))
    row = _row(
        car, state.trips, state.minutes / 60.0, "; ".join(notes), **found.scores, energy_kwh_100km=float(kwh.mean()),
        lower=lower, upper=upper, expected_kwh_100km=expected, drift=drift.change,
    )  # fmt: skip
    save_part(
        model, plan.base, plan.part(car), model.fingerprints_, car.seed, stamp=car.stamp, row=row, drift=drift.to_list()
    )
    return {**row, TRACES: model.fingerprints_}


def _load(plan: Plan, car: Car) -> PowerModel:
    from evband.model import load

    path = plan.part(car)
    if not path.exists():
        raise SettingsError(f"{path} does not exist; run evband fleet fit with this car first.")
    try:
        return read_part(path, path.read_bytes(), plan.base)
    except (EvbandError, LookupError, TypeError, ValueError):
        return load(path)  # which says in one sentence what is wrong


def _scores(model: PowerModel, trips: Trips) -> dict[str, float]:
    from evband.scores import evaluate

    if not any(trip.has("power_kw") for trip in trips):
        return {}
    found = evaluate(model.predict(trips), trips)
    return {"crps_kw": float(found["crps_kw"]), "coverage": float(found["coverage"])}


def _predict(plan: Plan, car: Car, trips: Trips) -> list[Row]:
    """Bands of every row, or of one in so many, in a file per car."""
    from evband.logs.writing import write_table

    bands = _load(plan, car).predict(trips)
    kept = bands if plan.every == 1 else bands.rows(np.arange(len(bands)) % plan.every == 0)
    write_table(kept.to_frame(plan.level), plan.folder / "predict" / f"{Path(car.file_name).stem}.parquet")
    return [_row(car, len(trips), len(bands) / 3600.0)]


def _energy(plan: Plan, car: Car, trips: Trips) -> list[Row]:
    return [{"vehicle_id": car.vehicle_id, **band} for band in _load(plan, car).energy(trips, plan.level).to_dicts()]


def _evaluate(plan: Plan, car: Car, trips: Trips) -> list[Row]:
    model = _load(plan, car)
    seen = trips.among(model.fingerprints_)
    warning = f"{len(seen)} of {len(trips)} trips were learned from, so the scores flatter" if seen else ""
    hours = sum(map(len, trips)) / 3600.0
    return [_row(car, len(trips), hours, warning, **_scores(model, trips))]


ADAPTING: dict[str, Callable[[Plan, Car, Trips, list[str]], Steps[Row]]] = {"fit": _fit, "update": _update}
DO: dict[str, Callable[[Plan, Car, Trips], list[Row]]] = {
    "predict": _predict, "energy": _energy, "evaluate": _evaluate,
}  # fmt: skip
