"""Kilometres or miles: what distances and consumption are shown in; tables on disk always hold kilometres."""

from __future__ import annotations

from enum import StrEnum

from evband.channels import KM_PER_MILE


class Units(StrEnum):
    """The unit of distance."""

    KM = "km"
    MI = "mi"

    @property
    def per_km(self) -> float:
        return 1.0 if self is Units.KM else 1.0 / KM_PER_MILE

    @property
    def of_use(self) -> str:
        """The unit of consumption."""
        return "kWh/100 km" if self is Units.KM else "mi/kWh"
