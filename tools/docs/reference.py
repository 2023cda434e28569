"""Pages of the site that are made from the package each time it is built, so that they cannot differ: commands, channels."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from evband.channels import CHANNELS
from evband.cli import command_line

KINDS = {
    "time": "time of a row",
    "id": "which trip",
    "motion": "motion",
    "force": "dynamometer",
    "place": "place",
    "coordinate": "coordinate, with readings as logged only",
    "weather": "weather",
    "cabin": "cabin",
    "electrical": "electrical, never an input",
}


def cell(text: object) -> str:
    """A text that stays in its cell of a Markdown table and is not taken for HTML."""
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def named(parameter: Any) -> str:
    """How an argument or option is written, such as `--output, -o`."""
    if parameter.param_type_name == "argument":
        return f"`{(parameter.metavar or parameter.name).strip('[]').upper()}`"
    return ", ".join(f"`{flag}`" for flag in (*parameter.opts, *parameter.secondary_opts))


def default(parameter: Any) -> str:
    """What holds where it is not given; "required" where there is nothing."""
    if parameter.required:
        return "required"
    value = parameter.default
    if value is None or value is False or value in ((), [], "") or callable(value):
        return ""
    return f"`{cell(getattr(value, 'value', value))}`"


def section(name: str, command: Any, depth: int) -> Iterator[str]:
    """One command: what it does, its example, its arguments and options; then its own commands."""
    text, _, example = inspect.cleandoc(command.help or "").partition("Example: ")
    yield from (f"{'#' * depth} {name}", "", cell(text), "")
    if example:
        yield from ("```", example.strip(), "```", "")
    shown = [p for p in command.params if p.name != "help" and not getattr(p, "hidden", False)]
    if shown:
        yield from ("| | default | |", "|---|---|---|")
        yield from (f"| {named(p)} | {default(p)} | {cell(getattr(p, 'help', '') or '')} |" for p in shown)
        yield ""
    for inner, child in getattr(command, "commands", {}).items():
        yield from section(f"{name} {inner}", child, depth + 1)


def commands() -> str:
    """Every command of the command line, as its `--help` has it."""
    head = ["# Commands", "", "`evband COMMAND --help` shows the same.", ""]
    known: Any = get_command(command_line())
    parts = [line for name, child in known.commands.items() for line in section(f"evband {name}", child, 2)]
    return "\n".join([*head, *parts]).rstrip() + "\n"


def channels() -> str:
    """Every channel with unit, limits and the age up to which a reading counts."""
    lines = [
        "# Channels", "",
        "One vocabulary everywhere, the unit in the name. Positive power and current leave the battery. A value outside its",
        "limits is a glitch; a reading older than its age limit says nothing about now.", "",
        "| channel | unit | limits | age limit | kind |", "|---|---|---|---|---|",
    ]  # fmt: skip
    for channel in CHANNELS.values():
        limits = "" if channel.kind in ("time", "id") else f"{channel.low:g} .. {channel.high:g}"
        age = "" if channel.kind in ("time", "id") else f"{channel.max_age_s:g} s"
        lines.append(f"| `{channel.name}` | {channel.unit} | {limits} | {age} | {KINDS[channel.kind]} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Their places under docs/ and their texts."""
    return {"reference/commands.md": commands(), "reference/channels.md": channels()}
