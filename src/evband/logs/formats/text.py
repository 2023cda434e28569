"""Text tables as apps write them: encodings, delimiters, headers, decimal commas."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evband.errors import LogError

DELIMITERS = ",;\t"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def decode(head: bytes) -> str:
    """Text of a head: UTF-8 with or without a BOM, UTF-16 by its BOM, else Windows-1252 (a superset of latin-1's print)."""
    if head[:2] in _UTF16:
        return head[: len(head) // 2 * 2].decode("utf-16", errors="replace")
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        if problem.start >= len(head) - 3:  # the cut went through a character
            return head[: problem.start].decode("utf-8-sig")
    return head.decode("cp1252", errors="replace")


def _to_utf8(data: bytes) -> bytes:
    return (data.decode("utf-16", "replace") if data[:2] in _UTF16 else data.decode("cp1252", "replace")).encode()


def lines(head: bytes, count: int = 40) -> list[str]:
    """The first lines that are not blank."""
    found = [line for line in decode(head).splitlines() if line.strip()]
    return found[:count]


def cells(line: str, delimiter: str) -> list[str]:
    """One line's cells, unquoted and stripped; the empty ones that trailing delimiters make are kept."""
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]


def header(head: bytes, row: int = 0) -> tuple[list[str], str]:
    """The header's cells and the delimiter that splits it into most."""
    found = lines(head, row + 1)
    line = found[row] if len(found) > row else ""
    delimiter = max(DELIMITERS, key=lambda sign: len(cells(line, sign)))
    return cells(line, delimiter), delimiter


@dataclass(frozen=True)
class Table:
    """A table of text cells; `first_line` is the file's line number of row 0."""

    frame: pl.DataFrame  # columns "0", "1", ... by position, all strings
    header: list[str]
    first_line: int


def table(path: Path, data: bytes, *, skip: int = 0, keep: list[int] | None = None) -> Table:
    """Parse the text table whose header is the line `skip`; only the columns `keep`, if given."""
    if data[:2] in _UTF16:
        data = _to_utf8(data)
    names, delimiter = header(data[: 1 << 16], row=skip)
    _check_width(path, data[: 1 << 16], names, delimiter, skip)
    try:
        frame = _parse(data, delimiter, skip + 1, len(names) + 1, keep)
    except pl.exceptions.PolarsError as problem:
        if "utf-8" not in str(problem):
            raise LogError(
                f"{path}: it is no table separated by {delimiter!r} ({str(problem).splitlines()[0]}); "
                "export it again or repair that line."
            ) from None
        frame = _parse(_to_utf8(data), delimiter, skip + 1, len(names) + 1, keep)
    if frame.height == 0:
        raise LogError(f"{path}: it has a header but no rows; record or export the drive again.")
    return Table(frame, names, skip + 2)


def _parse(data: bytes, delimiter: str, skip: int, width: int, keep: list[int] | None) -> pl.DataFrame:
    """All cells as text. Width is one more than the header's: rows may end in a delimiter that the header lacks."""
    schema = {str(i): pl.String for i in range(width)}
    try:
        return pl.read_csv(
            data,
            separator=delimiter,
            has_header=False,
            skip_rows=skip,
            schema=schema,
            columns=keep,
            truncate_ragged_lines=True,
        )
    except pl.exceptions.NoDataError:
        return pl.DataFrame(schema=schema)


def _check_width(path: Path, head: bytes, names: list[str], delimiter: str, skip: int) -> None:
    """Rows wider than the header come of a wrong delimiter or of unquoted decimal commas; say so with the line."""
    for number, line in enumerate(lines(head)[skip + 1 : -1], start=skip + 2):
        found = cells(line, delimiter)
        while found and not found[-1]:
            found.pop()
        if len(found) > len(names):
            raise LogError(
                f"{path}: line {number} has {len(found)} cells but the header {len(names)}, so {delimiter!r} is the wrong "
                "delimiter or decimal commas are not quoted; export it with ';' or a decimal point."
            )


def numbers(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """The columns as Float64; decimal commas are understood, and what is no number is missing."""
    result = frame.select(pl.col(name).cast(pl.Float64, strict=False) for name in columns)
    odd = [
        name
        for name in columns
        if result[name].null_count() > frame[name].null_count() and frame[name].str.contains(",", literal=True).any()
    ]
    return result.with_columns(_comma(frame[name]) for name in odd)


def _comma(column: pl.Series) -> pl.Series:
    """1.234,5 and 1 234,5 and 3,681 -> float; with both marks the last is the decimal one."""
    text = column.str.strip_chars().str.replace_all(r"[\s\u00a0\u202f']", "")
    frame = pl.DataFrame({"text": text})
    both_comma_last = pl.col("text").str.contains(r"\..*,")
    both_point_last = pl.col("text").str.contains(r",.*\.")
    plain = (
        pl.when(both_comma_last)
        .then(pl.col("text").str.replace_all(".", "", literal=True).str.replace(",", ".", literal=True))
        .when(both_point_last)
        .then(pl.col("text").str.replace_all(",", "", literal=True))
        .otherwise(pl.col("text").str.replace(",", ".", literal=True))
    )
    return frame.select(plain.cast(pl.Float64, strict=False)).to_series().alias(column.name)
