"""Tables written to disk: Parquet or CSV, by the name's ending."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from evband.errors import SettingsError
from evband.files import whole_file
from evband.trips import Trips


def check_table_name(path: str | Path) -> None:
    """An error unless the name says what to write: asked before long work begins."""
    if Path(path).suffix not in (".parquet", ".csv"):
        raise SettingsError(f"{path}: the name must end in .parquet or .csv; that decides what is written.")


def write_table(frame: pl.DataFrame, path: str | Path) -> None:
    """A table as Parquet or CSV, by the name's ending."""
    check_table_name(path)
    path = Path(path)
    with whole_file(path) as temporary:
        frame.write_parquet(temporary) if path.suffix == ".parquet" else frame.write_csv(temporary)


def write_trips(trips: Trips, path: str | Path) -> None:
    """Trips as a tidy table; reading it gives the same trips."""
    write_table(trips.to_polars(), path)
