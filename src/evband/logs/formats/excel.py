"""Excel workbooks (.xlsx): the first sheet with a table becomes text, and is then read as whatever it is. Needs the extra `[excel]`."""

from __future__ import annotations

import csv
import datetime as dt
import io
import zipfile
import zlib
from pathlib import Path
from typing import Any

from evband.errors import LogError, needs
from evband.files import size
from evband.logs import border


def is_workbook(data: bytes) -> bool:
    """A zip file with a workbook in it."""
    return data.startswith(border.ZIP) and b"xl/" in data


def to_csv(path: Path, data: bytes) -> bytes:
    """The first sheet that has rows, as CSV; what it would unpack to is added up first."""
    try:
        from openpyxl import load_workbook
    except ImportError:
        raise LogError(f"{path}: {needs('openpyxl', 'reading Excel')} Or save it as CSV.") from None
    with border.parsing(path, "Excel workbook"):
        try:
            unpacked = sum(item.file_size for item in zipfile.ZipFile(io.BytesIO(data)).infolist())
            if unpacked > border.MOST_BYTES:
                raise LogError(
                    f"{path}: it unpacks to more than {size(border.MOST_BYTES)}; save it as CSV and split it."
                )
            book = load_workbook(io.BytesIO(data), read_only=True, data_only=True, keep_links=False)
            return next((table for sheet in book.worksheets if (table := _sheet(path, sheet))), b"")
        except (
            zipfile.BadZipFile,
            zlib.error,
            SyntaxError,
            RuntimeError,
        ) as problem:  # XML errors are SyntaxErrors, what is encrypted or not supported a RuntimeError
            raise LogError(f"{path}: the Excel workbook cannot be read ({problem}); save it again or as CSV.") from None


def _sheet(path: Path, sheet: Any) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in sheet.iter_rows(values_only=True):
        border.check_width(path, len(row))
        if any(cell is not None for cell in row):
            writer.writerow([_cell(cell) for cell in row])
            if out.tell() > border.MOST_BYTES:
                raise LogError(f"{path}: its sheet is larger than {size(border.MOST_BYTES)} as text; split it.")
    return out.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, dt.datetime | dt.time):
        return value.isoformat(" ") if isinstance(value, dt.datetime) else value.isoformat()
    return str(value)
