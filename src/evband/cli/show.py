"""What commands show: tables on standard output, as wide as the terminal or as they are; words beside them on standard error."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from evband.files import STDOUT, write_whole

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 10_000


def console(output: Path | None = None) -> Console:
    """A console that cuts nothing at 80 columns where there is no terminal; standard error where `output` is `-`."""
    from rich.console import Console

    stderr = output == STDOUT
    here = Console(stderr=stderr)
    return here if here.is_terminal else Console(width=WIDE, stderr=stderr)


def tell(text: str, output: Path | None) -> None:
    """Say what was written or found: on standard output, unless that is what was written to."""
    print(text, file=sys.stderr if output == STDOUT else sys.stdout)


def say(text: str) -> None:
    """One line on standard error."""
    print(f"evband: {text}", file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """One warning there, which ends with a full stop."""
    say(f"warning: {text.rstrip('.')}.")


def write_json(text: str, output: Path | None) -> None:
    """The answer for programs: into a file, or alone on standard output where `output` is `-`."""
    if output == STDOUT:
        print(text)
    elif output is not None:
        write_whole(output, text + "\n")
