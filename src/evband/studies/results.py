"""Kept results: one CSV line for every finished cell, written at once, so that a study goes on where it was stopped."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from evband.errors import SettingsError
from evband.files import write_whole

Row = dict[str, Any]

NAMES = ("vehicle", "method", "preset", "prior", "prior_scale", "features", "dropout_asked", "data", "channels")
"""Columns of text, however much like numbers they look."""
LATER = ("dropout_asked",)
"""Columns that results of earlier versions lack; there they read as empty."""

TABLE_1 = ("features", "vehicle", "preset", "prior", "channels", "rmse_kw", "mae_kw", "crps_kw", "coverage", "seeds")
TABLE_2 = (
    "method", "vehicle", "preset", "prior", "rmse_kw", "mae_kw", "au_kw", "eu_kw", "r2", "explained_variance", "seeds",
)  # fmt: skip
TABLE_3 = (
    "vehicle", "method", "preset", "prior", "coverage", "ci_low", "ci_high", "honest_low", "honest_high", "width_kw",
    "width_at_90_kw", "standardized_variance", "pit_variance", "crps_kw", "log_score", "seeds",
)  # fmt: skip


class Results:
    """A CSV of finished cells with `#` lines above it. `key` names the columns that tell one cell from another."""

    def __init__(self, path: Path, key: Sequence[str], header: Sequence[str] = ()):
        self.path, self.key, self.header = path, tuple(key), tuple(header)

    def rows(self) -> list[Row]:
        """Everything kept so far."""
        if not self.path.exists():
            return []
        try:
            texts = dict.fromkeys(NAMES, pl.String)
            frame = pl.read_csv(self.path, comment_prefix="#", infer_schema_length=None, schema_overrides=texts)
        except pl.exceptions.PolarsError as problem:
            raise SettingsError(f"{self.path}: it cannot be read as results ({problem}); move it away.") from None
        lacking = [name for name in self.key if name not in frame.columns]
        if not set(lacking) <= set(LATER):
            raise SettingsError(
                f"{self.path}: it has no column {lacking[0]}, so it holds no results of a study; move it away."
            )
        return frame.with_columns(pl.lit("").alias(name) for name in lacking).to_dicts()

    def has(self, cell: Mapping[str, Any]) -> bool:
        return any(self._same(row, cell) for row in self.rows())

    def add(self, row: Row) -> None:
        """Keep one cell, in place of an earlier result of the same one."""
        kept = [other for other in self.rows() if not self._same(other, row)] + [row]
        frame = pl.DataFrame(kept, infer_schema_length=None).sort(self.key)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        head = "".join(f"# {line}\n" for line in self.header)
        write_whole(self.path, head + frame.write_csv(float_precision=6))

    def _same(self, a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
        return all(_equal(a.get(name), b.get(name)) for name in self.key)


def _equal(a: Any, b: Any) -> bool:
    """Numbers within the file's six decimals, all else as text."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=0.0, abs_tol=1e-6)
    return str(a) == str(b)


def table(rows: Sequence[Row], columns: Sequence[str], key: Sequence[str]) -> pl.DataFrame:
    """The rows in a table's shape: numbers averaged over seeds only.

    Columns of `key` that the table does not have are added after its names where its lines would not differ otherwise.
    """
    frame = pl.DataFrame(list(rows), infer_schema_length=None)
    names = [c for c in columns if c in NAMES and c in frame.columns]
    others = [c for c in key if c != "seed" and c not in names]
    differing = frame.group_by(names).agg(pl.col(others).n_unique())
    shown = [c for c in others if (differing[c] > 1).any()]
    numbers = [c for c in columns if c in frame.columns and c not in names]
    means = [pl.col(c).cast(pl.Float64).mean() for c in numbers]
    shaped = frame.group_by([*names, *others], maintain_order=True).agg(*means, seeds=pl.col("seed").n_unique())
    return shaped.select([*names, *shown, *numbers, "seeds"])


def write_table(rows: Sequence[Row], columns: Sequence[str], key: Sequence[str], path: Path) -> pl.DataFrame:
    shaped = table(rows, columns, key)
    write_whole(path, shaped.write_csv(float_precision=4))
    return shaped
