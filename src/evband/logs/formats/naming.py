"""What a drive is called: its file's name."""

from __future__ import annotations

from pathlib import Path

_ENDINGS = (
    ".gz", ".csv", ".txt", ".json", ".jsonl", ".ndjson", ".mf4", ".mdf", ".dat", ".tsv", ".parquet", ".xlsx", ".log",
)  # fmt: skip


def trip_id(path: Path) -> str:
    """The file's name without .csv, .csv.gz and the like; other dots stay.

    >>> trip_id(Path("logs/2026-03-20 18-31-35.csv.gz")), trip_id(Path("run.v2.csv"))
    ('2026-03-20 18-31-35', 'run.v2')
    """
    name = path.name
    while name.lower().endswith(_ENDINGS):
        name = name[: name.rindex(".")]
    return name or path.name
