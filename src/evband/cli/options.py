"""Options that several commands share, those of logs apart (`evband.cli.logs`)."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evband.channels import KM_PER_MILE
from evband.settings import ABOUT


class Units(StrEnum):
    """What distances are shown in; tables always hold kilometres."""

    KM = "km"
    MI = "mi"

    @property
    def per_km(self) -> float:
        return 1.0 if self is Units.KM else 1.0 / KM_PER_MILE


def setting(name: str, *names: str, what: str = "") -> Any:
    """The option of a setting: help and choices from its definition (`evband.settings`)."""
    about = ABOUT[name]
    choices = [choice for choice in about.choices if choice != "distilled"]  # made by `evband collapse`
    text = what or f"{about.what[0].upper()}{about.what[1:]}."
    complete = (lambda: choices) if choices else None
    return typer.Option(*names, help=text, metavar="|".join(choices) or None, autocompletion=complete)


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A fitted model, car.evband.")]
TableOut = Annotated[
    Path, typer.Option("--output", "-o", help="Table to write: .parquet, .csv, .jsonl; - is standard output.")
]
Level = Annotated[float, typer.Option(help="Share of measurements the band should hold.")]
ShowUnits = Annotated[Units, typer.Option("--units", help="Show distances in kilometres or miles.")]
