"""`evband fleet`: many cars at once, each with a small part of its own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from evband.cli.show import warn

fleet = typer.Typer(no_args_is_help=True, help="Many cars at once: one base, and a small part for each car.")

LakeLogs = Annotated[
    list[str], typer.Argument(metavar="LOGS...", help="Folders, files or globs of Parquet and CSV tables.")
]
Folder = Annotated[Path, typer.Option("--output", "-o", help="The fleet's folder.")]
By = Annotated[str, typer.Option(help="Column, or key of hive-style folders, that identifies a car.")]
OwnBase = Annotated[Path | None, typer.Option(help="A base of evband prior, in place of the one that ships.")]
Sheets = Annotated[
    Path | None, typer.Option(help="TOML: [cars] with id = name in the catalogue, or sheets named as the cars.")
]
Mass = Annotated[float | None, typer.Option(help="Mass with load of cars without a sheet, in kg.")]
Drag = Annotated[float | None, typer.Option(help="CdA of cars without a sheet, in m2.")]
RayAt = Annotated[str, typer.Option("--ray", metavar="auto|ADDRESS|off", help="Run on Ray: here, or on a cluster.")]
Workers = Annotated[int, typer.Option(min=1, help="Processes, here or on Ray.")]
Device = Annotated[
    str, typer.Option(metavar="auto|cpu|cuda", help="Where cars are adapted; a GPU adapts those of a task together.")
]
Every = Annotated[int, typer.Option(min=1, help="Keep one row per this many seconds.")]
Dem = Annotated[
    Path | None, typer.Option("--dem", metavar="DIR", help="Elevation tiles (.hgt, .tif) for logs with coordinates.")
]
Level = Annotated[float, typer.Option(help="Share that a band should hold.")]


@fleet.command("fit")
def fit(
    logs: LakeLogs,
    output: Folder,
    by: By = "vehicle_id",
    base: OwnBase = None,
    sheets: Sheets = None,
    mass_kg: Mass = None,
    cda_m2: Drag = None,
    dem: Dem = None,
    ray: RayAt = "off",
    workers: Workers = 1,
    device: Device = "auto",
) -> None:
    """Start and adapt every car: parts, table, prior and report. Run again, it continues where it stopped.

    Example: evband fleet fit lake/ --by vehicle_id -o fleet/ --sheets sheets.toml
    """
    _run("fit", **locals())


@fleet.command("update")
def update(
    logs: LakeLogs,
    output: Folder,
    by: By = "vehicle_id",
    sheets: Sheets = None,
    mass_kg: Mass = None,
    cda_m2: Drag = None,
    dem: Dem = None,
    ray: RayAt = "off",
    workers: Workers = 1,
    device: Device = "auto",
) -> None:
    """Learn from new trips; those that a car has learned from already are left out.

    Example: evband fleet update lake/today/ -o fleet/
    """
    _run("update", **locals())


@fleet.command("predict")
def predict(
    logs: LakeLogs,
    output: Folder,
    by: By = "vehicle_id",
    level: Level = 0.9,
    every: Every = 1,
    dem: Dem = None,
    ray: RayAt = "off",
    workers: Workers = 1,
) -> None:
    """Bands of every row, DIR/predict/<id>.parquet.

    Example: evband fleet predict lake/today/ -o fleet/
    """
    _run("predict", **locals())


@fleet.command("energy")
def energy(
    logs: LakeLogs,
    output: Folder,
    by: By = "vehicle_id",
    level: Level = 0.9,
    dem: Dem = None,
    ray: RayAt = "off",
    workers: Workers = 1,
) -> None:
    """Energy bands of every trip, DIR/energy.parquet.

    Example: evband fleet energy lake/today/ -o fleet/
    """
    _run("energy", **locals())


@fleet.command("evaluate")
def evaluate(
    logs: LakeLogs, output: Folder, by: By = "vehicle_id", dem: Dem = None, ray: RayAt = "off", workers: Workers = 1
) -> None:
    """Scores of every car on logs with measured power, DIR/scores.parquet.

    Example: evband fleet evaluate lake/today/ -o fleet/
    """
    _run("evaluate", **locals())


def _run(kind: str, logs: list[str], output: Path, **options: Any) -> None:
    """Do it to every car, with a command's own arguments."""
    from evband.cli.progress import duration, reporting
    from evband.fleet.fitting import TABLES, run_fleet

    began = time.monotonic()
    with reporting("cars") as report:

        def tell(done: int, total: int) -> None:
            left = (time.monotonic() - began) * (total - done) / done
            report(done, total, f"{duration(left)} left" if done < total else duration(time.monotonic() - began))

        table = run_fleet(kind, logs, output, tell=tell, **options)
    bad = table.filter(table["warning"] != "") if "warning" in table.columns else table.clear()
    for row in bad.head(10).to_dicts():
        warn(f"{row['vehicle_id']}: {row['warning']}")
    print(f"{output / TABLES[kind]}.parquet: {table['vehicle_id'].n_unique()} cars, {len(bad)} with a warning")
