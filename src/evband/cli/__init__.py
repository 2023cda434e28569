"""The command line: one thin command per file, no logic here. Heavy modules are imported inside the commands.

To add a command, import its function below and name it in `COMMANDS`.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import typer

from evband import __version__
from evband.cli.adapt import adapt
from evband.cli.calibrate import calibrate
from evband.cli.collapse import collapse
from evband.cli.convert import convert
from evband.cli.demo import demo
from evband.cli.doctor import doctor
from evband.cli.energy import energy
from evband.cli.evaluate import evaluate
from evband.cli.export import export
from evband.cli.fit import fit
from evband.cli.fleet import fleet
from evband.cli.info import info
from evband.cli.inspect import inspect
from evband.cli.outputs import spares_inputs
from evband.cli.predict import predict
from evband.cli.prior import prior
from evband.cli.range import range
from evband.cli.route import route
from evband.cli.serve import serve
from evband.cli.simulate import simulate
from evband.cli.start import start
from evband.cli.stream import stream
from evband.cli.study import study
from evband.cli.vehicles import vehicles
from evband.errors import EXTRAS, EvbandError, missing, one_line

COMMANDS: tuple[Callable[..., Any], ...] = (
    demo,
    inspect,
    convert,
    simulate,
    start,
    adapt,
    prior,
    fit,
    predict,
    evaluate,
    calibrate,
    energy,
    range,
    route,
    stream,
    serve,
    collapse,
    export,
    info,
    doctor,
    vehicles,
)

app = typer.Typer(
    name="evband",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in COMMANDS:
    app.command()(spares_inputs(command))
app.add_typer(study, name="study")
app.add_typer(fleet, name="fleet")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"evband {__version__}")
        raise typer.Exit()


@app.callback()
def evband(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """What power an electric car draws from how it moves, and how sure that is."""


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
    try:
        return app(words, prog_name="evband", standalone_mode=False) or 0
    except EvbandError as error:
        return _refuse(error)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(error, file=sys.stderr)
            return 2
        command = getattr(getattr(error, "ctx", None), "command_path", "evband")
        said = " ".join(getattr(error, "format_message", error.__str__)().split()).rstrip(".")
        return _refuse(one_line(f"{said}; {command} --help lists what can be given."))
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
