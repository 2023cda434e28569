"""`evband convert`: any readable log to a tidy table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.options import Alias, Dbc, FlipPower, Keep, Limit, Logs, Map, ShowUnits, Units, read_logs


def convert(
    logs: Logs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Table to write, .parquet or .csv.")],
    hz: Annotated[float | None, typer.Option(help="Rows a second of the grid; without it, readings as logged.")] = None,
    map: Map = None,
    alias: Alias = None,
    dbc: Dbc = None,
    flip_power: FlipPower = False,
    keep: Keep = None,
    limit: Limit = None,
    units: ShowUnits = Units.KM,
) -> None:
    """Write logs of any known format as one tidy table in our channel names, on the grid with --hz."""
    from evband.logs.writing import check_table_name, write_trips

    check_table_name(output)
    trips = read_logs(logs, map, alias, dbc, flip_power, keep, limit, hz)
    if hz is None:
        trips.check_one_rate()
    write_trips(trips, output)
    faults = sum(len(trip.report.findings) for trip in trips if trip.report)
    distance = sum(trip.distance_km for trip in trips) * units.per_km
    print(
        f"{output}: {len(trips)} trips, {sum(len(trip) for trip in trips)} rows, {distance:.1f} {units.value}; "
        f"{faults} findings (evband inspect shows them)"
    )
