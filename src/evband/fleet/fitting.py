"""`evband fleet`: all cars of a folder of logs, each on the same base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl

from evband.adaptation.base import Base
from evband.adaptation.made_up import drive_of_mean
from evband.adaptation.starting import sheet_of, started
from evband.errors import ArtifactError, FullDiskError, SettingsError
from evband.fleet.cars import ADAPTING, DO, NUMBERS, TRACES, Plan, gpu, lost, work
from evband.fleet.engine import run
from evband.fleet.lake import Car, find_cars
from evband.fleet.learning import learned
from evband.fleet.prior import fleet_prior
from evband.fleet.report import Before, write_fleet_report
from evband.fleet.sheets import read_fleet_sheets, usual_sheet
from evband.logs.writing import write_table
from evband.network.quantiles import check_level
from evband.trips import Trip, Trips

BATCH, BATCH_ROWS = 50, 1_000_000  # cars and rows
DEVICES = ("auto", "cpu", "cuda")
GPU_SHARE = 0.25  # of a GPU that a worker asks Ray for
TABLES = {"fit": "cars", "update": "cars", "predict": "predict", "energy": "energy", "evaluate": "scores"}

Tell = Callable[[int, int], None]  # (cars done, cars in all)


def fit_fleet(logs: Sequence[str], folder: str | Path, **options: Any) -> pl.DataFrame:
    """Start and adapt every car; writes the parts, the table, the prior and the report. See `run_fleet`."""
    return run_fleet("fit", logs, folder, **options)


def run_fleet(
    kind: str,
    logs: Sequence[str],
    folder: str | Path,
    *,
    by: str = "vehicle_id",
    own: str = "file",
    base: str | Path | None = None,
    sheets: str | Path | None = None,
    mass_kg: float | None = None,
    cda_m2: float | None = None,
    level: float = 0.9,
    every: int = 1,
    dem: str | Path | None = None,
    workers: int = 1,
    ray: str = "off",
    device: str = "auto",
    tell: Tell | None = None,
) -> pl.DataFrame:
    """Do one of `TABLES` with every car of these logs; the table that is written, too."""
    if device not in DEVICES:
        raise SettingsError(f"device {device!r} is none of {', '.join(DEVICES)}; choose one.")
    if device == "cuda" and ray == "off":
        gpu(device)  # says so here where there is none
    check_level(level)
    place = Path(folder)
    if kind in DO and not (place / "cars").is_dir():
        raise SettingsError(f"{place} is not a fleet's folder; run evband fleet fit first.")
    before = _earlier(place) if kind == "update" else None
    cars = find_cars(logs, by, own, dem)
    (place / "cars").mkdir(parents=True, exist_ok=True)
    if kind == "predict":
        (place / "predict").mkdir(exist_ok=True)
    known = {} if sheets is None else read_fleet_sheets(Path(sheets))
    plan = Plan(kind, place, _base(place, kind, base), known, usual_sheet(known, mass_kg, cda_m2), level, every, device)
    rows: list[dict[str, Any]] = []
    if workers > 1 or ray != "off":
        warm_up(plan.base)
    done = 0
    for batch in run(work, plan, _batches(cars, workers), lost, workers, ray, GPU_SHARE * (device == "cuda")):
        rows += batch
        done += len({row["vehicle_id"] for row in batch})
        if tell:
            tell(done, len(cars))
    name_twins(rows)
    table = _table(rows)
    if before is not None:
        table = _with_others(before, table)
    write_table(table, place / f"{TABLES[kind]}.parquet")
    if kind in ("fit", "update"):
        try:
            fleet_prior([place], place / "prior.evband", plan.base)
        except FullDiskError:
            raise
        except SettingsError:  # fewer than three cars teach nothing about the next
            pass
        write_fleet_report(place / "report.html", table, _last_month(place, table))
    return table


def learn_prior(places: Sequence[str | Path], output: Path, **options: Any) -> tuple[int, pl.DataFrame]:
    """Write the base that cars teach: those of folders that `fit_fleet` wrote, and those of raw logs, where a car has a
    `vehicle_id` or a folder of its own. (cars learned from, table of the raw ones); options are those of `run_fleet`."""
    fleets = [place for place in places if next((Path(place) / "cars").glob("*.evband"), None)]
    logs = [str(place) for place in places if place not in fleets]
    table = pl.DataFrame(schema={"vehicle_id": pl.String, "warning": pl.String})
    with TemporaryDirectory() as folder:
        if logs:
            table = run_fleet("fit", logs, folder, own="folder", **options)
        try:
            cars, bad = fleet_prior([*fleets, *([folder] if logs else [])], output)
        except SettingsError as problem:
            why = table.filter(table["warning"] != "").head(1).to_dicts()
            raise SettingsError(f"{why[0]['vehicle_id']}: {why[0]['warning']}" if why else str(problem)) from None
    if bad:
        raise ArtifactError(f"{bad} of the cars rest on another base, or are damaged; make their fleet again.")
    return cars, table


def _last_month(place: Path, table: pl.DataFrame) -> Before | None:
    """Keep this month's table, and give the one of the last month before it that has one."""
    (place / "months").mkdir(exist_ok=True)
    now = f"{date.today():%Y-%m}"
    earlier = [file for file in sorted((place / "months").glob("*.parquet")) if file.stem < now]
    write_table(table, place / "months" / f"{now}.parquet")
    for file in reversed(earlier):
        with suppress(pl.exceptions.PolarsError, OSError):  # a damaged one is passed over
            return file.stem, pl.read_parquet(file)
    return None


def _base(place: Path, kind: str, given: str | Path | None) -> Base:
    """The base that a fleet rests on, which lies in its folder: a later evband may ship another one."""
    own = place / "base.evband"
    if kind != "fit" and given is None and own.exists():
        return Base.load(own)
    ground = Base.load(None if given is None else Path(given))
    if kind in ADAPTING:
        ground.save(own)
    return ground


def _batches(cars: list[Car], workers: int) -> list[list[Car]]:
    """Cars in batches: enough for every worker, none larger than `BATCH` cars or `BATCH_ROWS` rows."""
    size = max(1, min(BATCH, -(-len(cars) // max(1, workers))))
    batches: list[list[Car]] = []
    rows = 0
    for car in cars:
        rows += car.size
        if not batches or len(batches[-1]) == size or rows > BATCH_ROWS:
            batches.append([])
            rows = car.size
        batches[-1].append(car)
    return batches


def warm_up(base: Base) -> None:
    """Compile what adapting a car needs before workers start, so that they find it in Numba's cache."""
    speed = drive_of_mean(50.0, 120.0, np.random.default_rng(0))
    table = pl.DataFrame({"time_s": np.arange(float(len(speed))), "speed_kmh": speed, "power_kw": 1.0 + 0.3 * speed})
    model = started(base, sheet_of(None, mass_kg=1500.0, cda_m2=0.6))
    learned(model, Trips([Trip("warm", table)]).on_grid(1.0), 0, 0.9)


def name_twins(rows: list[dict[str, Any]]) -> None:
    """A warning for cars that have learned from a trip of another car, as under a wrong id; takes the traces out of rows."""
    owners: dict[str, list[str]] = {}
    traces = {row["vehicle_id"]: row.pop(TRACES, ()) for row in rows}
    for vehicle, found in traces.items():
        for trace in found:
            owners.setdefault(trace, []).append(vehicle)
    for row in rows:
        twins = {name for trace in traces[row["vehicle_id"]] for name in owners[trace]} - {row["vehicle_id"]}
        if twins:
            named = ", ".join(sorted(twins)[:3]) + (" ..." if len(twins) > 3 else "")
            note = f"it has a trip that {len(twins)} other cars have, too ({named}): check the ids"
            row["warning"] = "; ".join(filter(None, [row["warning"], note]))


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """In an order that does not depend on which batch ended first."""
    types = {"vehicle_id": pl.String, "trips": pl.Int64, "hours": pl.Float64, "warning": pl.String}
    types |= dict.fromkeys(NUMBERS, pl.Float64)
    found = pl.from_dicts(rows, infer_schema_length=None, schema_overrides=types)
    return found.sort([name for name in ("vehicle_id", "trip_id") if name in found.columns])


def _earlier(place: Path) -> pl.DataFrame | None:
    """The table of the last run, None before the first."""
    path = place / "cars.parquet"
    if not path.exists():
        return None
    try:
        return pl.read_parquet(path)
    except (pl.exceptions.PolarsError, OSError):
        raise ArtifactError(
            f"{path}: the table of the cars is damaged; delete it and run evband fleet fit with all logs."
        ) from None


def _with_others(before: pl.DataFrame, table: pl.DataFrame) -> pl.DataFrame:
    """The cars of an earlier run that brought no new logs stay in the table."""
    others = before.filter(~pl.col("vehicle_id").is_in(table["vehicle_id"].to_list()))
    return pl.concat([others, table], how="diagonal_relaxed").sort("vehicle_id")
