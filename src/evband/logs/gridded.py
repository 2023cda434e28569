"""Tables that already are on the grid: the same limits as any log, and what a table of somebody else's lacks.

Nothing is put on the grid anew. A value that cannot be becomes unknown, a row without a speed is left out and a segment begins
after it, and acceleration, where there is none, is the change of speed since the row before (0 where a segment begins), as
`evband.trips.grid` has it for readings that fall on the grid. Acceleration that is not the change of the speeds at the edges was
measured, where the table does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.channels import DERIVED_MS2, EDGES, ON_GRID, SENSED
from evband.errors import LogError
from evband.logs.cleaning import outside_limits
from evband.logs.suspicion import suspicions
from evband.trips.quality import Cleaning, Finding
from evband.trips.readings import Readings, Series, not_empty


def limited(series: Mapping[str, Series], options: Cleaning) -> tuple[dict[str, Series], list[Finding]]:
    """The series without values outside their channels' limits, and what was found."""
    found: list[Finding] = []
    kept = not_empty({n: s if n in ON_GRID else outside_limits(n, s, options, found) for n, s in series.items()})
    return kept, found + suspicions(kept, found)


def with_segments(table: pl.DataFrame, readings: Readings, where: str) -> pl.DataFrame:
    """The rows that have a speed, with their segments and an acceleration."""
    assert readings.segment is not None
    assert readings.hz is not None
    time, numbers = readings.segment
    known = table["speed_kmh"].is_not_null().to_numpy()
    if not known.any():
        raise LogError(f"{where}: no row has a speed that can be; correct speed_kmh or set its --limit.")
    table = table.filter(pl.Series(known))
    rows = np.searchsorted(time, table["time_s"].to_numpy())
    segment = numbers[rows]
    if len(rows) < len(time):
        segment = np.concatenate([[0], np.cumsum((np.diff(rows) > 1) | (np.diff(segment) != 0))]).astype(np.int32)
    table = table.with_columns(segment=pl.Series(segment, dtype=pl.Int32))
    if "acceleration_ms2" in table.columns:
        return _with_sensed(table, readings.hz)
    change = _change(table["speed_kmh"].to_numpy(), segment, readings.hz)
    place = table.columns.index("speed_kmh") + 1
    return table.insert_column(place, pl.Series("acceleration_ms2", change)).drop(SENSED, strict=False)


def _with_sensed(table: pl.DataFrame, hz: float) -> pl.DataFrame:
    """Where acceleration was measured, in a table that does not say."""
    if SENSED in table.columns or not {*EDGES} <= {*table.columns}:
        return table
    acceleration, start, end = (table[name].to_numpy() for name in ("acceleration_ms2", *EDGES))
    sensed = np.abs(acceleration - (end - start) / 3.6 * hz) > DERIVED_MS2  # False where either is unknown
    return table.with_columns(pl.Series(SENSED, sensed, dtype=pl.Float64))


def _change(speed: NDArray[np.float64], segment: NDArray[np.int32], hz: float) -> NDArray[np.float64]:
    """The change of speed since the row before in m/s2; 0 in the first row of a segment."""
    begins = np.append(True, np.diff(segment) != 0)
    return np.where(begins, 0.0, np.diff(speed, prepend=speed[0]) / 3.6 * hz)
