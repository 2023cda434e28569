"""Columns of many vehicles, kept as JSON: of one vehicle its own numbers, NaN as null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def kept(columns: Mapping[str, NDArray], car: int) -> dict[str, Any]:
    """What columns [vehicles] or [vehicles, n] hold of one vehicle: a number or a list each."""
    return {name: _plain(column[car].tolist()) for name, column in columns.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return None if value != value else value


def restore(columns: Mapping[str, NDArray], car: int, saved: Mapping[str, Any], finite: bool = False) -> None:
    """Take back what `kept` gave, all of it or nothing; raises ValueError, TypeError or KeyError where it does not fit."""
    found = {}
    for name, column in columns.items():
        given = saved[name] if isinstance(saved[name], list) else [saved[name]]
        values = np.array([np.nan if value is None else value for value in given], float)
        if finite and not np.isfinite(values).all():
            raise ValueError(f"{name} is not finite")
        found[name] = values.reshape(column[car].shape).astype(column.dtype)
    for name, value in found.items():
        columns[name][car] = value
