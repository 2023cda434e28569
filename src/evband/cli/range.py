"""`evband range`: how far the battery reaches along a route, and whether it arrives."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from evband.cli.options import ShowUnits, Units


def range(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A fitted model, car.evband.")],
    soc: Annotated[float, typer.Option(help="State of charge now, in percent.")],
    capacity_kwh: Annotated[float, typer.Option("--capacity-kwh", help="Usable energy of the full battery.")],
    route: Annotated[Path, typer.Option(help="Profile CSV, or a log: the route as it drove.")],
    reserve_soc: Annotated[float, typer.Option("--reserve-soc", help="Charge to arrive with at least.")] = 10.0,
    so_far: Annotated[Path | None, typer.Option("--so-far", help="Log of the drive up to now, with its power.")] = None,
    ambient: Annotated[float | None, typer.Option("--ambient", help="Temperature in C all along the route.")] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Charge over distance as a fan, .html or .png.")] = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the answer as one JSON object.")] = None,
    what_if: Annotated[bool, typer.Option("--what-if", help="Beside it: slower, colder, against the wind.")] = False,
    units: ShowUnits = Units.KM,
) -> None:
    """How far the battery reaches along a route, the chance to arrive, and the charge left, all as distributions."""
    from json import dumps

    from rich.console import Console
    from rich.table import Table

    from evband.energy import Range, check_battery, what_ifs
    from evband.energy.fan import check_picture, write_fan
    from evband.files import whole_file
    from evband.model import load

    check_battery(soc, capacity_kwh, reserve_soc)
    if plot:
        check_picture(plot)
    fitted = load(model)
    options = {"reserve_soc": reserve_soc, "so_far": None if so_far is None else str(so_far), "ambient_c": ambient}
    found: dict[str, Range | str] = (
        what_ifs(fitted, soc, capacity_kwh, route, **options)
        if what_if
        else {"as given": fitted.range(soc, capacity_kwh, route, **options)}
    )
    given = found["as given"]
    assert isinstance(given, Range)
    for note in given.notes:
        print(f"evband: warning: {note}.", file=sys.stderr)
    for name, answer in found.items():
        for note in () if isinstance(answer, str) else answer.notes:
            if note not in given.notes:
                print(f"evband: warning: {name}: {note}.", file=sys.stderr)
    table = Table(
        f"route {given.route_km * units.per_km:.1f} {units.value}",
        f"reach, {units.value} (5 .. 95 %)", "arrives", "charge there, % (5 .. 95 %)", "kWh (5 .. 95 %)",
    )  # fmt: skip
    for name, answer in found.items():
        if isinstance(answer, str):
            continue
        km = [answer.distance_km(p) * units.per_km for p in (0.5, 0.05, 0.95)]
        left = [answer.soc_at_arrival(p) for p in (0.5, 0.05, 0.95)]
        kwh = [answer.energy_kwh(p) for p in (0.5, 0.05, 0.95)]
        table.add_row(
            name,
            f"{km[0]:.0f} ({km[1]:.0f} .. {km[2]:.0f})",
            f"{answer.arrival_probability:.1%}",
            f"{left[0]:.0f} ({left[1]:.0f} .. {left[2]:.0f})",
            f"{kwh[0]:.2f} ({kwh[1]:.2f} .. {kwh[2]:.2f})",
        )
    Console().print(table)
    for name, answer in found.items():
        if isinstance(answer, str):
            print(f"{name}: {answer}")
    if plot:
        write_fan(given, plot)
    if json:
        result = given.to_dict()
        if what_if:
            result["what_if"] = {
                n: a if isinstance(a, str) else a.to_dict() for n, a in found.items() if a is not given
            }
        with whole_file(json) as temporary:
            temporary.write_text(dumps(result, indent=2) + "\n")
