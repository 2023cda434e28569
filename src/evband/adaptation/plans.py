"""What the drives of a started car take beyond their plans: nobody has driven it yet, so simulated drivers say.

Most of it is braking and waiting, which grow with the car's mass, so the numbers are per tonne; `tools/started_plans.py` makes them
from the drivers of `evband.simulation.population`. No measured log is used.
"""

from __future__ import annotations

from typing import Any

PER_TONNE: dict[str, float] = {
    "shift": 0.0433, "habit": 2.10e-5, "local": 4.07e-4, "trips": 120, "scale_kmh": 60.0,
}  # fmt: skip
POWERS = {"shift": 1, "habit": 2, "local": 2}  # of the mass


def simulated_plans(mass_kg: float) -> dict[str, Any]:
    """`Planned.to_dict()` of a car of this mass."""
    return {name: value * (mass_kg / 1000.0) ** POWERS.get(name, 0) for name, value in PER_TONNE.items()}
