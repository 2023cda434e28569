"""`evband collapse`: one network in place of the ensemble."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.options import Model
from evband.cli.progress import reporting
from evband.cli.show import warn


class How(StrEnum):
    DISTILL = "distill"
    AVERAGE = "average"


@reads_logs
def collapse(
    model: Model,
    logs: Logs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model of one network to write.")],
    how: Annotated[How, typer.Option(help="Teach one network the ensemble's bands, or average weights.")] = How.DISTILL,
) -> None:
    """Replace the ensemble by one network that gives mean, aleatoric and epistemic part in one pass, and report what it costs.

    Example: evband collapse car.evband drive.csv -o one.evband
    """
    from evband.export.collapse import average, cost, distill
    from evband.model import load

    fitted = load(model)
    trips = logs.read_for(fitted)
    if how is How.AVERAGE:
        one = average(fitted)
    else:
        with reporting("epoch") as report:
            one = distill(fitted, trips, progress=lambda done, total, loss: report(done, total, f"loss {loss:.4f}"))
    price = cost(fitted.predict(trips), one.predict(trips))
    one.save(output)
    if how is How.AVERAGE:
        warn(
            "averaging members with anchors of their own is meaningless in general, and one network has "
            f"no epistemic part ({price}); use --how distill"
        )
    else:
        print(
            "its epistemic part was learned on inputs like these and need not rise far from them, as the ensemble's does"
        )
    print(f"{output}: {price}, on these trips")
