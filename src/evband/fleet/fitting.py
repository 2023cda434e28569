"""`evband fleet`: all cars of a folder of logs, each on the same base."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from evband.adaptation.base import Base
from evband.errors import ArtifactError, SettingsError
from evband.fleet.cars import NUMBERS, Plan, work
from evband.fleet.engine import run
from evband.fleet.lake import Car, find_cars
from evband.fleet.prior import fleet_prior
from evband.fleet.report import write_fleet_report
from evband.fleet.sheets import read_fleet_sheets, usual_sheet
from evband.logs.writing import write_table

BATCH = 50  # cars
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
    workers: int = 1,
    ray: str = "off",
    tell: Tell | None = None,
) -> pl.DataFrame:
    """Do one of `TABLES` with every car of these logs; the table that is written, too."""
    place = Path(folder)
    cars = find_cars(logs, by, own)
    (place / "cars").mkdir(parents=True, exist_ok=True)
    if kind == "predict":
        (place / "predict").mkdir(exist_ok=True)
    known = {} if sheets is None else read_fleet_sheets(Path(sheets))
    plan = Plan(kind, place, _base(place, kind, base), known, usual_sheet(known, mass_kg, cda_m2), level)
    rows: list[dict[str, Any]] = []
    batches = _batches(cars, workers)
    done = 0
    for batch in run(work, plan, batches, workers, ray):
        rows += batch
        done += len({row["vehicle_id"] for row in batch})
        if tell:
            tell(done, len(cars))
    table = _table(rows)
    if kind == "update":
        table = _with_others(place, table)
    write_table(table, place / f"{TABLES[kind]}.parquet")
    if kind in ("fit", "update"):
        with suppress(SettingsError):  # fewer than three cars teach nothing about the next
            fleet_prior([place], place / "prior.evband", plan.base)
        write_fleet_report(place / "report.html", table)
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


def _base(place: Path, kind: str, given: str | Path | None) -> Base:
    """The base that a fleet rests on: the one given, which is copied into its folder, or the one that lies there."""
    own = place / "base.evband"
    if given is not None:
        ground = Base.load(Path(given))
        ground.save(own)
        return ground
    return Base.load(own) if kind != "fit" and own.exists() else Base.load()


def _batches(cars: list[Car], workers: int) -> list[list[Car]]:
    """Cars in equal batches: enough for every worker, none larger than `BATCH`."""
    size = max(1, min(BATCH, -(-len(cars) // max(1, workers))))
    return [cars[first : first + size] for first in range(0, len(cars), size)]


def _table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """In an order that does not depend on which batch ended first."""
    types = {"vehicle_id": pl.String, "trips": pl.Int64, "hours": pl.Float64, "warning": pl.String}
    types |= dict.fromkeys(NUMBERS, pl.Float64)
    found = pl.from_dicts(rows, infer_schema_length=None, schema_overrides=types)
    return found.sort([name for name in ("vehicle_id", "trip_id") if name in found.columns])


def _with_others(place: Path, table: pl.DataFrame) -> pl.DataFrame:
    """The cars of an earlier run that brought no new logs stay in the table."""
    before = place / "cars.parquet"
    if not before.exists():
        return table
    others = pl.read_parquet(before).filter(~pl.col("vehicle_id").is_in(table["vehicle_id"].to_list()))
    return pl.concat([others, table], how="diagonal_relaxed").sort("vehicle_id")
