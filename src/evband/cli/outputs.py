"""No command writes over what it reads: a slip of the shell must not cost a log or a model."""

from __future__ import annotations

import functools
import glob
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evband.errors import SettingsError

OUTPUTS = ("output", "json", "report", "plot", "write_map")
BOTH = ("state",)  # read and kept up to date


def spares_inputs(command: Callable[..., None]) -> Callable[..., None]:
    """The command, which refuses an output that is one of its inputs."""

    @functools.wraps(command)
    def run(**given: Any) -> None:
        outputs = [value for name, value in given.items() if name in OUTPUTS and isinstance(value, Path)]
        written = [path for path in outputs if os.path.exists(path)]
        for name, value in given.items():
            if written and name not in (*OUTPUTS, *BOTH):
                for read in _files(value):
                    for path in written:
                        if os.path.samefile(read, path):
                            raise SettingsError(f"{path}: it is read by this command, so it is not written over; name another output.")  # fmt: skip
        command(**given)

    return run


def _files(value: Any) -> Iterator[str]:
    """The existing files that an argument names: a path, a pattern or a list of them."""
    if isinstance(value, list):
        for one in value:
            yield from _files(one)
    elif isinstance(value, Path | str) and value and "\0" not in str(value):
        name = str(value)
        yield from (n for n in ([name] if os.path.exists(name) else glob.glob(name, recursive=True)) if os.path.isfile(n))  # fmt: skip
