"""`evband inspect`: what is in a log, and what is wrong with it."""

from __future__ import annotations

from typing import Annotated

import typer

from evband.cli.options import Alias, Dbc, FlipPower, Keep, Limit, Logs, Map, ShowUnits, Units, read_logs


def inspect(
    logs: Logs,
    json: Annotated[bool, typer.Option("--json", help="Write one JSON list, an object for each trip.")] = False,
    map: Map = None,
    alias: Alias = None,
    dbc: Dbc = None,
    flip_power: FlipPower = False,
    keep: Keep = None,
    limit: Limit = None,
    units: ShowUnits = Units.KM,
) -> None:
    """Show format, channels, rate, gaps, fills, glitches, charging and parked stretches of logs, trip by trip."""
    from evband.logs.summary import summary_json, trip_summary

    trips = read_logs(logs, map, alias, dbc, flip_power, keep, limit)
    summaries = [trip_summary(trip) for trip in trips]
    if json:
        print(summary_json(summaries))
        return

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    for summary in summaries:
        console.print(
            f"[bold]{escape(summary['trip_id'])}[/bold]  {escape(summary['format'])}, {escape(summary['source'])}\n"
            f"{summary['rows']} rows, {summary['rate_hz']:.3g} Hz, {summary['duration_s'] / 60:.1f} min, "
            f"{summary['distance_km'] * units.per_km:.2f} {units.value}, {summary['segments']} unbroken stretches"
        )
        table = Table("channel", "readings", "Hz", "least", "median", "most", "unit", box=None)
        for channel in summary["channels"]:
            numbers = (f"{channel[key]:.4g}" for key in ("rate_hz", "min", "median", "max"))
            table.add_row(channel["name"], str(channel["readings"]), *numbers, channel["unit"])
        console.print(table)
        for note in summary["notes"]:
            console.print(f"  note: {escape(note)}", soft_wrap=True)
        for finding in summary["findings"]:
            of = f" of {finding['channel']}" if finding["channel"] else ""
            console.print(f"  {finding['kind']}{of} ({finding['action']}): {escape(finding['text'])}", soft_wrap=True)
        console.print()
