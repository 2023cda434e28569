"""Chassis-dynamometer tables with the DY_* names: Speed, Acceleration, DY_flt_force, DY_Roadld, DY_Parasitic, DY_DriveRef.

Units may stand in brackets, after an underscore (`Speed_mph`), or in a row of their own under the header; without any they
are ours (km/h, m/s2, N, kW), and the notes say so.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evband.channels import from_unit
from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims, clock, columns, text
from evband.logs.formats.naming import trip_id
from evband.logs.formats.units import is_unit, unit_for, units_row
from evband.trips.readings import Readings, ReadOptions

NAME = "dynamometer"
_NAMES = {
    "force_n": ["DY_flt_force", "DY_force", "DY_fltforce"],
    "road_load_n": ["DY_Roadld", "DY_RoadLoad", "DY_Road_load"],
    "parasitic_n": ["DY_Parasitic", "DY_Parasitics"],
    "drive_ref_kmh": ["DY_DriveRef", "DY_Drive_Ref", "Drive reference"],
    "speed_kmh": ["Speed", "DY_Speed", "DY_flt_speed", "Dyno speed"],
    "acceleration_ms2": ["Acceleration", "DY_Acceleration", "DY_Accel", "Accel"],
    "grade_pct": ["Grade", "DY_Grade"],
}
_TIMES = ("time", "dy time", "timestamp", "elapsed time", "test time", "time stamp", "t")


def detect(head: bytes) -> bool:
    """A DY_ name in one of the first lines."""
    return _header_row(head) is not None


def _header_row(head: bytes) -> int | None:
    for row, line in enumerate(text.lines(head, 30)):
        if any(cell.upper().startswith("DY_") for sign in text.DELIMITERS for cell in text.cells(line, sign)):
            return row
    return None


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One test per file."""
    table = text.table(path, data, row=_header_row(data[: border.HEAD]))
    split = [_split(name) for name in table.header]
    frame, first_line = table.frame, table.first_line
    units = units_row([str(cell or "") for cell in frame.row(0)[: len(split)]])
    if units is not None:
        split = [(name, unit or below) for (name, unit), below in zip(split, units, strict=True)]
        frame, first_line = frame[1:], first_line + 1
        if frame.height == 0:
            raise LogError(f"{path}: it has a header but no rows; export the test again.")
    table = text.Table(frame, table.header, first_line)
    time, notes = _time(path, table, split)
    aliases = alias_table.table({**_NAMES, **options.aliases})
    found = claims.find([(str(i), name, unit or _ours(name)) for i, (name, unit) in enumerate(split) if name], aliases)
    readings = {claim.column: claims.series(time, columns.numbers(frame, claim.column)) for claim in found}
    labels = [name for name in table.header if name]
    series, chosen = claims.settle(path, found, readings, aliases, app_power=False, columns=labels)
    bare = [split[int(claim.column)][0] for claim in found if not split[int(claim.column)][1]]
    if bare:
        notes.append(f"no unit is given for {', '.join(dict.fromkeys(bare))}: taken as km/h, m/s2, N, kW, V, A")
    return [Readings(trip_id(path), series, NAME, (*chosen, *notes))]


def _split(header: str) -> tuple[str, str]:
    name, unit = claims.split_unit(header)
    stem, _, tail = name.rpartition("_")
    if not unit and stem and is_unit(tail) and tail.casefold() not in ("g", "f", "c", "k", "m", "s", "h"):
        return stem, tail
    return name, unit


def _ours(name: str) -> str:
    """Speeds without a unit are km/h here; of the rest the channel's own unit is the default anyway."""
    return "km/h" if alias_table.plain(name) in {alias_table.plain(n) for n in _NAMES["speed_kmh"]} else ""


def _time(path: Path, table: text.Table, split: list[tuple[str, str]]) -> tuple[NDArray[np.float64], list[str]]:
    names = [alias_table.plain(name) for name, _ in split]
    column = next((names.index(name) for name in _TIMES if name in names), None)
    if column is None:
        raise LogError(
            f"{path}: there is no time among its columns {', '.join(map(repr, table.header[:12]))}; "
            "name it in a --map file as time_s."
        )
    seconds = columns.numbers(table.frame, column)
    unit = unit_for("time_s", split[column][1]) if split[column][1] else "s"
    if not np.isfinite(seconds).any():
        seconds = clock.since_first_day(table.frame[str(column)])
    elif unit is not None:
        seconds = from_unit("time_s", seconds, unit)
    return clock.unroll(path, seconds, table.first_line)
