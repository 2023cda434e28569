"""Text tables as apps write them: encodings, delimiters, headers, decimal commas."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from evband.errors import LogError
from evband.logs import border

DELIMITERS = ",;\t"
_WRONG = "|"
_GROUPED = r"^[-+]?[1-9]\d{0,2}(,\d{3})+([.]\d*)?$"
_POINTS = r"^[-+]?[1-9]\d{0,2}([.]\d{3})+$"
_DECIMAL = r"^[-+]?(\d+,(\d{1,2}|\d{4,})|0,\d+)$"  # a comma that cannot group thousands
UTF16 = (b"\xff\xfe", b"\xfe\xff")


def decode(head: bytes) -> str:
    """Text of a head: UTF-8 with or without a BOM, UTF-16 by its BOM, else a code page of Windows."""
    if head[:2] in UTF16:
        return head[: len(head) // 2 * 2].decode("utf-16", errors="replace")
    try:
        return head.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        if problem.start >= len(head) - 3:  # the cut went through a character
            return head[: problem.start].decode("utf-8-sig")
    return head.decode(_code_page(head), errors="replace")


def _code_page(data: bytes) -> str:
    """Windows-1251 where letters beyond ASCII outnumber its own in the first line, as in Russian; else 1252, a superset of latin-1's print."""
    line = data[: border.HEAD].split(b"\n", 1)[0]
    return "cp1251" if sum(byte >= 0xC0 for byte in line) > sum(bytes([byte]).isalpha() for byte in line) else "cp1252"


def to_utf8(data: bytes) -> bytes:
    """UTF-16 (by its BOM) or a code page of Windows as UTF-8."""
    return data.decode("utf-16" if data[:2] in UTF16 else _code_page(data), "replace").encode()


def is_binary(head: bytes) -> bool:
    """Whether this is not text: it holds null bytes other than those of UTF-16."""
    return b"\0" in head and head[:2] not in UTF16


def lines(head: bytes, count: int = 40) -> list[str]:
    """The first lines, blank ones too."""
    return decode(head).splitlines()[:count]


def _header_row(head: bytes) -> int:
    """The first line of several cells, below titles and Excel's `sep=;`; without one the first that is not blank."""
    filled = [(row, line) for row, line in enumerate(lines(head)) if line.strip()]
    several = (row for row, line in filled if not line.startswith("sep=") and len(_cut(line)[0]) > 1)
    return next(several, filled[0][0] if filled else 0)


def cells(line: str, delimiter: str) -> list[str]:
    """One line's cells, unquoted and stripped; the empty ones that trailing delimiters make are kept."""
    return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])]


def _cut(line: str) -> tuple[list[str], str]:
    """A line's cells and the delimiter that makes most of them."""
    delimiter = max(DELIMITERS + _WRONG, key=lambda sign: len(cells(line, sign)))
    return cells(line, delimiter), delimiter


def header(head: bytes, row: int | None = None) -> tuple[list[str], str]:
    """The cells of the header (line `row`, or see `_header_row`) and the delimiter that makes most of them."""
    row = _header_row(head) if row is None else row
    return _cut(next(iter(lines(head, row + 1)[row:]), ""))


def below_header(head: bytes) -> list[str]:
    """The cells of the line under the header."""
    row = _header_row(head)
    return cells(next(iter(lines(head, row + 2)[row + 1 :]), ""), header(head, row)[1])


@dataclass(frozen=True)
class Table:
    """A table's cells; `first_line` is the file's line number of row 0."""

    frame: pl.DataFrame  # columns "0", "1", ... by position
    header: list[str]
    first_line: int
    notes: tuple[str, ...] = ()


def table(
    path: Path,
    data: bytes,
    *,
    row: int | None = None,
    keep: list[int] | None = None,
    numeric: Sequence[int] = (),
    delimiter: str | None = None,
) -> Table:
    """Parse the text table whose header is line `row` (see `header`); only the columns `keep`, if given.

    The columns `numeric` become Float64 (as `numbers` does it), which is fastest while they are parsed; all others stay text.
    """
    if data[:2] in UTF16:
        data = to_utf8(data)
    head = data[: border.HEAD]
    row = _header_row(head) if row is None else row
    border.check_header_line(path, head, row, len(data) <= border.HEAD)
    if row >= len(lines(head, row + 1)):
        raise LogError(f"{path}: it has no line {row + 1} for a header to stand in; correct the map's skip_rows.")
    names, found = header(head, row)
    if delimiter is not None:
        names = cells(lines(head, row + 1)[row], delimiter)
    elif found in _WRONG:
        raise LogError(
            f"{path}: line {row + 1} is separated by {found!r}, which is the wrong delimiter; "
            "save it with ',' or ';', or name the delimiter in a --map file."
        )
    delimiter = delimiter or found
    border.check_width(path, len(names))
    _check_width(path, head, names, delimiter, row)
    notes: tuple[str, ...] = ()
    with border.parsing(path, f"table separated by {delimiter!r}"):
        try:
            frame = _parse(data, delimiter, row + 1, len(names) + 1, keep, numeric)
        except pl.exceptions.PolarsError as problem:
            repaired, notes = _repair(path, data, delimiter, str(problem))
            frame = _parse(repaired, delimiter, row + 1, len(names) + 1, keep, numeric)
    if delimiter == "," and re.search(rb'"[1-9]\d{0,2}(,\d{3})+"', data):
        frame = _ungrouped(frame)
    elif delimiter != "," and re.search(rb'[;\t"][-+]?\d+,\d+[;\t"\r\n]', head):
        frame = _without_points(frame)
    if frame.height == 0:
        raise LogError(f"{path}: it has a header but no rows; record or export the drive again.")
    return Table(frame, names, row + 2, notes)


def _repair(path: Path, data: bytes, delimiter: str, problem: str) -> tuple[bytes, tuple[str, ...]]:
    """Bytes that polars can parse: as UTF-8, or without a last line that was cut short; else an error."""
    if "utf-8" in problem:
        return to_utf8(data), ()
    last = data.rfind(b"\n") + 1
    if data[last:].count(b'"') % 2:
        return data[:last], ("the last line is cut short and was left out",)
    raise LogError(
        f"{path}: it is not a table separated by {delimiter!r} ({problem.splitlines()[0]}); export it again or repair that line."
    )


def _parse(
    data: bytes, delimiter: str, skip: int, width: int, keep: list[int] | None, numeric: Sequence[int]
) -> pl.DataFrame:
    """The cells under the header. Width is one more than the header's: rows may end in a delimiter that it lacks."""
    schema: dict[str, type[pl.DataType]] = {str(i): pl.Float64 if i in numeric else pl.String for i in range(width)}
    frame = pl.read_csv(
        data,
        separator=delimiter,
        has_header=False,
        skip_rows=skip,
        schema=schema,
        columns=keep,
        truncate_ragged_lines=True,
        ignore_errors=bool(numeric),
        raise_if_empty=False,  # which also saves a copy of the bytes
    )
    if not any(frame[str(i)].null_count() for i in numeric):
        return frame
    frame = _parse(data, delimiter, skip, width, keep, ())  # decimal commas, or cells that are empty: look closer
    return frame.with_columns(numbers(frame, [str(i) for i in numeric]))


def _check_width(path: Path, head: bytes, names: list[str], delimiter: str, row: int) -> None:
    """Rows wider than the header come of a wrong delimiter or of unquoted decimal commas; say so with the line."""
    width = _filled(names)
    for number, line in enumerate(lines(head)[row + 1 : -1], start=row + 2):
        found = _filled(cells(line, delimiter))
        if found > width:
            raise LogError(
                f"{path}: line {number} has {found} cells but the header {width}, so {delimiter!r} is the wrong delimiter "
                "or decimal commas are not quoted; export it with ';' or a decimal point."
            )


def _filled(row: list[str]) -> int:
    """How many cells there are up to the last that is not empty."""
    return max((i + 1 for i, cell in enumerate(row) if cell), default=0)


def numbers(frame: pl.DataFrame, columns: list[str]) -> pl.DataFrame:
    """The columns as Float64; decimal commas and blanks are understood, and what is not a number is missing."""
    result = frame.select(pl.col(name).cast(pl.Float64, strict=False) for name in columns)
    odd = [
        name
        for name in columns
        if result[name].null_count() > frame[name].null_count()
        and frame[name].filter(result[name].is_null()).str.contains(r"\d").any()
    ]
    return result.with_columns(_comma(frame[name], frame) for name in odd)


def _comma(column: pl.Series, around: pl.DataFrame) -> pl.Series:
    """1.234,5 and 1 234,5 and 3,681 and \u22125 (a true minus) -> float; with both marks the last is the decimal one.

    A comma is a mark of thousands where the column shows it: `1,234.5`, `1,234,567`, or `950` beside `12,340`, which would be `950,000`
    beside it with three decimals and `12,34` without zeros at the end; unless other columns around it have decimal commas.
    """
    text = column.str.strip_chars().str.replace_all(r"[\s'\u2019]", "").str.replace("\u2212", "-", literal=True)
    if _has_thousands(text, around):
        text = text.str.replace_all(",", "", literal=True)
    else:
        text = text.str.replace_all(",", "", literal=True).zip_with(text.str.contains(r",.*\."), text)
        points = text.str.contains(r"\..*,") | text.str.contains(_POINTS)
        if not text.str.contains(",", literal=True).any():
            points &= text.str.contains(r"\..*\.")
        text = text.str.replace_all(".", "", literal=True).zip_with(points, text).str.replace(",", ".", literal=True)
    return text.cast(pl.Float64, strict=False).alias(column.name)


def _has_thousands(text: pl.Series, around: pl.DataFrame) -> bool:
    """Whether commas group thousands in every cell that has one, and the column shows that they do."""
    if not _is_grouped(text):
        return False
    with_comma = text.filter(text.str.contains(",", literal=True))
    if with_comma.str.contains(r"[.]|,.*,").any():
        return True
    small = text.filter(text.str.contains(r"^[-+]?([1-9]\d{0,2}|\d{1,3}\.\d+)$"))
    if len(small) > 1 == small.n_unique():  # one number again and again stands for none: -1, 255
        return False
    return bool(len(small) and with_comma.str.contains("0$").any() and not _has_decimal_commas(around))


def _has_decimal_commas(frame: pl.DataFrame) -> bool:
    return any(column.str.contains(_DECIMAL).any() for column in frame if column.dtype == pl.String)


def _is_grouped(text: pl.Series) -> bool:
    with_comma = text.filter(text.str.contains(",", literal=True))
    return bool(len(with_comma) and with_comma.str.contains(_GROUPED).all())


def _ungrouped(frame: pl.DataFrame) -> pl.DataFrame:
    """In a table between commas in which other numbers have decimal points, commas inside of cells group thousands."""
    texts = [column for column in frame if column.dtype == pl.String]
    if not any(map(_has_decimal_points, texts)) or _has_decimal_commas(frame):
        return frame
    return frame.with_columns(column.str.replace_all(",", "", literal=True) for column in texts if _is_grouped(column))


def _has_decimal_points(text: pl.Series) -> bool:
    """Coordinates do not count: apps write them with points even where other numbers have commas."""
    return bool(text.str.contains(r"^[-+]?\d+\.\d{1,2}$").any() and not text.str.contains(r"\.\d{5,}$").any())


def _without_points(frame: pl.DataFrame) -> pl.DataFrame:
    """In a table with decimal commas, points group thousands where a column of whole numbers shows it: `980` beside `1.010`."""
    return frame.with_columns(
        column.str.replace_all(".", "", literal=True)
        for column in frame
        if column.dtype == pl.String and _has_points(column)
    )


def _has_points(text: pl.Series) -> bool:
    with_point = text.filter(text.str.contains(".", literal=True))
    if not len(with_point) or not with_point.str.contains(_POINTS).all():
        return False
    return bool(with_point.str.contains("0$").any() and text.str.contains(r"^[-+]?[1-9]\d{0,2}$").any())
