"""The command line: one thin command per file, no logic here. Heavy modules are imported inside the commands.

To add a command, write its function in a file of its name, and name it in `COMMANDS`.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import Annotated

import typer

from evband import __version__
from evband.cli.outputs import spares_inputs
from evband.errors import EXTRAS, EvbandError, missing, one_line

COMMANDS = (
    "demo", "inspect", "convert", "simulate", "start", "adapt", "prior", "fit", "predict", "evaluate", "calibrate", "energy", "range",
    "route", "stream", "serve", "collapse", "export", "info", "doctor", "vehicles",
)  # fmt: skip
GROUPS = ("study", "fleet")


def command_line(*names: str) -> typer.Typer:
    """The commands and groups of these names, or all: building one takes a tenth of the time."""
    app = typer.Typer(
        name="evband",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
    )
    app.callback()(evband)
    for name in names or (*COMMANDS, *GROUPS):
        found = getattr(import_module(f"evband.cli.{name}"), name)
        if name in GROUPS:
            app.add_typer(found, name=name)
        else:
            app.command()(spares_inputs(found))
    return app


def _version(wanted: bool) -> None:
    if wanted:
        print(f"evband {__version__}")
        raise typer.Exit()


def evband(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Predict an electric car's battery power from its motion, with calibrated bands; from them energy and range."""


def _search_less_for_garbage() -> None:
    """Imports make half a million objects that last; searching them again and again takes a third of a short command's time."""
    gc.set_threshold(200_000, 50, 50)
    atexit.register(lambda: None if "triton" in sys.modules else gc.freeze())  # Triton complains of what it then finds


def _write_any_text() -> None:
    """A console or a file in an old code page (cp1252) lacks some letters of a log; they become '?', not an error."""
    for out in (sys.stdout, sys.stderr):
        if isinstance(out, io.TextIOWrapper) and out.encoding.lower().replace("-", "") not in ("utf8", "utf16"):
            out.reconfigure(errors="replace")


UsageError: type[Exception] = typer.BadParameter.__mro__[
    1
]  # click's, which newer versions of typer hold within themselves


def run(words: list[str] | None = None) -> int:
    """The status of one command. Whatever is wrong with its words or its files is one line on standard error, and 2."""
    words = sys.argv[1:] if words is None else words
    known = words[:1] if words[:1] and words[0] in (*COMMANDS, *GROUPS) else []
    try:
        return command_line(*known)(words, prog_name="evband", standalone_mode=False) or 0
    except EvbandError as error:
        return _refuse(error)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error, file=sys.stderr)
            return 2
        command = getattr(getattr(error, "ctx", None), "command_path", "evband")
        message = " ".join(getattr(error, "format_message", error.__str__)().split()).rstrip(".")
        return _refuse(one_line(f"{message}; {command} --help lists what can be given."))
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        return _refuse(missing(package, "this command"))
    except OSError as error:
        what = f"{error.filename or 'The output'}: {error.strerror or error}"
        with suppress(OSError, ValueError):  # what is still to be flushed cannot be written either
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _refuse(one_line(f"{what}; check the disk and the permissions."))
    except KeyboardInterrupt:
        return 130


def _refuse(problem: object) -> int:
    print(f"evband: error: {problem}", file=sys.stderr)
    return 2


def main() -> None:
    """Run the command line. Bad input ends with one sentence and status 2, Ctrl-C with 130."""
    _search_less_for_garbage()
    _write_any_text()
    sys.exit(run())
