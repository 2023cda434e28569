"""Cells that hold a number and its unit, as Grafana formats them: `12.3 kW` beside `950 W`, `88 km/h`, `1.2 k`."""

from __future__ import annotations

import re

import polars as pl

from evband.channels import VALUES, conversion
from evband.logs.formats.text import numbers
from evband.logs.formats.units import is_unit, unit_for

_AMOUNT = r"^\s*([-+\u2212]?\d[\d.,'\u2019\s]*?)\s*([^\d\s.,'\u2019][^\d]*)$"
_THOUSANDS = {"k": 1e3, "K": 1e3, "Mil": 1e6}  # of numbers without a unit


def unit_of(cell: str) -> str:
    """The unit in a cell; "" without a number before it.

    >>> unit_of("12.3 kW"), unit_of("-5"), unit_of("Drive 7 b")
    ('kW', '', '')
    """
    found = re.match(_AMOUNT, cell)
    return found.group(2).strip() if found and is_unit(found.group(2)) else ""


def bare(column: pl.Series, unit: str) -> pl.Series:
    """The column's cells in `unit` without naming it; those in another unit of the same quantity are converted."""
    if column.cast(pl.Float64, strict=False).null_count() == column.null_count():
        return column
    frame = pl.DataFrame({"cell": column}).select(
        pl.col("cell"),
        pl.col("cell").str.extract(_AMOUNT, 1).alias("number"),
        pl.col("cell").str.extract(_AMOUNT, 2).str.strip_chars().alias("unit"),
    )
    factors = {theirs: factor for theirs in frame["unit"].drop_nulls().unique() if (factor := factor_of(theirs, unit))}
    if not factors:
        return column
    value = numbers(frame, ["number"]).to_series()
    scaled = value * frame["unit"].replace_strict(factors, default=None, return_dtype=pl.Float64)
    return scaled.cast(pl.String).zip_with(frame["unit"].is_not_null(), frame["cell"]).alias(column.name)


def factor_of(theirs: str, ours: str) -> float | None:
    """How many of our unit one of theirs is."""
    for channel in VALUES:
        units = unit_for(channel, theirs), unit_for(channel, ours)
        if units[0] and units[1]:
            (scale, offset), (own, own_offset) = (conversion(channel, unit) for unit in units if unit)
            return scale / own if offset == own_offset else None
    return _THOUSANDS.get(theirs) if not ours else None
