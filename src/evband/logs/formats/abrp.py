"""ABRP telemetry (Iternio), one JSON object per line: `utc speed power current voltage soc ext_temp elevation is_charging ...`.

Power and current are positive when they leave the battery, as ours. Our own channel names are taken too, and objects
wrapped as `{"tlm": {...}}` or listed in one JSON array, or the same keys as the header of a CSV.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evband.channels import COORDINATES, VALUES
from evband.errors import LogError
from evband.logs import telemetry
from evband.logs.formats import claims, clock, columns, text
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "ABRP telemetry"
_PLACES = {
    "lat": "latitude_deg",
    "lon": "longitude_deg",
    **{name: name for name in COORDINATES},
}  # of logs, not of streams
_SIGN = re.compile(r"\S")


def detect(head: bytes) -> bool:
    """Text that begins with a JSON object in which a time is named, or a header of its keys."""
    start = text.decode(head[:4096]).lstrip()
    if start[:1] not in ("{", "["):
        return columns.has(head, "utc", "speed", "soc")
    return any(f'"{key}"' in start for key in telemetry.TIMES)


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive per file."""
    keys = {
        **telemetry.KEYS,
        **_PLACES,
        **{name: channel for channel, names in options.aliases.items() for name in names},
    }
    if text.decode(data[:64]).lstrip()[:1] not in ("{", "["):
        return _from_csv(path, data, keys)
    times = array("d")
    values: dict[str, tuple[array[float], array[float]]] = {}
    seen: dict[str, None] = {}
    charging = 0
    for number, sample in samples(path, data):
        when = telemetry.time_of(sample)
        if when is None:
            raise LogError(f"{path}: line {number} has no time; every object needs utc (seconds).")
        times.append(when)
        charging += sample.get("is_charging") in (True, 1)
        for key, raw in sample.items():
            seen[key] = None
            value = telemetry.number(raw) if key in keys else None
            if value is not None:
                instants, readings = values.setdefault(keys[key], (array("d"), array("d")))
                instants.append(when)
                readings.append(value)
    if not times:
        raise LogError(f"{path}: it holds no object with a time; record or export the drive again.")
    _, notes = clock.unroll(path, np.array(times), 1, daily=False)
    series: dict[str, Series] = {}
    for channel in (*VALUES, *COORDINATES):
        if channel in values:
            series[channel] = claims.series(*map(np.array, values[channel]))
    if "speed_kmh" not in series:
        raise LogError(
            f"{path}: all values of speed are missing (keys found: {', '.join(seen)}); "
            "the key must be speed, in km/h, or be named with --alias speed_kmh=KEY."
        )
    if charging:
        notes.append(f"{charging} of {len(times)} samples were taken while charging")
    return [Readings(trip_id(path), series, NAME, tuple(notes))]


def _from_csv(path: Path, data: bytes, keys: dict[str, str]) -> list[Readings]:
    table = text.table(path, data)
    when = columns.seconds(table.frame[str(columns.names(table.header)["utc"])])
    time, notes = clock.unroll(path, when, table.first_line, daily=False)
    return columns.drives(path, NAME, columns.series(table.frame, table.header, keys, time), (*notes, *table.notes))


def samples(path: Path, data: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    """Objects one by one: as Python's objects, all of a file at once would take ten times its size."""
    source = text.decode(data)
    if source.lstrip().startswith("["):
        yield from ((i, _unwrap(path, i, item)) for i, item in enumerate(_listed(path, source), start=1))
        return
    at, number, end = 0, 0, len(source.rstrip())
    while at < end:
        stop = source.find("\n", at)
        line, at, number = source[at : stop if stop >= 0 else end], stop + 1 if stop >= 0 else end, number + 1
        if line.strip():
            try:
                yield number, _unwrap(path, number, _parse(path, number, line))
            except LogError:
                if at < end:
                    raise  # a last line cut short is how logs end


def _listed(path: Path, source: str) -> Iterator[Any]:
    """The items of one JSON list."""
    decoder, at, number = json.JSONDecoder(), source.index("[") + 1, 1
    at = _skip(source, at)
    while source[at : at + 1] != "]" or number > 1:
        try:
            item, at = decoder.raw_decode(source, at)
        except (ValueError, RecursionError) as problem:
            raise _broken(path, number, problem) from None
        yield item
        at, number = _skip(source, at), number + 1
        if source[at : at + 1] == "]":
            break
        if source[at : at + 1] != ",":
            raise _broken(path, number, json.JSONDecodeError("Expecting ',' delimiter", "", 0))
        at = _skip(source, at + 1)
    if source[at + 1 :].strip():
        raise _broken(path, number, json.JSONDecodeError("Extra data", "", 0))


def _skip(source: str, at: int) -> int:
    """Where the next sign is that is not white space."""
    found = _SIGN.search(source, at)
    return found.start() if found else len(source)


def _parse(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as problem:
        raise _broken(path, number, problem) from None


def _broken(path: Path, number: int, problem: Exception) -> LogError:
    """Also for a number of 5000 digits, a million brackets."""
    reason = problem.msg if isinstance(problem, json.JSONDecodeError) else "too deep or too long"
    return LogError(f"{path}: line {number} is not JSON ({reason}); repair or remove that line.")


def _unwrap(path: Path, number: int, item: Any) -> dict[str, Any]:
    sample = telemetry.unwrapped(item)
    if sample is None:
        raise LogError(f"{path}: line {number} is not a JSON object; each line must be one telemetry sample.")
    return sample
