"""Trip energy and range with bands that hold: `evband energy`, `evband range`."""

from evband.energy.ahead import Ahead
from evband.energy.answers import advice, advice_lines, changes, shares_line
from evband.energy.battery import check_battery, known_battery
from evband.energy.calibrating import RowMean, energy_part, find_contradictions, predicted_drives
from evband.energy.doubts import Doubts
from evband.energy.drives import Drive, drives_of
from evband.energy.errors import ErrorModel
from evband.energy.fitting import fit_errors
from evband.energy.joining import check_supplies
from evband.energy.mean import TripMean
from evband.energy.range import Range, given, plan, range_json, range_warnings, what_ifs
from evband.energy.so_far import SoFar
from evband.energy.trip import Energies, EnergyBand, stretch_energy, trip_energy

__all__ = [
    "Ahead",
    "Doubts",
    "Drive",
    "Energies",
    "EnergyBand",
    "ErrorModel",
    "Range",
    "RowMean",
    "SoFar",
    "TripMean",
    "advice",
    "advice_lines",
    "changes",
    "check_battery",
    "check_supplies",
    "drives_of",
    "energy_part",
    "find_contradictions",
    "fit_errors",
    "given",
    "known_battery",
    "plan",
    "predicted_drives",
    "range_json",
    "range_warnings",
    "shares_line",
    "stretch_energy",
    "trip_energy",
    "what_ifs",
]
