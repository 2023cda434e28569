"""Options that several commands share, those of logs apart (`evband.cli.logs`), and dataclasses as groups of options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from evband.report.units import Units
from evband.settings import ABOUT


def setting(name: str, *names: str, what: str = "") -> Any:
    """The option of a setting: help and choices from its definition (`evband.settings`)."""
    about = ABOUT[name]
    choices = [choice for choice in about.choices if choice != "distilled"]  # made by `evband collapse`
    text = what or f"{about.what[0].upper()}{about.what[1:]}."
    complete = (lambda: choices) if choices else None
    return typer.Option(*names, help=text, metavar="|".join(choices) or None, autocompletion=complete)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of each parameter that is a dataclass as its arguments; options come after its own."""
    own, hints = signature(command).parameters, get_type_hints(command, include_extras=True)
    groups = {name: hints[name] for name in own if is_dataclass(hints[name])}
    inside = {name: [field for field in fields(kind) if field.init] for name, kind in groups.items()}
    first: list[Parameter] = []
    last: list[Parameter] = []
    for name, parameter in own.items():
        if name not in groups:
            first.append(_parameter(name, parameter.default, hints[name]))
            continue
        of_fields = get_type_hints(groups[name], include_extras=True)
        for field in inside[name]:
            needed = field.default is MISSING
            default = Parameter.empty if needed else field.default
            (first if needed else last).append(_parameter(field.name, default, of_fields[field.name]))

    @functools.wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: groups[name](**{field.name: given.pop(field.name) for field in parts})
            for name, parts in inside.items()
        }
        command(**made, **given)

    parameters = [*first, *last]
    assert len({p.name for p in parameters}) == len(parameters), "two options of a command have one name"
    run.__signature__ = signature(run).replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters} | {"return": None}
    return run


def _parameter(name: str, default: Any, annotation: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="A fitted model, car.evband.")]
TableOut = Annotated[
    Path, typer.Option("--output", "-o", help="Table to write: .parquet, .csv, .jsonl; - is standard output.")
]
Level = Annotated[float, typer.Option(help="Share of measurements the band should hold.")]
ShowUnits = Annotated[Units, typer.Option("--units", help="Show distances in kilometres or miles.")]
