"""Many cars: one base, a small part for each car, and what the fleet teaches about the next one."""

from evband.fleet.fitting import fit_fleet, learn_prior, run_fleet
from evband.fleet.prior import fleet_prior

__all__ = ["fit_fleet", "fleet_prior", "learn_prior", "run_fleet"]
