"""`evband prior`: what cars teach about the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.fleet import By, OwnBase, Sheets, Workers, warn_of_cars
from evband.cli.options import grouped


@grouped
def prior(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Logs with measured power, a folder or vehicle_id per car; or folders of evband fleet fit.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Base to write, fleet.evband.")],
    sheets: Sheets,
    by: By = "vehicle_id",
    base: OwnBase = None,
    workers: Workers = 1,
) -> None:
    """Mean and spread between cars, from logs of many, as a base for new cars: evband start --base fleet.evband.

    Example: evband prior lake/ --sheets sheets.toml -o fleet.evband
    """
    from evband.fleet.fitting import learn_prior

    cars, table = learn_prior(places, output, **vars(sheets), by=by, base=base, workers=workers)
    warn_of_cars(table)
    print(f"{output}: learned from {cars} cars")
