"""Progress of a long job: a bar on a terminal, plain lines otherwise; both on standard error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[int, int, str], None]  # (done, of how many, what to say beside it)

LINES = 20  # plain lines of a whole job


@contextmanager
def reporting(what: str) -> Iterator[Report]:
    """A function to call after each step of the job."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, total, text: _line(what, done, total, text)
        return
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[text]}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, text="")
        yield lambda done, total, text: bar.update(task, completed=done, total=total, text=text)


def _line(what: str, done: int, total: int, text: str) -> None:
    if done == total or done % max(1, total // LINES) == 0:
        print(f"{what} {done}/{total}: {text}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Such as 45 s or 3 min 20 s."""
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
