"""`evband inspect`: what is in a log, and what is wrong with it."""

from __future__ import annotations

from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.options import ShowUnits, Units
from evband.cli.show import console


@reads_logs
def inspect(
    logs: Logs,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON list, an object for each trip.")] = False,
    units: ShowUnits = Units.KM,
) -> None:
    """Show format, channels, rate, gaps, fills, glitches, charging and parked stretches of logs, trip by trip.

    Example: evband inspect drive.csv
    """
    from evband.logs.summary import summary_json, trip_summary

    trips = logs.read()
    summaries = [trip_summary(trip) for trip in trips]
    if json:
        print(summary_json(summaries))
        return

    from rich.markup import escape
    from rich.table import Table

    page = console()
    for summary in summaries:
        page.print(
            f"[bold]{escape(summary['trip_id'])}[/bold]  {escape(summary['format'])}, {escape(summary['source'])}\n"
            f"{summary['rows']} rows, {summary['rate_hz']:.3g} Hz, {summary['duration_s'] / 60:.1f} min, "
            f"{summary['distance_km'] * units.per_km:.2f} {units.value}, {summary['segments']} unbroken stretches"
        )
        table = Table("channel", "readings", "Hz", "least", "median", "most", "unit", box=None)
        for channel in summary["channels"]:
            numbers = (f"{channel[key]:.4g}" for key in ("rate_hz", "min", "median", "max"))
            table.add_row(channel["name"], str(channel["readings"]), *numbers, channel["unit"])
        page.print(table)
        for note in summary["notes"]:
            page.print(f"  note: {escape(note)}", soft_wrap=True)
        for finding in summary["findings"]:
            of = f" of {finding['channel']}" if finding["channel"] else ""
            page.print(f"  {finding['kind']}{of} ({finding['action']}): {escape(finding['text'])}", soft_wrap=True)
        page.print()
