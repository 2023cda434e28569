"""Trip energy and range with bands that hold: `evband energy`, `evband range`."""

from evband.energy.ahead import Ahead
from evband.energy.drives import Drive, drives_of
from evband.energy.errors import ErrorModel
from evband.energy.fitting import fit_errors
from evband.energy.range import Range, check_battery, check_supplies, given, plan, range_json, range_warnings, what_ifs
from evband.energy.so_far import SoFar
from evband.energy.trip import Energies, EnergyBand, stretch_energy, trip_energy

__all__ = [
    "Ahead", "Drive", "Energies", "EnergyBand", "ErrorModel", "Range", "SoFar", "check_battery", "check_supplies", "drives_of",
    "fit_errors", "given", "plan", "range_json", "range_warnings", "stretch_energy", "trip_energy", "what_ifs",
]  # fmt: skip
