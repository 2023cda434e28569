"""`evband adapt`: a started model learns from logs of its car."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs


@reads_logs
def adapt(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that began with evband start.")],
    logs: Logs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Adapted model to write.")],
) -> None:
    """Learn from minutes to hours of the car's own driving with measured power, in seconds and without torch.

    Example: evband adapt zoe.evband "drives/*.csv" -o zoe2.evband
    """
    from evband.adaptation import adapt as learn
    from evband.model import load

    started = load(model)
    adapted = learn(started, logs.read(started.settings_.hz))
    adapted.save(output)
    state = adapted.adaptation_
    for note in state.notes:
        print(f"evband: warning: {note}.", file=sys.stderr)
    print(f"{output}: has learned from {state.minutes:.0f} minutes in {state.trips} trips")
