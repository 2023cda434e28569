"""`evband stream`: telemetry lines in, bands out, as they come."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from evband.cli.options import Level, Model
from evband.cli.show import warn


def stream(
    model: Model,
    adapt: Annotated[
        bool, typer.Option("--adapt", help="Learn from measured power as it comes; a started model learns its car.")
    ] = False,
    level: Level = 0.9,
    soc: Annotated[float | None, typer.Option(help="State of charge at the start, in percent.")] = None,
    capacity_kwh: Annotated[
        float | None,
        typer.Option(help="Usable energy of the battery; a started model takes its data sheet's."),
    ] = None,
    route: Annotated[Path | None, typer.Option(help="The route ahead: profile CSV, or a log.")] = None,
    reserve_soc: Annotated[float, typer.Option(help="Range ends at this charge.")] = 10.0,
    state: Annotated[Path | None, typer.Option(help="Continue from this file, and keep it up to date.")] = None,
) -> None:
    """Read JSON lines from standard input and answer each with its power band, running energy and range.

    Example: evband stream car.evband < ticks.jsonl > bands.jsonl
    """
    from evband.errors import SettingsError
    from evband.model import load
    from evband.streaming import Battery, LineStream
    from evband.streaming.pump import pump, resume

    fitted = load(model)
    battery = None
    if soc is not None or capacity_kwh is not None or route is not None:
        if soc is None or route is None:
            raise SettingsError(
                "Range in a stream needs --soc and --route together (and --capacity-kwh where the model has no data sheet)."
            )
        battery = Battery(fitted, soc, capacity_kwh, route, reserve_soc)
        for note in battery.notes:
            warn(note)
    lines = LineStream(fitted, level, adapt, battery)
    if state is not None:
        resume(lines, state)
    pump(lines, sys.stdin.buffer, sys.stdout, state)
