"""Times as logs write them, as seconds that never run backwards."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.errors import LogError

DAY_S = 86_400.0
_JITTER_S = 1.0  # readings of several ECUs may be written a little out of order
_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec"
_OTHER_MONTHS = {
    "mär": 3, "mrz": 3, "mai": 5, "mei": 5, "maj": 5, "okt": 10, "dez": 12, "fév": 2, "fev": 2, "avr": 4, "juin": 6, "juil": 7,
    "aoû": 8, "déc": 12, "ene": 1, "abr": 4, "ago": 8, "dic": 12, "gen": 1, "mag": 5, "giu": 6, "lug": 7, "set": 9, "ott": 10,
    "sty": 1, "lut": 2, "kwi": 4, "cze": 6, "lip": 7, "sie": 8, "wrz": 9, "paź": 10, "lis": 11, "gru": 12, "mrt": 3,
}  # fmt: skip


def unroll(
    path: Path, time: NDArray[np.float64], first_line: int, *, daily: bool = True
) -> tuple[NDArray[np.float64], list[str]]:
    """Times in file order -> times that never run backwards; a clock that does is an error.

    With `daily` they count from midnight, and a fall of more than 12 h is the next one. Readings up to 1 s out of order
    are left for the series to sort.
    """
    known = np.isfinite(time)
    if not known.any():
        raise LogError(
            f"{path}: all its times are missing; export the drive again or name their column in a --map file."
        )
    filled = time if known.all() else _fill_forward(time)
    step = np.diff(filled)
    midnights = np.flatnonzero(step < -DAY_S / 2) if daily else np.empty(0, dtype=int)
    notes = []
    if midnights.size:
        notes.append(f"the drive passes midnight ({midnights.size}x); its times go on past 86400 s")
        days = np.zeros(time.size)
        days[midnights + 1] = DAY_S
        filled = filled + np.cumsum(days)
    back = np.maximum.accumulate(filled) - filled
    worst = int(np.argmax(back))
    if back[worst] > _JITTER_S:
        line = first_line + int(np.argmax(back > _JITTER_S))
        raise LogError(
            f"{path}: at line {line} time runs backwards by {back[line - first_line]:.1f} s; "
            "split the file there or put its rows in order."
        )
    if back[worst] > 0:
        notes.append("readings written out of order by under 1 s were sorted")
    return np.where(known, filled, np.nan), notes


def _fill_forward(time: NDArray[np.float64]) -> NDArray[np.float64]:
    seen = np.maximum.accumulate(np.where(np.isfinite(time), np.arange(time.size), -1))
    first = time[np.isfinite(time)][0]
    return np.where(seen >= 0, time[np.maximum(seen, 0)], first)


def of_day(column: pl.Series) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """Clock times (`12:41:04.955`, `7:05:03,5 PM`, `05-Oct-2026 14:22:01`) as seconds since midnight, and their day.

    The day is None where the times have no date, or one that cannot be read: then seconds fall back at midnight, for
    `unroll` to see.
    """
    clock = r"\d{1,2}:\d{2}:\d{2}"
    parts = pl.DataFrame({"t": column}).select(
        pl.col("t").str.extract(r"(\d{1,2}):\d{2}:\d{2}").cast(pl.Float64, strict=False).alias("h"),
        pl.col("t").str.extract(r"\d{1,2}:(\d{2}):\d{2}").cast(pl.Float64, strict=False).alias("m"),
        _second(pl.col("t").str.extract(r"\d{1,2}:\d{2}:(\d{2}(?:[.,]\d+)?)")).alias("s"),
        pl.col("t").str.to_lowercase().str.extract(r"\d\s?([ap])\.?\s?m\b").alias("half"),
        pl.col("t").str.replace(clock + ".*$", "").str.strip_chars(" T").fill_null("").alias("before"),
        pl.col("t").str.extract(clock + r"\S*\s+(.*)$").fill_null("").alias("after"),
    )
    hour = (
        pl.when(pl.col("half").is_null()).then(pl.col("h"))
        .when(pl.col("half") == "p").then(pl.col("h") % 12 + 12)
        .otherwise(pl.col("h") % 12)
    )  # fmt: skip
    seconds = parts.select(hour * 3600 + pl.col("m") * 60 + pl.col("s")).to_series().fill_null(np.nan).to_numpy()
    dates = parts.filter(pl.col("h").is_not_null()).select("before", "after").unique()
    days = [_day_number(f"{before} {after}") for before, after in dates.iter_rows()]
    if not days or any(day is None for day in days):
        return seconds, None
    known = dates.with_columns(pl.Series("day", [float(day or 0) for day in days], dtype=pl.Float64))
    joined = parts.join(known, on=["before", "after"], how="left", maintain_order="left")
    return seconds, joined["day"].fill_null(np.nan).to_numpy()


def _second(text: pl.Expr) -> pl.Expr:
    return text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)


def since_first_day(column: pl.Series) -> NDArray[np.float64]:
    """`of_day` in one number: seconds since the midnight before the first time."""
    seconds, day = of_day(column)
    return seconds if day is None else seconds + (day - np.nanmin(day)) * DAY_S


def _day_number(text: str) -> int | None:
    """The proleptic day of a date among other words (`05-Oct-2026`, `Fri May 22 EDT 2015`, `2024-01-01`, `1.2.2024`)."""
    numeric = re.search(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", text)
    german = re.search(r"(\d{1,2})[.](\d{1,2})[.](\d{4})", text)
    try:
        if numeric:
            return dt.date(*(int(part) for part in numeric.groups())).toordinal()
        if german:
            return dt.date(*(int(part) for part in reversed(german.groups()))).toordinal()
        year, day = re.search(r"\b(\d{4})\b", text), re.search(r"\b(\d{1,2})\b", text)
        months = [_month(word) for word in re.findall(r"[^\W\d_]{3,}", text)]
        month = next((number for number in months if number), None)
        if year and day and month:
            return dt.date(int(year.group(1)), month, int(day.group(1))).toordinal()
    except ValueError:
        pass
    return None


def _month(word: str) -> int | None:
    word = word.lower()
    english = _MONTHS.split()
    if word[:3] in english:
        return english.index(word[:3]) + 1
    return _OTHER_MONTHS.get(word[:4]) or _OTHER_MONTHS.get(word[:3])
