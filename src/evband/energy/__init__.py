"""Trip energy and range with bands that hold: `evband energy`, `evband range`."""

from evband.energy.drives import Drive, drives_of
from evband.energy.errors import ErrorModel, fit_errors
from evband.energy.so_far import SoFar
from evband.energy.trip import Energies, EnergyBand, stretch_energy, trip_energy

__all__ = [
    "Drive", "Energies", "EnergyBand", "ErrorModel", "SoFar", "drives_of", "fit_errors", "stretch_energy", "trip_energy",
]  # fmt: skip
