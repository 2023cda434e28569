"""`evband evaluate`: score a model against logs with measured power."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.options import Alias, Dbc, FlipPower, Keep, Limit, Logs, Map, read_logs
from evband.cli.seen import warn_of_training_trips


def evaluate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A fitted model, car.evband.")],
    logs: Logs,
    level: Annotated[float, typer.Option(help="Share of measurements the band should hold.")] = 0.9,
    json: Annotated[Path | None, typer.Option("--json", help="Write all scores as one JSON object.")] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write an HTML report that opens offline.")] = None,
    map: Map = None,
    alias: Alias = None,
    dbc: Dbc = None,
    flip_power: FlipPower = False,
    keep: Keep = None,
    limit: Limit = None,
) -> None:
    """Score a model on logs with measured power: accuracy, coverage with an honest interval, sharpness; by regime and trip."""
    from evband.bands import check_level
    from evband.files import whole_file
    from evband.model import load
    from evband.scores import evaluate as score

    check_level(level)
    fitted = load(model)
    trips = read_logs(logs, map, alias, dbc, flip_power, keep, limit).on_grid(fitted.settings_.hz)
    warn_of_training_trips(fitted, trips, "so these scores flatter; score trips that the model never saw.")
    bands = fitted.predict(trips)
    scores = score(bands, trips, level)
    print(scores)
    if json:
        with whole_file(json) as temporary:
            temporary.write_text(scores.to_json() + "\n")
    if report:
        from evband.report import write_report

        write_report(report, fitted, bands, scores, trips)
