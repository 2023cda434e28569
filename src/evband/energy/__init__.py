"""Trip energy and range with bands that hold: `evband energy`, `evband range`."""

from evband.energy.ahead import Ahead
from evband.energy.calibrating import RowMean, energy_part, predicted_drives
from evband.energy.drives import Drive, drives_of
from evband.energy.errors import ErrorModel
from evband.energy.fitting import fit_errors
from evband.energy.mean import TripMean
from evband.energy.range import Range, check_battery, check_supplies, given, plan, range_json, range_warnings, what_ifs
from evband.energy.so_far import SoFar
from evband.energy.trip import Energies, EnergyBand, stretch_energy, trip_energy

__all__ = [
    "Ahead",
    "Drive",
    "Energies",
    "EnergyBand",
    "ErrorModel",
    "Range",
    "RowMean",
    "SoFar",
    "TripMean",
    "check_battery",
    "check_supplies",
    "drives_of",
    "energy_part",
    "fit_errors",
    "given",
    "plan",
    "predicted_drives",
    "range_json",
    "range_warnings",
    "stretch_energy",
    "trip_energy",
    "what_ifs",
]
