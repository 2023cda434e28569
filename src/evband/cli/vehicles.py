"""`evband vehicles`: the catalogue of data sheets, and one sheet in full."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evband.cli.show import console

if TYPE_CHECKING:
    from evband.vehicles import Sheet


def vehicles(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="A vehicle, as people write it.")] = None,
    sheets: Annotated[
        Path | None,
        typer.Option(help="TOML file with data sheets of your own, in addition to the catalogue."),
    ] = None,
    sharpen: Annotated[
        bool, typer.Option("--sharpen", help="Show drag and tyres after the label's consumption and the coast-down.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print as JSON.")] = False,
) -> None:
    """Data sheets: all of them, those that a name fits, or one in full with sources and uncertainty.

    Example: evband vehicles "kona electric"
    """
    from json import dumps

    from evband.vehicles import catalogue, find, read_sheets, search

    own = read_sheets(sheets) if sheets else ()
    found = search(name, own) if name is not None else (*own, *catalogue())
    if name is not None and not found:
        found = (find(name, own),)  # which says that there is none, and what is near
    if sharpen:
        found = tuple(sheet.sharpened() for sheet in found)
    one = name is not None and len(found) == 1
    if json:
        print(dumps(found[0].to_dict() if one else [sheet.to_dict() for sheet in found], indent=2, ensure_ascii=False))
    elif one:
        _show(found[0])
    else:
        _list(found)


def _list(sheets: tuple[Sheet, ...]) -> None:
    from rich.table import Table

    table = Table("vehicle", "years", "body", "mass, kg", "CdA, m2", "c_rr", "battery, kWh")
    for sheet in sheets:
        table.add_row(
            sheet.name, sheet.years, sheet.body, f"{sheet.mass_kg:.0f}", f"{sheet.cda_m2:.2f}", f"{sheet.crr:.4f}",
            f"{sheet.battery_kwh:.1f}" if sheet.battery_kwh else "-",
        )  # fmt: skip
    console().print(table)


def _show(sheet: Sheet) -> None:
    from rich.table import Table

    from evband.vehicles.sheet import UNITS

    table = Table(sheet.name, "value", "unit", "+- (1 s.d.)", "source")
    table.add_row("mass_kg, with load", f"{sheet.mass_kg:.0f}", "kg", f"{sheet.uncertainty('mass_kg'):.1%}", "")
    for number, unit in UNITS.items():
        value = getattr(sheet, number)
        if value is not None:
            table.add_row(
                number, f"{value:.4g}", unit, f"{sheet.uncertainty(number):.1%}", str(sheet.source_of(number))
            )
    if sheet.coast_down_n:
        table.add_row("coast-down A, B, C", ", ".join(f"{x:.4g}" for x in sheet.coast_down_n), "N, km/h", "", "coast-down")  # fmt: skip
    console().print(table)
    heat = {True: "heat pump", False: "no heat pump", None: "heat pump not known or optional"}[sheet.heat_pump]
    print(", ".join(part for part in (sheet.years, sheet.body, sheet.drive, heat) if part))
    if sheet.note:
        print(sheet.note)
