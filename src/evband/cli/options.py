"""Options that several commands share, those of logs apart (`evband.cli.logs`)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Units(StrEnum):
    """What distances are shown in; tables always hold kilometres."""

    KM = "km"
    MI = "mi"

    @property
    def per_km(self) -> float:
        return 1.0 if self is Units.KM else 1.0 / 1.609344


ShowUnits = Annotated[Units, typer.Option("--units", help="Show distances in kilometres or miles.")]
