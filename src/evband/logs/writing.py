"""Tables written to disk: Parquet, CSV or JSON lines, by the name's ending; JSON lines to standard output."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl

from evband.errors import SettingsError
from evband.files import STDOUT, whole_file
from evband.trips import Trips

_ENDINGS = (".parquet", ".csv", ".jsonl")


def check_table_name(path: str | Path) -> None:
    """An error unless the name says what to write: asked before long work begins."""
    if Path(path) != STDOUT and Path(path).suffix not in _ENDINGS:
        raise SettingsError(
            f"{path}: the name must end in .parquet, .csv or .jsonl, or be - for JSON lines on standard output; "
            "that decides what is written."
        )


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """A table as Parquet, CSV or JSON lines, by the name's ending; `-` is JSON lines on standard output."""
    check_table_name(path)
    path = Path(path)
    if path == STDOUT:
        sys.stdout.write(frame.fill_nan(None).write_ndjson())
        return
    with whole_file(path) as temporary:
        if path.suffix == ".parquet":
            frame.write_parquet(temporary)
        elif path.suffix == ".csv":
            frame.write_csv(temporary)
        else:
            frame.fill_nan(None).write_ndjson(temporary)


def write_trips(trips: Trips, path: str | Path) -> None:
    """Trips as a tidy table; reading it gives the same trips."""
    write_table(trips.to_polars(), path)
