"""`evband start`: a model of a car from its data sheet alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def start(
    vehicle: Annotated[
        str | None, typer.Argument(metavar="[NAME|sheet.toml]", help="A vehicle of the catalogue, or a data sheet.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write, car.evband.")] = Path(
        "car.evband"
    ),
    mass_kg: Annotated[float | None, typer.Option(help="Mass with driver and load, in kg.")] = None,
    cda_m2: Annotated[float | None, typer.Option(help="Drag coefficient times frontal area, in m2.")] = None,
    crr: Annotated[float | None, typer.Option(help="Rolling resistance of the tyres, such as 0.009.")] = None,
    capacity_kwh: Annotated[float | None, typer.Option(help="Usable battery, in kWh.")] = None,
    hz: Annotated[float, typer.Option(help="Rows per second of the grid.")] = 1.0,
    base: Annotated[
        Path | None, typer.Option(help="What a fleet's logs taught, in place of the base that ships with evband.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same model.")] = 0,
) -> None:
    """A model from a data sheet, without any log of the car: wide bands, which narrow with every log given to evband adapt.

    Example: evband start "Renault Zoe 52 kWh" -o zoe.evband
    """
    from evband.adaptation import start as begin
    from evband.vehicles import Sheet

    numbers = {"mass_kg": mass_kg, "cda_m2": cda_m2, "crr": crr, "battery_kwh": capacity_kwh}
    model = begin(vehicle, base=base, hz=hz, seed=seed, **numbers)
    model.save(output)
    sheet = Sheet.from_dict(model.adaptation_.sheet)
    print(
        f"{output}: {sheet.name}, {sheet.mass_kg:.0f} kg (+- {sheet.uncertainty('mass_kg'):.0%}), CdA {sheet.cda_m2:.2f} m2 "
        f"(+- {sheet.uncertainty('cda_m2'):.0%}), c_rr {sheet.crr:.4f} (+- {sheet.uncertainty('crr'):.0%})"
    )
    print(f"rests on its data sheet and on {model.adaptation_.about}; evband adapt makes it this car's own")
