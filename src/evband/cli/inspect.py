"""`evband inspect`: what is in a log, and what is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.options import ShowUnits
from evband.cli.show import console
from evband.report.units import Units


@reads_logs
def inspect(
    logs: Logs,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON list, an object for each trip.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Every channel and finding, of more than three trips too.")
    ] = False,
    write_map: Annotated[
        Path | None, typer.Option(help="Write a first guess of a --map for the first log, and stop.")
    ] = None,
    units: ShowUnits = Units.KM,
) -> None:
    """Show format, channels, rate, gaps, faults and measured consumption of logs; more than three trips in a line each.

    Example: evband inspect drive.csv
    """
    from evband.logs.summary import summary_json, trip_summary

    if write_map is not None:
        from evband.files import write_whole
        from evband.logs.guess import guess_map

        guess = guess_map(Path(logs.names[0]))
        write_whole(write_map, guess)
        print(f"{write_map}: a first guess; correct it, then: evband inspect {logs.names[0]} --map {write_map}")
        return
    trips = logs.read()
    summaries = [trip_summary(trip) for trip in trips]
    if json:
        print(summary_json(summaries))
        return
    from evband.report.inspection import MANY, show_many, show_trip, show_use

    page = console()
    if full or len(summaries) <= MANY:
        for summary in summaries:
            show_trip(page, summary, units)
    else:
        show_many(page, summaries, units)
    if len(summaries) > 1:
        show_use(page, trips, units)
