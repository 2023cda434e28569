"""`evband predict`: bands of power for every grid row of some logs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.options import Level, Model, TableOut
from evband.cli.seen import warn_if_not_calibrated
from evband.cli.show import tell


class Interval(StrEnum):
    MIXTURE = "mixture"
    CLOSED_FORM = "closed_form"


@reads_logs
def predict(
    model: Model,
    logs: Logs,
    output: TableOut,
    level: Level = 0.9,
    interval: Annotated[
        Interval, typer.Option(help="Exact quantiles of the mixture, or the closed form.")
    ] = Interval.MIXTURE,
    members: Annotated[
        bool, typer.Option("--members", help="Add each member's parameters, and which input is outside.")
    ] = False,
) -> None:
    """Write mean, band, aleatoric and epistemic deviation of every row, on the model's own grid.

    Example: evband predict car.evband drive.csv -o bands.parquet --level 0.9
    """
    from evband.bands import check_level
    from evband.logs.writing import check_table_name, write_table
    from evband.model import load

    check_level(level)
    check_table_name(output)
    fitted = load(model)
    bands = fitted.predict(logs.read_for(fitted))
    warn_if_not_calibrated(fitted)
    write_table(bands.to_frame(level, interval.value, members), output)
    outside = f", {100 * bands.outside.mean():.1f} % outside the training range" if bands.outside.any() else ""
    tell(f"{output}: {len(bands)} rows of {len(set(bands.trip_id.tolist()))} trips{outside}", output)
