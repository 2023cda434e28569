"""`evband adapt`: a started model learns from logs of its car."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.logs import Logs, reads_logs
from evband.cli.show import warn


@reads_logs
def adapt(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model that began with evband start.")],
    logs: Logs,
    output: Annotated[Path, typer.Option("--output", "-o", help="Adapted model to write.")],
    capacity_kwh: Annotated[
        float | None, typer.Option(help="Usable battery in kWh, for a table with soc_start and soc_end.")
    ] = None,
) -> None:
    """Learn from minutes to hours of the car's own driving with measured power, in seconds and without torch.

    A CSV with one row per trip is taken as poorer evidence: distance_km, mean_speed_kmh or duration_min, and energy_kwh,
    kwh_100km (which needs no distance), soc_start and soc_end, or charged_kwh; ambient_temp_c if known.

    Example: evband adapt zoe.evband "drives/*.csv" -o zoe2.evband
    """
    from evband.adaptation import adapt as learn
    from evband.adaptation import adapt_to_energy
    from evband.adaptation.energy_evidence import is_energy_table, read_energy
    from evband.errors import SettingsError
    from evband.logs.reading import paths_of
    from evband.model import load

    started = load(model)
    files = [file for name in logs.names for file in paths_of(name)]
    tables = [file for file in files if is_energy_table(file)]
    if tables and len(tables) == len(files):
        adapted = adapt_to_energy(
            started, [trip for file in files for trip in read_energy(file, started, capacity_kwh)]
        )
    elif tables:
        raise SettingsError(
            f"{tables[0]} is a table with one row per trip, other files are logs; adapt from one kind at a time."
        )
    else:
        trips = logs.read_for(started)
        logs.warn_of_faults(trips)
        adapted = learn(started, trips)
    adapted.save(output)
    state = adapted.adaptation_
    for note in state.notes:
        warn(note)
    print(f"{output}: has learned from {state.trips} trips, {state.minutes:.0f} minutes of them with measured power")
