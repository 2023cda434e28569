"""Times as logs write them, as seconds that never run backwards."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.errors import LogError
from evband.logs.telemetry import MILLISECONDS

DAY_S = 86_400.0
DATED = 1e9  # seconds and more since 1970
_JITTER_S = 1.0  # readings of several ECUs may be written a little out of order
_HOUR_S, _PAUSE_S = 3600.0, 120.0  # by which clocks are put back; the longest silence while that happens
_LEAST_MS = 5.0  # between rows: no log is written faster
_SHORTEST_MS = 9000.0  # of a log: as many seconds would be hours at one speed
_PUT_BACK = (1, 2, 3)  # o'clock that it is once more where summer time ends
_SLOWEST_MS2 = 0.002  # a drive that starts and ends at rest, even of hours, changes its speed faster; one of 0.2 m/s2 in ms as s does not
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

    With `daily` they count from midnight, and a fall of more than 12 h is the next one; a single fall of an hour, to a full one at night,
    is the end of summer time. Readings up to 1 s out of order, and rows that all run backwards, are left for the series to sort.
    """
    known = np.isfinite(time)
    if not known.any():
        raise LogError(
            f"{path}: all its times are missing; export the drive again or name their column in a --map file."
        )
    filled = time if known.all() else _fill_forward(time)
    step = np.diff(filled)
    if step.size >= 10 and step.max() <= 0.0 and step.min() > -DAY_S / 2 and step.sum() < -_JITTER_S:
        return time, ["its rows begin with the newest; they were put in order"]
    midnights = np.flatnonzero(step < -DAY_S / 2) if daily else np.empty(0, dtype=int)
    notes = []
    put_back = _put_back(filled) if daily else np.empty(0, dtype=int)
    if put_back.size == 1:
        notes.append("the clock is put back by an hour in between; its times go on")
        filled = filled + np.where(np.arange(time.size) > put_back[0], _HOUR_S, 0.0)
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


def _put_back(time: NDArray[np.float64]) -> NDArray[np.intp]:
    """Rows after which a clock is put back from a full hour to the one before, at night."""
    step, hour = np.diff(time), time[1:] % DAY_S // _HOUR_S
    fell = (step >= -_HOUR_S) & (step < _PAUSE_S - _HOUR_S)
    return np.flatnonzero(
        fell & np.isin(hour, _PUT_BACK) & (time[1:] % _HOUR_S < _PAUSE_S) & (time[:-1] % DAY_S // _HOUR_S == hour)
    )


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
    texts = [f"{before} {after}" for before, after in dates.iter_rows()]
    days = min(([_day_number(text, first) for text in texts] for first in (False, True)), key=_span)
    if _span(days) == np.inf:
        return seconds, None
    known = dates.with_columns(pl.Series("day", [float(day or 0) for day in days], dtype=pl.Float64))
    joined = parts.join(known, on=["before", "after"], how="left", maintain_order="left")
    return seconds, joined["day"].fill_null(np.nan).to_numpy()


def _second(text: pl.Expr) -> pl.Expr:
    return text.str.replace(",", ".", literal=True).cast(pl.Float64, strict=False)


def since_first_day(column: pl.Series) -> NDArray[np.float64]:
    """`of_day` in one number: seconds since the midnight before the first time."""
    if not column.str.contains(r"\d:\d{2}:\d{2}").any():
        return _cut_short(column)
    seconds, day = of_day(column)
    return seconds if day is None else seconds + (day - np.nanmin(day)) * DAY_S


def _cut_short(column: pl.Series) -> NDArray[np.float64]:
    """Clocks as Excel saves them: `41:05.0`, whose hours are counted on, and `12:41` where rows have a minute of their own."""
    parts = pl.DataFrame({"t": column}).select(
        pl.col("t").str.extract(r"^\s*(\d{1,2}):\d{2}[.,]\d+\s*$").cast(pl.Float64, strict=False) * 60
        + _second(pl.col("t").str.extract(r"^\s*\d{1,2}:(\d{2}[.,]\d+)\s*$"))
    )
    seconds = parts.to_series().fill_null(np.nan).to_numpy()
    if np.isfinite(seconds).any():
        hours = np.cumsum(np.diff(_fill_forward(seconds), prepend=seconds[:1]) < -1800.0)
        return np.asarray(seconds + 3600.0 * hours)
    whole = column.str.replace(r"(^|[ T])(\d{1,2}:\d{2})(\s*[AaPp]\.?[Mm]\.?)?\s*$", "${1}${2}:00${3}")
    if whole.n_unique() * 2 < len(whole) or not whole.str.contains(r"\d:\d{2}:\d{2}").any():
        return np.full(len(whole), np.nan)
    return since_first_day(whole)


def of_numbers(value: NDArray[np.float64], speed_kmh: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
    """Times without a unit as seconds. Milli-, micro- and nanoseconds since 1970 show in their size; milliseconds since the start in
    a speed that changes too slowly for any drive of hours, without one in steps of over a minute; Excel's days since 1900 in steps of a few millionths.

    >>> of_numbers(np.array([0.0, 500.0, 1000.0])).tolist(), of_numbers(np.array([0.0, 0.5, 1.0])).tolist()
    ([0.0, 0.5, 1.0], [0.0, 0.5, 1.0])
    >>> of_numbers(np.array([0.0, 500.0, 1000.0]), speed_kmh=np.array([0.0, 50.0, 30.0])).tolist()
    [0.0, 500.0, 1000.0]
    """
    known = value[np.isfinite(value)]
    size = float(np.median(np.abs(known))) if len(known) else 0.0
    while size > MILLISECONDS:
        value, known, size = value / 1000.0, known / 1000.0, size / 1000.0
    step = median_step(known)
    span = float(np.ptp(known)) if len(known) else 0.0
    if size < DATED and _is_milliseconds(step, span, _change(value, speed_kmh)):
        return value / 1000.0
    return value * DAY_S if step < 1e-4 and 30_000 < size < 60_000 else value


def median_step(time: NDArray[np.float64]) -> float:
    """Between times that differ; 1 where none do."""
    steps = np.abs(np.diff(time[np.isfinite(time)]))
    return float(np.median(steps[steps > 0])) if steps.any() else 1.0


def _is_milliseconds(step: float, span: float, change: float) -> bool:
    """Whether times that step by so many are milliseconds, given the change of speed were they seconds (NaN: unknown)."""
    if np.isnan(change) or step > 60.0:
        return not change >= _SLOWEST_MS2 and step > 60.0
    return step >= _LEAST_MS and span >= _SHORTEST_MS and change < _SLOWEST_MS2


def _change(time: NDArray[np.float64], speed_kmh: NDArray[np.float64] | None) -> float:
    """How fast speed changes while the car moves, in m/s2: the mean between readings that no gap separates; NaN if it never does."""
    if speed_kmh is None:
        return np.nan
    known = np.isfinite(time) & np.isfinite(speed_kmh)
    elapsed, speed = np.abs(np.diff(time[known])), speed_kmh[known]
    near = (elapsed > 0) & (elapsed <= 5.0 * median_step(time[known])) & (np.maximum(speed[1:], speed[:-1]) > 1.0)
    changed = float(np.sum(np.abs(np.diff(speed))[near])) / 3.6
    return changed / float(np.sum(elapsed[near])) if changed else np.nan


def _span(days: list[int | None]) -> float:
    """How many days lie between the first and the last; infinite where one is unknown."""
    known = [day for day in days if day is not None]
    return max(known) - min(known) if known and len(known) == len(days) else np.inf


def _day_number(text: str, day_first: bool = False) -> int | None:
    """The proleptic day of a date among other words (`05-Oct-2026`, `Fri May 22 EDT 2015`, `2024-01-01`, `1.2.2024`, `1/31/24`).

    Between slashes the month may come first or the day: `of_day` takes the order in which the log lasts shorter.
    """
    numeric = re.search(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})", text)
    german = re.search(r"(\d{1,2})[.](\d{1,2})[.](\d{4})", text)
    slashed = re.search(r"(\d{1,2})([-/])(\d{1,2})\2(\d{4}|\d{2})\b", text)
    try:
        if numeric:
            return dt.date(*(int(part) for part in numeric.groups())).toordinal()
        if german:
            return dt.date(*(int(part) for part in reversed(german.groups()))).toordinal()
        if slashed:
            first, second, last = (int(slashed.group(i)) for i in (1, 3, 4))
            first, second = (second, first) if day_first else (first, second)
            return dt.date(last + 2000 if last < 100 else last, first, second).toordinal()
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
