"""Home Assistant's history: the download of its History page (`entity_id,state,last_changed`), or the JSON of /api/history/period.

Only changes are kept there, so a state holds until the next one, or until it is `unavailable`; here for at most five minutes. The
download names no units: then a speed is in km/h and a temperature in C, as the metric system shows them, and a power in kW, or in W
where kW would be absurd. Entities are found by the end of their name (`sensor.zoe_battery_power`), or named with --alias.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import claims, columns, text
from evband.logs.formats.aliases import Alias, is_listed, plain
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "Home Assistant"
HELD_S = 300.0
_COLUMNS = {"entity_id": "entity", "state": "state", "last_changed": "when"}  # theirs -> ours
_ASSUMED = {"speed_kmh": "km/h"}
_ABSURD_KW = 400.0  # the median of a car's power, by size


def detect(head: bytes) -> bool:
    """The three columns, or JSON with their names."""
    start = text.decode(head[:4096]).lstrip()
    if start[:1] == "[":
        return all(f'"{key}"' in start for key in _COLUMNS)
    return columns.has(head, *_COLUMNS)


def read(path: Path, data: bytes, options: ReadOptions) -> list[Readings]:
    """The drives in a history, cut where speed is silent."""
    frame = _from_json(path, data) if text.decode(data[:64]).lstrip()[:1] == "[" else _from_csv(path, data)
    frame = columns.dated(frame, "when")
    if not frame.height:
        raise LogError(f"{path}: no last_changed in it can be read; download the history again.")
    value = pl.col("state").cast(pl.Float64, strict=False).fill_null(np.nan)
    frame = frame.with_columns(value.alias("value"))
    parts = {
        (str(entity), str(unit)): (own["when"].to_numpy(), own["value"].to_numpy())
        for (entity, unit), own in frame.partition_by("entity", "unit", maintain_order=True, as_dict=True).items()
    }
    aliases = alias_table.table(options.aliases)
    found = claims.find([(entity, _name(entity, aliases), unit) for entity, unit in parts], aliases)
    known = {claim.column for claim in found}
    raw = {entity: series for (entity, _), series in parts.items() if entity in known}
    series, notes = claims.settle(
        path,
        [_with_unit(claim, raw) for claim in found],
        _held(raw),
        aliases,
        app_power=False,
        columns=[e for e, _ in parts],
    )
    if not any(unit for _, unit in parts):
        notes.append("the download names no units: km/h, C and kW (or W) are assumed")
    return columns.drives(path, NAME, series, ("a state holds until the next change", *notes))


def _from_csv(path: Path, data: bytes) -> pl.DataFrame:
    table = text.table(path, data)
    where = columns.names(table.header)
    names = {str(where[name]): ours for name, ours in _COLUMNS.items()}
    frame = table.frame.select(*names).rename(names).cast(pl.String)
    return frame.with_columns(pl.col("entity").fill_null(""), unit=pl.lit(""))


def _from_json(path: Path, data: bytes) -> pl.DataFrame:
    try:
        lists = json.loads(text.decode(data))
    except (ValueError, RecursionError):
        raise LogError(f"{path}: it is not whole JSON; fetch the history again.") from None
    rows = list(_states(lists if isinstance(lists, list) else []))
    schema = {"entity": pl.String, "state": pl.String, "when": pl.String, "unit": pl.String}
    with border.parsing(path, "history"):
        return pl.DataFrame(rows, schema=schema, orient="row")


def _states(lists: list[Any]) -> Iterator[tuple[str, str, str, str]]:
    """(entity, state, when, unit); of a short answer only the first state of an entity names it and its unit."""
    for states in lists:
        entity = unit = ""
        for state in states if isinstance(states, list) else [states]:
            if not isinstance(state, dict):
                continue
            entity = str(state.get("entity_id", entity))
            attributes = state.get("attributes")
            unit = str((attributes if isinstance(attributes, dict) else {}).get("unit_of_measurement", unit))
            yield entity, str(state.get("state")), str(state.get("last_changed") or state.get("last_updated")), unit


def _name(entity: str, aliases: Mapping[str, Alias]) -> str:
    """What an entity measures: the longest end of its name that is a known one, unless the whole says that it is another thing."""
    words = plain(entity).split()
    padded = f" {' '.join(words)} "
    for first in range(len(words)):
        end = " ".join(words[first:])
        for alias in aliases.values():
            rank = alias.rank(end)
            if rank is not None and is_listed(rank) and not any(word in padded for word in alias.exclude):
                return end
    return " ".join(words)


def _with_unit(claim: claims.Claim, raw: Mapping[str, Series]) -> claims.Claim:
    """A claim without a unit, with the one that the metric system shows."""
    if claim.spelled:
        return claim
    if claim.channel == "power_kw":
        value = raw[claim.column][1]
        value = np.abs(value[np.isfinite(value)])
        return replace(claim, unit="w") if len(value) and np.median(value) > _ABSURD_KW else claim
    return replace(claim, unit=_ASSUMED.get(claim.channel, claim.unit))


def _held(raw: Mapping[str, Series]) -> dict[str, Series]:
    """Every series at the instants of all, each state held."""
    instants = np.unique(np.concatenate([time for time, _ in raw.values()])) if raw else np.empty(0)
    held = {}
    for entity, (time, value) in raw.items():
        last = np.searchsorted(time, instants, side="right") - 1
        known = (last >= 0) & (instants - time[np.maximum(last, 0)] <= HELD_S)
        held[entity] = claims.series(instants, np.where(known, value[np.maximum(last, 0)], np.nan))
    return held
