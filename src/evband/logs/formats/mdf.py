"""MF4 (ASAM MDF) measurements; a bus log's frames are decoded with the user's DBC. Needs the extra `[mdf]`.

Signals are found by the alias table (`VehicleSpeed`, `BMS_PackVoltage`), or by the user's map where there is one. asammdf's compiled code
crashes on some damaged files, so it works in a process of its own.
"""

from __future__ import annotations

import gc
import io
import logging
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from evband.channels import CHANNELS
from evband.errors import EvbandError, LogError, needs
from evband.files import size
from evband.logs import border
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims
from evband.logs.formats.apart import read_apart
from evband.logs.formats.mapped import parse_map
from evband.logs.formats.naming import trip_id
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "MF4"
MOST_DBC = 16 << 20  # bytes
_DEFLATED = (1, 2)  # asammdf's kinds of blocks: plain, and transposed before
_PIECE = 1 << 24
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def detect(head: bytes) -> bool:
    """The magic of MDF 3 and 4 files, finished or not."""
    return head.startswith(border.MDF)


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """One drive per file."""
    return read_apart(__name__, path, data, options)


def parse(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """What `read` gives, in the process that asks."""
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
        raise LogError(f"{path}: {needs('asammdf', 'reading MF4')}") from None
    if options.dbc is not None and not options.dbc.is_file():
        raise LogError(f"{options.dbc}: there is no such DBC file; check the path.")
    if options.dbc is not None and options.dbc.stat().st_size > MOST_DBC:
        raise LogError(f"{options.dbc}: the DBC has more than {size(MOST_DBC)}, the most that is read; cut it down.")
    logging.getLogger("asammdf").setLevel(logging.CRITICAL)  # it writes to standard error what is raised here
    reason = ""
    with _silent_finalisers():
        try:
            file = MDF(io.BytesIO(data))
            _check(path, data, file)
            return file if options.dbc is None else file.extract_bus_logging({"CAN": [(str(options.dbc), 0)]})
        except EvbandError:
            raise
        except Exception as problem:  # asammdf raises whatever the damaged bytes lead to
            reason = re.sub(r"'?<_io[^>]*>'?", "it", str(problem).strip()) or type(problem).__name__
        gc.collect()
    what = " with that DBC" if options.dbc else ""
    raise LogError(f"{path}: the MF4 file cannot be read{what} ({reason}); check that it is whole.")


def _check(path: Path, data: bytes, file: Any) -> None:
    """An error for a file that promises more than is read, unpacks to more than it states, or has values outside its records.

    asammdf makes room for whatever a block states, and its compiled code reads wherever a channel says that it lies.
    """
    left = border.MOST_BYTES
    for group in file.groups:
        content = group.channel_group
        record = int(content.samples_byte_nr) + int(getattr(content, "invalidation_bytes_nr", 0))
        left -= record * int(content.cycles_nr)
        if left >= 0 and hasattr(group, "get_data_blocks"):
            packed = [block for block in group.get_data_blocks() if block.block_type in _DEFLATED]
            fine = all(_unpacks_to(data, b.address, b.compressed_size, b.original_size) for b in packed)
            left = min(left, border.MOST_BYTES - sum(int(b.original_size) for b in packed)) if fine else -1
        if left < 0:
            most = size(border.MOST_BYTES)
            raise LogError(
                f"{path}: it states more than {most} of records, or unpacks to more than it states; split it."
            )
        for channel in group.channels:
            if _end(channel) > record:
                raise LogError(f"{path}: {channel.name!r} lies outside of its records; check that the file is whole.")


def _end(channel: Any) -> int:
    """The byte of a record after a channel's value."""
    if hasattr(channel, "byte_offset"):
        bits, start = int(channel.bit_offset) + int(channel.bit_count), int(channel.byte_offset)
    else:
        bits, start = int(channel.start_offset) + int(channel.bit_count), int(channel.additional_byte_offset)
    return start + -(-bits // 8) if bits else 0


def _unpacks_to(data: bytes, address: int, packed: int, most: int) -> bool:
    """Whether a deflated block gives no more bytes than it states."""
    unpacker, rest, count = zlib.decompressobj(), data[address : address + packed], 0
    while rest and not unpacker.eof and count <= most:
        count += len(unpacker.decompress(rest, _PIECE))
        rest = unpacker.unconsumed_tail
    return count <= most


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
                unit = getattr(channel, "unit", "") or getattr(channel.conversion, "unit", "")  # there in version 3
                yield str(channel.name), str(unit or ""), group, index


def _claims(signals: dict[str, tuple[str, str, int, int]], aliases: dict[str, alias_table.Alias]) -> list[claims.Claim]:
    columns = [(key, _CAMEL.sub(" ", name.split(".")[-1]), unit) for key, (name, unit, _, _) in signals.items()]
    return claims.find(columns, aliases)


def _series(file: Any, name: str, unit: str, group: int, index: int) -> Series:
    signal = file.get(group=group, index=index)
    try:
        values = np.asarray(signal.samples, dtype=np.float64)
    except (TypeError, ValueError):  # texts and structures are not measurements
        return np.empty(0), np.empty(0)
    if values.ndim != 1:
        return np.empty(0), np.empty(0)
    return claims.series(np.asarray(signal.timestamps, dtype=np.float64), values)


def _mapped(path: Path, file: Any, signals: dict[str, tuple[str, str, int, int]], options: ReadOptions) -> Readings:
    by_name = {name: (name, unit, group, index) for name, unit, group, index in signals.values()}
    series: dict[str, Series] = {}
    for name, column in parse_map(options.map or {}):
        if CHANNELS[column.channel].kind in ("time", "id"):
            continue
        if name not in by_name:
            raise LogError(f"{path}: the map names a signal {name!r} that is not in it; correct the map.")
        time, value = _series(file, *by_name[name])
        series[column.channel] = (time, column.values(value))
    if "speed_kmh" not in series or series["speed_kmh"][1].size == 0:
        raise LogError(f"{path}: the map names no signal with values for speed_kmh; add one.")
    return Readings(trip_id(path), series, NAME)
