"""One family of errors. Every message is one sentence that names the thing, what is wrong and what to do.

What a hostile file puts into a message (a name of a million letters, line breaks, terminal codes) must not leave it: every
message is one printable line of at most `LONGEST` characters, whoever raises it.
"""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any

LONGEST = 400
_END = 140  # characters kept of the end, where the message says what to do


def one_line(text: object) -> str:
    """A text as one printable line of at most `LONGEST` characters, cut in its middle.

    >>> one_line("a.csv: line 1\\nis broken"), len(one_line("x" * 10_000))
    ('a.csv: line 1 is broken', 400)
    """
    whole = str(text)
    if len(whole) > 4 * LONGEST:  # do not look at every letter of a hundred megabytes
        whole = f"{whole[: 2 * LONGEST]} {whole[-2 * LONGEST :]}"
    line = " ".join("".join(c if c.isprintable() or c.isspace() else "?" for c in whole).split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - _END - 5]} ... {line[-_END:]}"


class EvbandError(Exception):
    """Base of every error a user can cause; the command line prints it and exits with status 2.

    >>> import evband
    >>> try:
    ...     evband.read_trips("nowhere.csv")
    ... except evband.EvbandError as problem:
    ...     print(problem)
    nowhere.csv: there is no such file; check the path.
    """

    def __init__(self, message: object = "") -> None:
        super().__init__(one_line(message))


class LogError(EvbandError):
    """A log file that cannot be read as one."""


class FormatError(LogError):
    """A file that no reader knows."""


class UnforeseenError(LogError):
    """Damage that its reader has no rule for: the user gets one sentence all the same, and tests count it as a fault."""


class ChannelError(EvbandError):
    """A channel that is unknown, missing, or not allowed where it was named."""


class TripsError(EvbandError):
    """Trips that cannot be used for what was asked (too short, too few, no power)."""


class SettingsError(EvbandError):
    """A setting outside what it may be."""


class FullDiskError(SettingsError):
    """There is no room for what is to be written."""


class NotFittedError(EvbandError, ValueError, AttributeError):
    """Something that only a fitted model has was asked of one that is not; scikit-learn's has the same bases."""


class ArtifactError(EvbandError):
    """A .evband file that is corrupt, truncated, hostile or of another version."""


class VehicleError(EvbandError):
    """A data sheet that cannot be, or a vehicle that nobody knows by that name."""


class MissingPackageError(EvbandError):
    """A package that only some tasks need is not installed."""


EXTRAS = {  # package -> the extra that installs it
    "torch": "fit",
    "matplotlib": "plots",
    "plotly": "plots",
    "sklearn": "rivals",
    "optuna": "study",
    "onnx": "onnx",
    "ray": "fleet",
    "fsspec": "fleet",
    "asammdf": "mdf",
    "openpyxl": "excel",
    "tifffile": "dem",
    "fastsim": "sim",
    **dict.fromkeys(("ngboost", "catboost"), "rivals"),
    **dict.fromkeys(("starlette", "uvicorn", "websockets", "orjson", "serial"), "live"),
}


def installed(package: str) -> bool:
    """Whether it can be imported; it is not imported for this."""
    with suppress(ImportError):
        return find_spec(package) is not None
    return False


def require(package: str, task: str) -> Any:
    """The module `package`, an extra that `task` needs, or an error that says how to get it."""
    try:
        return import_module(package)
    except ImportError:
        raise missing(package, task) from None


def missing(package: str, task: str) -> MissingPackageError:
    """What to raise where `package` is not installed."""
    return MissingPackageError(needs(package, task))


def needs(package: str, task: str) -> str:
    """What to say there."""
    return f'{task} needs {package}, which is not installed; install it with: pip install "evband[{EXTRAS[package]}]".'
