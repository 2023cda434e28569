"""Which data sheet each car of a fleet has."""

from __future__ import annotations

from pathlib import Path
from statistics import median

from evband.adaptation.starting import sheet_of
from evband.errors import SettingsError, VehicleError
from evband.files import read_toml
from evband.vehicles import Sheet, find, read_sheets
from evband.vehicles.find import LARGEST_BYTES


def read_fleet_sheets(path: Path) -> dict[str, Sheet]:
    """vehicle_id -> sheet: a table `[cars]` of names in the catalogue, or sheets (`[[vehicle]]`) whose name is the id."""
    data = read_toml(path, VehicleError, "list of data sheets", LARGEST_BYTES)
    cars = data.get("cars")
    if isinstance(cars, dict):
        wrong = next((car for car, name in cars.items() if not isinstance(name, str)), None)
        if wrong is not None:
            raise VehicleError(f"{path}: {wrong} in [cars] is {cars[wrong]!r}; write the name of a vehicle as a text.")
        sheets = {name: find(name) for name in set(cars.values())}
        return {car: sheets[name] for car, name in cars.items()}
    return {sheet.name: sheet for sheet in read_sheets(path)}


def usual_sheet(known: dict[str, Sheet], mass_kg: float | None, cda_m2: float | None) -> Sheet | None:
    """Of a car without one: the given numbers, or the median of the fleet's; None where there are neither."""
    if known:
        mass_kg = mass_kg or median(sheet.mass_kg for sheet in known.values())
        cda_m2 = cda_m2 or median(sheet.cda_m2 for sheet in known.values())
    if mass_kg is None and cda_m2 is None:
        return None
    if mass_kg is None or cda_m2 is None:
        raise SettingsError("mass and CdA of cars without a sheet go together; give both --mass-kg and --cda-m2.")
    return sheet_of(None, mass_kg=mass_kg, cda_m2=cda_m2)
