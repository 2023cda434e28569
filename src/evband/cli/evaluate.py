"""`evband evaluate`: score a model against logs with measured power."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.options import Level, Model
from evband.cli.seen import warn_of_training_trips
from evband.cli.show import tell, write_json


@reads_logs
def evaluate(
    model: Model,
    logs: Logs,
    level: Level = 0.9,
    json: Annotated[
        Path | None, typer.Option(help="Write all scores as one JSON object; - is standard output.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report that opens offline.")] = None,
) -> None:
    """Score a model on logs with measured power: accuracy, coverage with an honest interval, sharpness; by regime and trip.

    Example: evband evaluate car.evband drive.csv --json scores.json --report report.html
    """
    from evband.bands import check_level
    from evband.model import load
    from evband.scores import evaluate as score

    check_level(level)
    fitted = load(model)
    trips = logs.read_for(fitted)
    warn_of_training_trips(fitted, trips, "so these scores flatter; score trips that the model never saw.")
    bands = fitted.predict(trips)
    scores = score(bands, trips, level)
    tell(str(scores), json)
    write_json(scores.to_json(), json)
    if report:
        from evband.report.page import write_report

        write_report(report, fitted, bands, scores, trips)
