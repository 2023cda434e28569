"""`evband energy`: trip energy bands against what was measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evband.cli.options import Alias, Dbc, FlipPower, Keep, Limit, Logs, Map, ShowUnits, Units, read_logs
from evband.cli.seen import warn_of_training_trips


def energy(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A fitted model, car.evband.")],
    logs: Logs,
    level: Annotated[float, typer.Option(help="Share of trips the band should hold.")] = 0.9,
    json: Annotated[Path | None, typer.Option("--json", help="Write a list with one object a trip.")] = None,
    from_km: Annotated[float, typer.Option("--from-km", help="Only the stretch from here ...")] = 0.0,
    to_km: Annotated[float | None, typer.Option("--to-km", help="... to here.")] = None,
    so_far: Annotated[
        bool, typer.Option("--so-far", help="Let the power measured before --from-km narrow the band.")
    ] = False,
    map: Map = None,
    alias: Alias = None,
    dbc: Dbc = None,
    flip_power: FlipPower = False,
    keep: Keep = None,
    limit: Limit = None,
    units: ShowUnits = Units.KM,
) -> None:
    """Energy of each trip, or of a stretch of it, with a band that holds for trips as a whole."""
    from json import dumps

    from rich.console import Console
    from rich.table import Table

    from evband.bands import check_level
    from evband.files import whole_file
    from evband.model import load

    check_level(level)
    fitted = load(model)
    trips = read_logs(logs, map, alias, dbc, flip_power, keep, limit).on_grid(fitted.settings_.hz)
    warn_of_training_trips(fitted, trips, "so they say nothing about new trips.")
    found = fitted.energy(trips, level, from_km=from_km, to_km=to_km, so_far=so_far)
    imperial = units is Units.MI
    use = "mi/kWh" if imperial else "kWh/100 km"
    table = Table("trip", units.value, "kWh", f"{level:.0%} band", "measured", use)
    for band in found:
        lower, upper = band.interval(level)
        per = band.miles_per_kwh if imperial else band.per_100km
        ends = sorted((per(lower), per(upper)))
        table.add_row(
            band.trip_id,
            f"{band.distance_km * units.per_km:.1f}",
            f"{band.mean_kwh:.2f}",
            f"{lower:.2f} .. {upper:.2f}",
            "-" if band.energy_kwh is None else f"{band.energy_kwh:.2f}",
            f"{per(band.mean_kwh):.1f} ({ends[0]:.1f} .. {ends[1]:.1f})",
        )
    Console().print(table)
    if found.coverage is not None:
        print(f"{found.coverage:.0%} of the measured energies lie in their {level:.0%} band")
    if json:
        with whole_file(json) as temporary:
            temporary.write_text(dumps(found.to_dicts(), indent=2) + "\n")
