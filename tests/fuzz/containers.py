"""Logs in containers, broken with knowledge of what is inside: members of a workbook, columns of a Parquet file, links between MF4 blocks."""

from __future__ import annotations

import io
import json
import random
import zipfile
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import polars as pl

from fuzz import mutate, seeds

NAMES = ("time_s", "speed_kmh", "power_kw", "segment", "trip_id", "elevation_m", "battery_current_a", "battery_voltage_v", "soc_pct",
         "Time", "timestamp", "date", "speed", "power", "vehicle_id", "lat", "lon", "", "x" * 300, "a\nb")  # fmt: skip
NUMBERS = (0, 1, -1, 0.5, 1e308, -1e308, 1e-310, float("nan"), float("inf"), 2**31, 2**62, 1.7e9, 1.7e12, 86400)


def parquet_bytes(rng: random.Random) -> bytes:
    """Columns of any type under names that mean something; else bytes changed."""
    if rng.random() < 0.4:
        return mutate.mutate(seeds.logs()["parquet"], rng)
    rows = rng.choice((0, 1, 2, 60, 200))
    columns = {"time_s": _column(rng, rows)} if rng.random() < 0.5 else {"time_s": pl.Series(range(rows))}
    columns |= {name: _column(rng, rows) for name in rng.sample(NAMES, rng.randrange(1, 6))}
    buffer = io.BytesIO()
    pl.DataFrame(columns).write_parquet(buffer)
    return buffer.getvalue()


def _column(rng: random.Random, rows: int) -> pl.Series:
    makes: tuple[Any, ...] = (
        lambda: rng.uniform(0.0, 100.0),
        lambda: float(rng.choice(NUMBERS)),
        lambda: rng.choice((0, 1, 2**31, -(2**62))),
        lambda: rng.choice(("", "a", "12,5", "nan", "2024-01-05 11:00:00", "x" * 500)),
        lambda: rng.random() < 0.5,
        lambda: [rng.random()] * rng.randrange(3),
        lambda: {"a": rng.random()},
        lambda: b"\xff\x00",
        lambda: datetime(2024, 1, 5) + timedelta(seconds=rng.uniform(-1e9, 1e9)),
        lambda: timedelta(seconds=rng.uniform(-1e5, 1e5)),
        lambda: datetime(2024, 1, 5).date(),
        lambda: datetime(2024, 1, 5, rng.randrange(24)).time(),
        lambda: Decimal("1.5"),
        lambda: None,
    )
    make, gaps = rng.choice(makes), rng.random() < 0.3
    return pl.Series([None if gaps and rng.random() < 0.2 else make() for _ in range(rows)])


def excel_bytes(rng: random.Random) -> bytes:
    """One member of the workbook changed and packed again; else bytes changed."""
    whole = seeds.logs()["excel"]
    if rng.random() < 0.3:
        return mutate.mutate(whole, rng)
    with zipfile.ZipFile(io.BytesIO(whole)) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    name = rng.choice([*parts, *["xl/worksheets/sheet1.xml"] * 8])
    how = rng.random()
    if how < 0.1:
        del parts[name]
    elif how < 0.2:
        parts[rng.choice(("xl/sharedStrings.xml", "xl/styles.xml", "../x", name))] = mutate.mutate(parts[name], rng)
    else:
        parts[name] = mutate.mutate(parts[name], rng)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as book:
        for name, data in parts.items():
            book.writestr(name, data)
    return buffer.getvalue()


def mf4_bytes(rng: random.Random) -> bytes:
    """Links and counts of blocks, which are 8 bytes in 8-byte places, set to something else; else bytes changed."""
    data = bytearray(rng.choice(seeds.mf4s()))
    if rng.random() < 0.3:
        return mutate.mutate(bytes(data), rng)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = 8 * rng.randrange(8, len(data) // 8)
        value = rng.choice((0, 1, 2**63, 2**64 - 1, at, len(data), 8 * rng.randrange(len(data) // 8), 2**31, 60, 10**9))
        data[at : at + 8] = value.to_bytes(8, "little")
    return bytes(data)


def json_bytes(rng: random.Random) -> bytes:
    """Lists and lines of objects with values changed, or nested in each other."""
    whole = seeds.logs()[rng.choice(("abrp", "abrp_list"))]
    if whole.startswith(b"["):
        return mutate.mutate_json(whole, rng)
    lines = whole.splitlines()
    for i in rng.sample(range(len(lines)), rng.choice((1, 3, len(lines)))):
        lines[i] = mutate.mutate_json(lines[i], rng)
    if rng.random() < 0.2:
        lines[0] = json.dumps({"tlm": [json.loads(seeds.LINES[0])] * rng.randrange(3)}).encode()
    return b"\n".join(lines)
