"""The headers of a Parquet file's pages, looked at before polars reads them: where a page promises absurdly many values, polars asks for
as much memory and aborts the process.

The footer and the headers are structs in Thrift's compact protocol; fields are numbered as in parquet-format's `parquet.thrift`.
"""

from __future__ import annotations

from mmap import mmap
from typing import Any

MOST_VALUES = 1 << 27  # of a column in a row group
MOST_FOOTER = 16 << 20  # bytes
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 7, 8, 9, 10, 12
_INTEGERS = (4, 5, 6)
_HEADERS = (5, 7, 8)  # of a data page, a dictionary and a data page of version 2: their field 1 counts values

Bytes = bytes | mmap
Struct = dict[int, Any]  # field's number -> value


def checked_rows(data: Bytes) -> int:
    """How many rows a file has; a ValueError where its footer or a page's header is damaged or promises what cannot be."""
    try:
        return _rows(data)
    except (LookupError, TypeError, AttributeError, RecursionError) as problem:
        raise ValueError("its footer or the header of a page is damaged") from problem


def _rows(data: Bytes) -> int:
    size = int.from_bytes(data[-8:-4], "little")
    if not 0 < size <= min(MOST_FOOTER, len(data) - 12):
        raise ValueError(f"its footer is of {size} bytes")
    footer, _ = _struct(data, len(data) - 8 - size)
    groups = footer.get(4, [])
    if sum(group[3] for group in groups) != footer[3] or any(group[3] < 0 for group in groups):
        raise ValueError("its row groups do not add up to its rows")
    for group in groups:
        for chunk in group[1]:
            _check_chunk(data, chunk[3])
    return int(footer[3])


def _check_chunk(data: Bytes, column: Struct) -> None:
    """Walk the pages of a column in a row group, as many as hold its values."""
    left, size = column[5], column[7]
    at: int = column.get(11) or column[9]
    end = at + size
    if not (0 <= left <= MOST_VALUES and 0 <= at <= end <= len(data)):
        raise ValueError(f"a column of {left} values lies at bytes {at} to {end}")
    while at < end and left > 0:
        header, at = _struct(data, at)
        counts = {kind: header[kind][1] for kind in _HEADERS if kind in header}
        if header[2] < 0 or header[3] < 0 or not all(0 <= n <= (MOST_VALUES if kind == 7 else left) for kind, n in counts.items()):  # fmt: skip
            raise ValueError(f"a page promises {max(counts.values(), default=0)} values in {header[2]} bytes")
        at += header[3]
        left -= sum(n for kind, n in counts.items() if kind != 7)


def _struct(data: Bytes, at: int) -> tuple[Struct, int]:
    """The fields of the struct at `at`, and where it ends."""
    fields: Struct = {}
    number = 0
    while kind := data[at]:
        at += 1
        if kind >> 4:
            number += kind >> 4
        else:
            number, at = _integer(data, at)
        kind &= 15
        if kind in (_TRUE, _FALSE):
            fields[number] = kind == _TRUE
        else:
            fields[number], at = _value(data, at, kind)
    return fields, at + 1


def _value(data: Bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in _INTEGERS:
        return _integer(data, at)
    if kind == _BINARY:  # a name or a statistic, passed over
        length, at = _unsigned(data, at)
        return None, at + length
    if kind == _STRUCT:
        return _struct(data, at)
    if kind in (_LIST, _SET):
        return _list(data, at)
    if kind in (_TRUE, _FALSE, _BYTE):
        return data[at], at + 1
    if kind == _DOUBLE:
        return data[at + 7], at + 8  # an error where the data end
    raise ValueError(f"a field of kind {kind}")


def _list(data: Bytes, at: int) -> tuple[list[Any], int]:
    count, kind = data[at] >> 4, data[at] & 15
    at += 1
    if count == 15:
        count, at = _unsigned(data, at)
    values = []
    for _ in range(count):
        value, at = _value(data, at, kind)
        values.append(value)
    return values, at


def _unsigned(data: Bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while (byte := data[at]) >> 7:
        if shift > 63:
            raise ValueError("a number of over 64 bits")
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
    return value | byte << shift, at + 1


def _integer(data: Bytes, at: int) -> tuple[int, int]:
    """Zigzag: 0, -1, 1, -2 ..."""
    value, at = _unsigned(data, at)
    return value >> 1 ^ -(value & 1), at
