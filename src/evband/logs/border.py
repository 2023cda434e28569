"""The border of logs: every file passes here, and what is too large, too wide or too strange does not get further.

Sizes are bounded before anything is unpacked or parsed (docs/reference/limits.md states what that bounds in memory and time); whatever
a parser makes of damaged bytes, a panic of compiled code included, comes out as a LogError; and the series of a drive leave
with times that increase, values that are finite, and nothing else.
"""

from __future__ import annotations

import gzip
import io
import os
import threading
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray
from polars.exceptions import PanicException, PolarsError

from evband.errors import EvbandError, LogError, UnforeseenError
from evband.files import read_bounded, size
from evband.logs.pages import checked_rows
from evband.trips.readings import Series, not_empty

HEAD = 1 << 16  # bytes by which a format is recognised; a header line ends in them
MOST_BYTES = 512 << 20  # of a log, as it is and unpacked
MOST_CELLS = 1 << 27  # of a table: 1 GiB as numbers
MOST_COLUMNS = 4096
MOST_TRIPS = 100_000  # in one file
LONGEST_ID = 200  # characters
LATEST_S = 1e12  # either side of zero; a Unix time is 2e9
SHORTEST_STEP_S = 1e-6  # two readings closer than that are one: a clock of seconds since 1970 resolves no less

PARQUET = b"PAR1"  # how such a file begins
MDF = (b"MDF     ", b"UnFinMF ")  # of versions 3 and 4, finished or not
ZIP = b"PK\x03\x04"
_GZIP = b"\x1f\x8b"
_STDERR = threading.RLock()
_DAMAGE = (PolarsError, PanicException, LookupError, ValueError, TypeError, ArithmeticError, AttributeError, StopIteration,
           RecursionError, NotImplementedError, MemoryError, OSError, EOFError, zlib.error, zipfile.BadZipFile)  # fmt: skip


def log_bytes(path: Path) -> bytes:
    """A log's bytes, unpacked if they are gzip, none of it larger than `MOST_BYTES`."""
    return _plain(path, read_bounded(path, MOST_BYTES, LogError, "log"))


def _plain(path: Path, data: bytes) -> bytes:
    """Unpacked, and lines that end in a carriage return alone, as Excel for Macintosh has them, with line feeds."""
    if data.startswith(_GZIP):
        data = _unpacked(path, data)
    if not data[:HEAD].strip() and not data.strip():
        raise LogError(f"{path}: the file is empty; there is no trip in it.")
    head = data[:HEAD]
    return data.replace(b"\r", b"\n") if b"\r" in head and b"\n" not in head and b"\0" not in head else data


def zipped(path: Path, data: bytes) -> list[tuple[Path, bytes]]:
    """The files in a zip archive, each as `archive.zip/name`; what they would unpack to is added up first."""
    with parsing(path, "zip archive"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        files = [item for item in archive.infolist() if not item.is_dir() and not item.filename.startswith("__MACOSX/")]
        if sum(item.file_size for item in files) > MOST_BYTES:
            raise LogError(f"{path}: it unpacks to more than {size(MOST_BYTES)}, the most that is read; split it.")
        if not files or any(item.flag_bits & 1 for item in files):
            raise LogError(
                f"{path}: this zip archive is {'encrypted' if files else 'empty'}; unpack it or make it anew."
            )
        found = [(path / Path(item.filename).name, archive.read(item)) for item in files]
    return [(name, _plain(name, inner)) for name, inner in found]


def _unpacked(path: Path, data: bytes) -> bytes:
    """All members of a gzip file; a small file that unpacks to gigabytes is stopped at the limit."""
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(MOST_BYTES + 1)
    except EOFError:
        raise LogError(f"{path}: the gzip data is cut short; fetch the file again.") from None
    except (OSError, zlib.error):
        raise LogError(f"{path}: the gzip data is damaged; fetch the file again.") from None
    if len(unpacked) > MOST_BYTES:
        raise LogError(f"{path}: it unpacks to more than {size(MOST_BYTES)}, the most that is read; split it.")
    return unpacked


def check_width(path: Path | str, columns: int) -> None:
    """An error for a table too wide to be a log."""
    if columns > MOST_COLUMNS:
        raise LogError(
            f"{path}: its header has {columns} columns, and no log has over {MOST_COLUMNS}; export fewer columns."
        )


def check_header_line(path: Path | str, head: bytes, row: int, whole: bool) -> None:
    """An error where line `row` of a text table does not end in its first 64 KiB (`whole`: there is no more than that)."""
    if not whole and head.count(b"\n", 0, HEAD) <= row:
        raise LogError(f"{path}: its header line is longer than {size(HEAD)}; export fewer columns, or check the file.")


@contextmanager
def parsing(path: Path | str, what: str = "table") -> Iterator[None]:
    """Whatever a parser raises on damaged bytes becomes a LogError with its first words."""

    def named(problem: BaseException) -> LogError:
        reason = (str(problem).strip().splitlines() or [type(problem).__name__])[0].rstrip(".")[:150]
        return LogError(f"{path}: the {what} cannot be parsed ({reason}); check that it is whole.")

    with _damage_as(named, path), warnings.catch_warnings(), _quiet_panics():
        warnings.simplefilter("ignore", UserWarning)  # polars warns of what it then raises, or reads all the same
        yield


@contextmanager
def foreseen(path: Path | str, format: str) -> Iterator[None]:
    """The last net around a reader: what it did not foresee is one sentence, and in tests a fault."""

    def named(problem: BaseException) -> LogError:
        return UnforeseenError(
            f"{path}: read as {format}, it is damaged in a way not foreseen ({type(problem).__name__}: {str(problem)[:120]}); "
            "check that it is whole, and report it if it is."
        )

    with _damage_as(named, path):
        yield


@contextmanager
def _damage_as(named: Callable[[BaseException], LogError], path: Path | str) -> Iterator[None]:
    """Errors of ours pass, memory has its own sentence, and whatever else damage raises is `named`."""
    try:
        yield
    except EvbandError:
        raise
    except MemoryError:
        raise LogError(f"{path}: there is not enough memory to read it; split it.") from None
    except _DAMAGE as problem:
        raise named(problem) from problem


def parquet(path: Path | str, data: bytes) -> pl.DataFrame:
    """A Parquet file's table. Its size is looked up first: a few kilobytes can promise billions of equal rows."""
    with parsing(path, "Parquet table"):
        rows = checked_rows(data)
        columns = len(pl.scan_parquet(data).collect_schema())
        check_width(path, columns)
        if rows * max(columns, 1) > MOST_CELLS:
            raise LogError(
                f"{path}: its table has {rows} rows of {columns} columns, more than {MOST_CELLS} cells; split it."
            )
        return pl.read_parquet(data)


@contextmanager
def _quiet_panics() -> Iterator[None]:
    """Compiled code prints its panic to file 2 before it raises it; the error already says it, so file 2 goes nowhere."""
    with _STDERR:
        kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nowhere)


def ordered(time: NDArray[np.float64], value: NDArray[np.float64]) -> Series:
    """Finite values at finite instants that increase; of several within a microsecond the last."""
    good = np.isfinite(time) & np.isfinite(value)
    if not good.all():
        time, value = time[good], value[good]
    step = np.diff(time)
    if (step < 0).any():
        order = np.argsort(time, kind="stable")
        time, value = time[order], value[order]
        step = np.diff(time)
    last = np.append(step >= SHORTEST_STEP_S, True)[: len(time)]
    return (time, value) if last.all() else (time[last], value[last])


def valid_series(where: str, series: Mapping[str, Series]) -> dict[str, Series]:
    """The series `ordered`; empty ones are left out."""
    kept = not_empty({name: ordered(*readings) for name, readings in series.items()})
    for name, (time, _) in kept.items():
        if max(abs(time[0]), abs(time[-1])) > LATEST_S:
            raise LogError(
                f"{where}: {name} has a reading at {time[-1]:g} s, which is not a plausible time; correct the times."
            )
    return kept


def valid_id(where: str, name: str) -> str:
    """A trip's id, if it is a short printable text."""
    if not name or len(name) > LONGEST_ID or not name.isprintable():
        raise LogError(f"{where}: a trip has the id {name[:50]!r}; give it 1 to {LONGEST_ID} printable characters.")
    return name
