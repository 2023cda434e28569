"""`evband convert`: any readable log to a tidy table."""

from __future__ import annotations

from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.options import ShowUnits, TableOut
from evband.cli.show import tell
from evband.report.units import Units


@reads_logs
def convert(
    logs: Logs,
    output: TableOut,
    hz: Annotated[
        float | None, typer.Option(help="Rows per second of the grid; without it, readings as logged.")
    ] = None,
    units: ShowUnits = Units.KM,
) -> None:
    """Write logs of any known format as one tidy table in our channel names, on the grid with --hz.

    Example: evband convert drive.csv -o trips.parquet --hz 1
    """
    from evband.logs.writing import check_table_name, write_trips

    check_table_name(output)
    trips = logs.read(hz)
    if hz is None:
        trips.check_one_rate()
    write_trips(trips, output)
    faults = sum(len(trip.report.findings) for trip in trips if trip.report)
    distance = sum(trip.distance_km for trip in trips) * units.per_km
    tell(
        f"{output}: {len(trips)} trips, {sum(len(trip) for trip in trips)} rows, {distance:.1f} {units.value}; "
        f"{faults} findings (evband inspect shows them)",
        output,
    )
