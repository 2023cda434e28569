"""Car Scanner's wide export: `time,"Vehicle speed (km/h)",...,`, one reading per row and all other cells empty.

`time` is the clock (HH:MM:SS.mmm); the date is only in the file's name. The columns are in the phone's language and units;
`Latitude,Longtitude` may follow (the misspelling is the app's).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims, clock, columns, text
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions

NAME = "Car Scanner wide"
_PLACES = {"latitude", "longtitude", "longitude"}


def detect(head: bytes) -> bool:
    """A header that begins with `time` and whose other names mostly end in a unit in brackets."""
    names = [name for name in text.header(head)[0] if name]
    others = [name for name in names[1:] if name.casefold() not in _PLACES]
    if not others or names[0].casefold() not in ("time", "zeit", "temps", "hora", "czas", "čas", "tijd", "ora"):
        return False
    return sum(name.endswith(")") for name in others) * 2 >= len(others)


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive per file."""
    names = text.header(data[: border.HEAD])[0]
    when = next(i for i, name in enumerate(names) if name)  # a frame's index, which has no name, may stand before it
    aliases = alias_table.table(options.aliases)
    named = [(str(i), *claims.split_unit(name)) for i, name in enumerate(names) if i > when and name]
    found = claims.find(named, aliases)
    keep = sorted({when, *(int(claim.column) for claim in found)})
    table = text.table(path, data, keep=keep)
    time, notes = _time(path, table, when, found)
    values = text.numbers(table.frame, [str(i) for i in keep if i != when])
    raw = {column.name: claims.series(time, column.fill_null(np.nan).to_numpy()) for column in values}
    readings, repeats = claims.without_repeats(raw)
    labels = [name for name in names[when + 1 :] if name]
    series, chosen = claims.settle(path, found, readings, aliases, app_power=True, columns=labels)
    name = f"{NAME} with GPS" if any(name.casefold() == "latitude" for name in names) else NAME
    return [Readings(trip_id(path), series, name, (*chosen, *notes, *repeats, *table.notes))]


def _time(
    path: Path, table: text.Table, column: int, found: Sequence[claims.Claim]
) -> tuple[NDArray[np.float64], list[str]]:
    cells = table.frame[str(column)]
    seconds = clock.since_first_day(cells)
    notes: list[str] = []
    if not np.isfinite(seconds).any():
        seconds, notes = columns.bare_seconds(table.frame, column, found)
    if not np.isfinite(seconds).any():
        raise LogError(
            f"{path}: line {table.first_line} has the time {cells[0]!r}, which is not HH:MM:SS; "
            "export it again or describe it in a --map file."
        )
    time, more = clock.unroll(path, seconds, table.first_line)
    return time, [*notes, *more]
