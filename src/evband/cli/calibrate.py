"""`evband calibrate`: refit the stretches of a model's bands on trips it never saw."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.options import Model
from evband.cli.seen import warn_of_training_trips


@reads_logs
def calibrate(
    model: Model,
    logs: Logs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Calibrated model to write.")],
) -> None:
    """Stretch the bands so that they hold on these trips: at least 9, which the model was not trained on.

    Example: evband calibrate car.evband "new/*.csv" -o car-cal.evband
    """
    from evband.model import load

    fitted = load(model)
    trips = logs.read_for(fitted)
    warn_of_training_trips(
        fitted, trips, "so the bands will be too narrow; calibrate on trips that the model never saw."
    )
    before = fitted.calibration_
    fitted.recalibrate(trips).save(output)
    print(f"{output}: {fitted.calibration_.describe()}; before: {before.describe()}")
