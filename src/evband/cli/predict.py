"""`evband predict`: bands of power for every grid row of some logs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from evband.cli.options import Alias, Dbc, FlipPower, Keep, Limit, Logs, Map, read_logs


class Interval(StrEnum):
    MIXTURE = "mixture"
    CLOSED_FORM = "closed_form"


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A fitted model, car.evband.")],
    logs: Logs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Table to write, .parquet or .csv.")],
    level: Annotated[float, typer.Option(help="Share of measurements the band should hold.")] = 0.9,
    interval: Annotated[
        Interval, typer.Option(help="Exact quantiles of the mixture, or the closed form.")
    ] = Interval.MIXTURE,
    members: Annotated[
        bool, typer.Option("--members", help="Add each member's parameters, and which input is outside.")
    ] = False,
    map: Map = None,
    alias: Alias = None,
    dbc: Dbc = None,
    flip_power: FlipPower = False,
    keep: Keep = None,
    limit: Limit = None,
) -> None:
    """Write mean, band, aleatoric and epistemic deviation of every row, on the model's own grid."""
    from evband.bands import check_level
    from evband.logs.writing import check_table_name, write_table
    from evband.model import load

    check_level(level)
    check_table_name(output)
    fitted = load(model)
    bands = fitted.predict(read_logs(logs, map, alias, dbc, flip_power, keep, limit))
    write_table(bands.to_frame(level, interval.value, members), output)
    outside = f", {100 * bands.outside.mean():.1f} % outside the training range" if bands.outside.any() else ""
    print(f"{output}: {len(bands)} rows of {len(set(bands.trip_id.tolist()))} trips{outside}")
