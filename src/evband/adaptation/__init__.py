"""A model for a car that nobody has measured, and what the car's own minutes make of it: `evband start`, `evband adapt`."""

from evband.adaptation.base import Base
from evband.adaptation.energy_evidence import adapt_to_energy
from evband.adaptation.starting import start
from evband.adaptation.update import adapt

__all__ = ["Base", "adapt", "adapt_to_energy", "start"]
