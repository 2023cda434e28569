"""Every command says in its help how it is typed, and every command that reads logs has the same options for that."""

import dataclasses
import re
import shlex

import pytest
import typer.main

from evband.cli import command_line
from evband.cli.logs import Logs

CLICK = typer.main.get_command(command_line())


def leaves(group=CLICK, before=()):
    """(words, command) of every command."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, (*before, name))
        else:
            yield (*before, name), command


@pytest.mark.parametrize(
    ("words", "command"), list(leaves()), ids=lambda v: "-".join(v) if isinstance(v, tuple) else ""
)
def test_every_command_has_an_example_that_it_understands(words, command):
    found = re.search(r"^Example: (.+)$", command.help, flags=re.M)
    assert found, "end the docstring with a line Example: evband ..."
    typed = shlex.split(re.split(" [<>|] ", found[1])[0])
    assert tuple(typed[: len(words) + 1]) == ("evband", *words)
    command.make_context(words[-1], typed[len(words) + 1 :])  # an unknown option or a missing argument raises here


def test_log_options_are_the_same_everywhere():
    wanted = {f.name for f in dataclasses.fields(Logs) if f.init}
    reading = [c for _, c in leaves() if any(p.name == "names" for p in c.params)]
    assert {c.name for c in reading} >= {
        "fit",
        "predict",
        "evaluate",
        "energy",
        "inspect",
        "convert",
        "calibrate",
        "collapse",
    }
    for command in reading:
        assert wanted <= {p.name for p in command.params}, command.name
