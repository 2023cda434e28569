"""`evband fleet`: many cars at once, each with a small part of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evband.cli.options import grouped
from evband.cli.show import warn

if TYPE_CHECKING:
    import polars as pl

fleet = typer.Typer(no_args_is_help=True, help="Many cars at once: one base, and a small part for each car.")

OwnBase = Annotated[Path | None, typer.Option(help="A base of evband prior, in place of the one that ships.")]
By = Annotated[str, typer.Option(help="Column, or key of hive-style folders, that identifies a car.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes, here or on Ray.")]
Device = Annotated[
    str, typer.Option(metavar="auto|cpu|cuda", help="Where cars are adapted; a GPU adapts those of a task together.")
]
Level = Annotated[float, typer.Option(help="Share that a band should hold.")]


@dataclass(frozen=True)
class Lake:
    """Logs of many cars, the fleet's folder, and where the work is done."""

    logs: Annotated[
        list[str], typer.Argument(metavar="LOGS...", help="Folders, files or globs of Parquet and CSV tables.")
    ]
    output: Annotated[Path, typer.Option("--output", "-o", help="The fleet's folder.")]
    by: By = "vehicle_id"
    dem: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Elevation tiles (.hgt, .tif) for logs with coordinates."),
    ] = None
    ray: Annotated[str, typer.Option(metavar="auto|ADDRESS|off", help="Run on Ray: here, or on a cluster.")] = "off"
    workers: Workers = 1


@dataclass(frozen=True)
class Sheets:
    """What is known of cars beside their logs."""

    sheets: Annotated[
        Path | None, typer.Option(help="TOML: [cars] with id = name in the catalogue, or sheets named as the cars.")
    ] = None
    mass_kg: Annotated[float | None, typer.Option(help="Mass with load of cars without a sheet, in kg.")] = None
    cda_m2: Annotated[float | None, typer.Option(help="CdA of cars without a sheet, in m2.")] = None


@fleet.command("fit")
@grouped
def fit(lake: Lake, sheets: Sheets, base: OwnBase = None, device: Device = "auto") -> None:
    """Start and adapt every car: parts, table, prior and report. Run again, it continues where it stopped.

    Example: evband fleet fit lake/ --by vehicle_id -o fleet/ --sheets sheets.toml
    """
    _run("fit", lake, **vars(sheets), base=base, device=device)


@fleet.command("update")
@grouped
def update(lake: Lake, sheets: Sheets, device: Device = "auto") -> None:
    """Learn from new trips; those that a car has learned from already are left out.

    Example: evband fleet update lake/today/ -o fleet/
    """
    _run("update", lake, **vars(sheets), device=device)


@fleet.command("predict")
@grouped
def predict(
    lake: Lake,
    level: Level = 0.9,
    every: Annotated[int, typer.Option(min=1, help="Keep one row per this many seconds.")] = 1,
) -> None:
    """Bands of every row, DIR/predict/<id>.parquet.

    Example: evband fleet predict lake/today/ -o fleet/
    """
    _run("predict", lake, level=level, every=every)


@fleet.command("energy")
@grouped
def energy(lake: Lake, level: Level = 0.9) -> None:
    """Energy bands of every trip, DIR/energy.parquet.

    Example: evband fleet energy lake/today/ -o fleet/
    """
    _run("energy", lake, level=level)


@fleet.command("evaluate")
@grouped
def evaluate(lake: Lake) -> None:
    """Scores of every car on logs with measured power, DIR/scores.parquet.

    Example: evband fleet evaluate lake/today/ -o fleet/
    """
    _run("evaluate", lake)


def _run(kind: str, lake: Lake, **options: Any) -> None:
    """Do it to every car, with a command's own arguments."""
    from evband.cli.progress import duration, reporting
    from evband.fleet.fitting import TABLES, run_fleet

    began = time.monotonic()
    with reporting("cars") as report:

        def tell(done: int, total: int) -> None:
            left = (time.monotonic() - began) * (total - done) / done
            report(done, total, f"{duration(left)} left" if done < total else duration(time.monotonic() - began))

        where = dict(vars(lake))
        table = run_fleet(kind, where.pop("logs"), where.pop("output"), tell=tell, **where, **options)
    bad = warn_of_cars(table)
    print(f"{lake.output / TABLES[kind]}.parquet: {table['vehicle_id'].n_unique()} cars, {bad} with a warning")


def warn_of_cars(table: pl.DataFrame) -> int:
    """Repeat the first warnings in a table of cars; how many there are."""
    bad = table.filter(table["warning"] != "") if "warning" in table.columns else table.clear()
    for row in bad.head(10).to_dicts():
        warn(f"{row['vehicle_id'] or '(no id)'}: {row['warning']}")
    return len(bad)
