"""`evband simulate`: a drive for those who have no log."""

from __future__ import annotations

from typing import Annotated

import typer

from evband.cli.options import ShowUnits, TableOut
from evband.cli.show import console, tell
from evband.report.units import Units


def simulate(
    vehicle: Annotated[str, typer.Argument(help="sedan_1, sedan_2, truck, hatchback, highway, or all.")],
    output: TableOut,
    hz: Annotated[
        float, typer.Option(help="Rows per second on the dynamometer; the highway's app keeps to 1 Hz.")
    ] = 10.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
    trips: Annotated[int, typer.Option(help="Drives of each vehicle, all different; calibration needs 9.")] = 1,
    units: ShowUnits = Units.KM,
) -> None:
    """Simulate drives of electric cars on FASTSim, with the true noise in columns true_*; nothing in them is measured.

    Example: evband simulate sedan_1 -o trips.parquet --hz 1 --trips 2
    """
    from rich.table import Table

    from evband.logs.writing import check_table_name, write_table
    from evband.simulation import simulated_log, summary

    check_table_name(output)
    log = simulated_log(vehicle, hz, seed, trips)
    write_table(log, output)
    table = Table("trip (simulated)", "rows", "min", units.value, f"Wh/{units.value}")
    for trip in summary(log).iter_rows(named=True):
        distance = trip["distance_km"] * units.per_km
        use = f"{1000.0 * trip['energy_kwh'] / distance:.0f}"
        table.add_row(trip["trip_id"], str(trip["rows"]), f"{trip['duration_s'] / 60:.1f}", f"{distance:.2f}", use)
    console(output).print(table)
    tell(f"{output}: {len(table.rows)} trips, simulated and not measured", output)
