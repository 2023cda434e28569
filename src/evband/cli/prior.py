"""`evband prior`: what cars teach about the next one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.fleet import By, Drag, Mass, OwnBase, Sheets, Workers
from evband.cli.show import warn


def prior(
    places: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="Logs with measured power, a folder or vehicle_id per car; or folders of evband fleet fit.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Base to write, fleet.evband.")],
    by: By = "vehicle_id",
    sheets: Sheets = None,
    mass_kg: Mass = None,
    cda_m2: Drag = None,
    base: OwnBase = None,
    workers: Workers = 1,
) -> None:
    """Mean and spread between cars, from logs of many, as a base for new cars: evband start --base fleet.evband.

    Example: evband prior lake/ --sheets sheets.toml -o fleet.evband
    """
    from evband.fleet.fitting import learn_prior

    options = {"by": by, "sheets": sheets, "mass_kg": mass_kg, "cda_m2": cda_m2, "base": base, "workers": workers}
    cars, table = learn_prior(places, output, **options)
    for row in table.filter(table["warning"] != "").head(10).to_dicts():
        warn(f"{row['vehicle_id']}: {row['warning']}")
    print(f"{output}: learned from {cars} cars")
