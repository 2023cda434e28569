"""MF4 (ASAM MDF) measurements; a bus log's frames are decoded with the user's DBC. Needs the extra `[mdf]`.

Signals are found by the alias table (`VehicleSpeed`, `BMS_PackVoltage`), or by the user's map where there is one.
"""

from __future__ import annotations

import gc
import io
import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from evband.channels import CHANNELS
from evband.errors import EvbandError, LogError
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims
from evband.logs.formats.mapped import parse_map
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "MF4"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def detect(head: bytes) -> bool:
    """The magic of MDF 3 and 4 files, finished or not."""
    return head.startswith((b"MDF     ", b"UnFinMF "))


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive per file."""
    with _open(path, data, options) as file, _damage(path):
        signals = {f"{name}\x00{group}": (name, unit, group, index) for name, unit, group, index in _signals(file)}
        if options.map is not None:
            return [_mapped(path, file, signals, options)]
        aliases = alias_table.table(options.aliases)
        found = _claims(signals, aliases)
        readings = {claim.column: _series(file, *signals[claim.column]) for claim in found}
        labels = [f"{name} ({unit})" if unit else name for name, unit, _, _ in signals.values()]
        if not found and options.dbc is None and any(name.startswith("CAN_DataFrame") for name in labels):
            raise LogError(f"{path}: it holds raw CAN frames; give the DBC that describes them with --dbc.")
        series, notes = claims.settle(path, found, readings, aliases, app_power=False, columns=labels)
        return [Readings(trip_id(path), series, NAME, tuple(notes))]


def _open(path: Path, data: bytes, options: ReadOptions) -> Any:
    try:
        from asammdf import MDF
    except ImportError:
        raise LogError(f"{path}: reading MF4 needs asammdf; install it with pip install 'evband[mdf]'.") from None
    if options.dbc is not None and not options.dbc.is_file():
        raise LogError(f"{options.dbc}: there is no such DBC file; check the path.")
    logging.getLogger("asammdf").setLevel(logging.CRITICAL)  # it writes to standard error what is raised here
    reason = ""
    with _silent_finalisers():
        try:
            file = MDF(io.BytesIO(data))
            return file if options.dbc is None else file.extract_bus_logging({"CAN": [(str(options.dbc), 0)]})
        except Exception as problem:  # asammdf raises whatever the damaged bytes lead to
            reason = re.sub(r"'?<_io[^>]*>'?", "it", str(problem).strip()) or type(problem).__name__
        gc.collect()
    what = " with that DBC" if options.dbc else ""
    raise LogError(f"{path}: the MF4 file cannot be read{what} ({reason}); check that it is whole.")


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """asammdf raises whatever the damaged bytes lead to."""
    try:
        yield
    except EvbandError:
        raise
    except Exception as problem:
        reason = str(problem).strip() or type(problem).__name__
        raise LogError(f"{path}: the MF4 file cannot be read ({reason[:150]}); check that it is whole.") from None


@contextmanager
def _silent_finalisers() -> Iterator[None]:
    """A half-opened MDF complains on stderr when it is collected; the error raised here already says it."""
    hook = sys.unraisablehook
    sys.unraisablehook = lambda _: None
    try:
        yield
    finally:
        sys.unraisablehook = hook


def _signals(file: Any) -> Iterator[tuple[str, str, int, int]]:
    """(name, unit, group, index) of every channel that holds measurements."""
    for group, content in enumerate(file.groups):
        master = file.masters_db.get(group)
        for index, channel in enumerate(content.channels):
            if index != master:
                yield str(channel.name), str(getattr(channel, "unit", "") or ""), group, index


def _claims(signals: dict[str, tuple[str, str, int, int]], aliases: dict[str, alias_table.Alias]) -> list[claims.Claim]:
    columns = [(key, _CAMEL.sub(" ", name.split(".")[-1]), unit) for key, (name, unit, _, _) in signals.items()]
    return claims.find(columns, aliases)


def _series(file: Any, name: str, unit: str, group: int, index: int) -> Series:
    signal = file.get(group=group, index=index)
    try:
        values = np.asarray(signal.samples, dtype=np.float64)
    except (TypeError, ValueError):  # texts and structures are no measurements
        return np.empty(0), np.empty(0)
    if values.ndim != 1:
        return np.empty(0), np.empty(0)
    return claims.series(np.asarray(signal.timestamps, dtype=np.float64), values)


def _mapped(path: Path, file: Any, signals: dict[str, tuple[str, str, int, int]], options: ReadOptions) -> Readings:
    by_name = {name: (name, unit, group, index) for name, unit, group, index in signals.values()}
    series: dict[str, Series] = {}
    for column in parse_map(options.map or {}):
        if CHANNELS[column.channel].kind in ("time", "id"):
            continue
        if column.name not in by_name:
            raise LogError(f"{path}: the map names a signal {column.name!r} that is not in it; correct the map.")
        time, value = _series(file, *by_name[column.name])
        series[column.channel] = (time, column.values(value))
    if "speed_kmh" not in series or series["speed_kmh"][1].size == 0:
        raise LogError(f"{path}: the map names no signal with values for speed_kmh; add one.")
    return Readings(trip_id(path), series, NAME)
