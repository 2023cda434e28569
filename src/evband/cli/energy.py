"""`evband energy`: trip energy bands against what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.options import Model, ShowUnits
from evband.cli.seen import warn_of_training_trips
from evband.cli.show import console, tell, write_json
from evband.report.units import Units


@reads_logs
def energy(
    model: Model,
    logs: Logs,
    level: Annotated[float, typer.Option(help="Share of trips the band should hold.")] = 0.9,
    json: Annotated[
        Path | None, typer.Option(help="Write a list with one object per trip; - is standard output.")
    ] = None,
    from_km: Annotated[float, typer.Option(help="Only the stretch from here ...")] = 0.0,
    to_km: Annotated[float | None, typer.Option(help="... to here.")] = None,
    so_far: Annotated[
        bool, typer.Option("--so-far", help="Let the power measured before --from-km narrow the band.")
    ] = False,
    units: ShowUnits = Units.KM,
) -> None:
    """Energy of each trip, or of a stretch of it, with a band that holds for trips as a whole.

    Example: evband energy car.evband drive.csv --level 0.9
    """
    from json import dumps

    from evband.bands import check_level
    from evband.model import load
    from evband.report.tables import energy_table

    check_level(level)
    fitted = load(model)
    trips = logs.read_for(fitted)
    warn_of_training_trips(fitted, trips, "so they do not show how it does on new trips.")
    found = fitted.energy(trips, level, from_km=from_km, to_km=to_km, so_far=so_far)
    console(json).print(energy_table(found, units))
    if found.coverage is not None:
        tell(f"{found.coverage:.0%} of the measured energies lie in their {level:.0%} band", json)
    write_json(dumps(found.to_dicts(), indent=2), json)
