"""`evband simulate`: a drive for whoever has no log."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Units(StrEnum):
    """What distances are shown in; tables always hold kilometres."""

    KM = "km"
    MI = "mi"


def simulate(
    vehicle: Annotated[str, typer.Argument(help="sedan_1, sedan_2, truck, hatchback, highway, or all.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Table to write, .parquet or .csv.")],
    hz: Annotated[
        float, typer.Option(help="Rows a second of a dynamometer log; the highway log has the app's pace, about 1 Hz.")
    ] = 10.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
    trips: Annotated[
        int, typer.Option(help="Trips of each vehicle, each another drive; calibration needs 9 or more.")
    ] = 1,
    units: Annotated[Units, typer.Option(help="Show distances in kilometres or miles.")] = Units.KM,
) -> None:
    """Simulate drives of electric cars on FASTSim, with the true noise in columns true_*; nothing in them is measured."""
    from rich.console import Console
    from rich.table import Table

    from evband.logs.writing import write_table
    from evband.simulation import simulated_log, summary

    log = simulated_log(vehicle, hz, seed, trips)
    write_table(log, output)

    per_km = 1.0 if units is Units.KM else 1.0 / 1.609344
    table = Table(
        "trip (simulated)", "rows", "min", units.value, f"Wh/{units.value}", title=f"Simulated, not measured: {output}"
    )
    for trip in summary(log).iter_rows(named=True):
        distance = trip["distance_km"] * per_km
        use = f"{1000.0 * trip['energy_kwh'] / distance:.0f}"
        table.add_row(trip["trip_id"], str(trip["rows"]), f"{trip['duration_s'] / 60:.1f}", f"{distance:.2f}", use)
    Console().print(table)
