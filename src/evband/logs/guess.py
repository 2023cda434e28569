"""A first guess of the map of a table that no reader knows (`evband inspect LOG --write-map map.toml`), for its owner to correct."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from evband.channels import CHANNELS, known_units
from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims, clock, columns, excel, text

_TIMES = ("time", "timestamp", "date", "datetime", "utc", "seconds", "elapsed", "clock", "zeit", "temps", "t")


def guess_map(path: Path) -> str:
    """A map as TOML text: a line for each column that looks like a channel, comments for the rest."""
    data = border.log_bytes(path)
    data = excel.to_csv(path, data) if excel.is_workbook(data) else data
    with border.foreseen(path, "a table to be mapped"):
        if data.startswith(border.PARQUET):
            frame = border.parquet(path, data)
            header = frame.columns
            frame = (
                frame.rename({name: str(i) for i, name in enumerate(header)}).head(1000).cast(pl.String, strict=False)
            )
        elif text.is_binary(data[: border.HEAD]):
            raise LogError(f"{path}: this is a binary file of no known format; export it as CSV, then map that.")
        else:
            table = text.table(path, data)
            header, frame = table.header, table.frame.head(1000)
        return _written(path, header, frame)


def _written(path: Path, header: list[str], frame: pl.DataFrame) -> str:
    when = _time_column(header, frame)
    named = [(str(i), *claims.split_unit(name)) for i, name in enumerate(header) if name and i != when]
    aliases = alias_table.table({})
    bare = claims.bare_speed(named, aliases)  # last, for tables that know no better
    found = [*claims.find(named, aliases), *([bare] if bare else [])]
    chosen: dict[str, claims.Claim] = {}
    for claim in found:
        if claim.channel not in chosen and claim.column not in {c.column for c in chosen.values()}:
            chosen[claim.channel] = claim
    lines = [
        f"# A first guess for {path.name}: correct channel, unit and sign, then give it with --map.",
        "",
        "[columns]",
    ]
    if when is not None:
        lines.append(f'{_text(header[when])} = {{ channel = "time_s", unit = "{_time_unit(frame[str(when)])}" }}')
    by_column = {claim.column: claim for claim in chosen.values()}
    for i, name in enumerate(header):
        if not name or i == when:
            continue
        best = by_column.get(str(i))
        if best is None:
            lines.append(f'# {_text(name)} = "..."  # {_example(frame[str(i)])}')
        else:
            unit = best.unit or CHANNELS[best.channel].unit
            guess = "" if best.unit else f"  # its unit is a guess: {', '.join(known_units(best.channel))}"
            lines.append(f'{_text(name)} = {{ channel = "{best.channel}", unit = "{unit}" }}{guess}')
    missing = [name for name in ("speed_kmh", "power_kw") if name not in chosen]
    if when is None:
        missing.insert(0, "time_s")
    if missing:
        lines.append(
            f"# still to be named: {', '.join(missing)} (or battery_voltage_v and battery_current_a for power_kw)"
        )
    lines.append("# sign = -1 belongs to a power or current that is negative when it leaves the battery")
    return "\n".join(lines) + "\n"


def _time_column(header: list[str], frame: pl.DataFrame) -> int | None:
    """The column named like a time; else the first whose numbers never fall."""
    plain = [alias_table.plain(claims.split_unit(name)[0]) for name in header]
    for word in _TIMES:
        named = [
            i
            for i, name in enumerate(plain)
            if name == word or name.startswith(f"{word} ") or name.endswith(f" {word}")
        ]
        if named:
            return named[0]
    for i in range(len(header)):
        value = columns.numbers(frame, i)
        value = value[np.isfinite(value)]
        if len(value) > 5 and np.all(np.diff(value) >= 0) and value[-1] > value[0]:
            return i
    return None


def _time_unit(column: pl.Series) -> str:
    if np.isfinite(clock.since_first_day(column)).any():
        return "clock"
    value = text.numbers(pl.DataFrame({"0": column}), ["0"]).to_series().drop_nulls().to_numpy()
    step = float(np.median(np.diff(value))) if len(value) > 2 else 1.0
    return "ms" if step >= 50.0 else "s"


def _text(name: str) -> str:
    """A TOML key or text: quoted, with what must be escaped escaped."""
    inner = name.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in inner if ord(c) < 0x10000) + '"'


def _example(column: pl.Series) -> str:
    some = [str(value)[:20] for value in column.drop_nulls().head(3)]
    return "for example " + ", ".join(c if c.isprintable() else "?" for c in some) if some else "empty"
