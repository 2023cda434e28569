"""Home Assistant's history: the download of its History page (`entity_id,state,last_changed`), or the JSON of /api/history/period.

Only changes are kept there, so a state holds until the next one, or until it is `unavailable`; here for at most five minutes. Units are
those of a column or attribute `unit_of_measurement`, at the end of an entity's name, or given with --alias. The download has none: then a
speed is in km/h and a temperature in C, as the metric system shows them, which is reported as a doubt, and a power in kW, or in W where
kW would be absurd. Entities are found by the end of their name (`sensor.zoe_battery_power`), or named with --alias.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evband.channels import CHANNELS
from evband.errors import LogError
from evband.logs import border
from evband.logs.formats import aliases as alias_table
from evband.logs.formats import cell_units, claims, columns, text
from evband.logs.formats.aliases import Alias, is_listed, plain
from evband.logs.formats.units import is_unit
from evband.trips.readings import Readings, ReadOptions, Series

NAME = "Home Assistant"
HELD_S = 300.0
_COLUMNS = {"entity_id": "entity", "state": "state", "last_changed": "when"}  # theirs -> ours
_UNITS = ("unit_of_measurement", "unit", "units")
_ATTRIBUTES = ("attributes", "shared_attrs")
_HOTTEST_C = 45.0  # the median of the air around a car; F is more


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
    unit = pl.col("unit").replace("", None).forward_fill().backward_fill().over("entity").fill_null("")
    frame = frame.with_columns(value.alias("value"), unit.alias("unit"))  # of a state without one, the unit of another
    frame = _one_unit(frame)
    aliases = alias_table.table(options.aliases)
    parts = {  # number -> entity, unit, series
        str(number): (str(entity), str(unit), (own["when"].to_numpy(), own["value"].to_numpy()))
        for number, ((entity, unit), own) in enumerate(
            frame.partition_by("entity", "unit", maintain_order=True, as_dict=True).items()
        )
    }
    found = claims.find(
        [(number, *_named(entity, unit, aliases)) for number, (entity, unit, _) in parts.items()], aliases
    )
    known = {claim.column for claim in found}
    raw = {number: series for number, (_, _, series) in parts.items() if number in known}
    entities = {number: entity for number, (entity, _, _) in parts.items()}
    found = [
        replace(
            claim,
            label=entities[claim.column],
            unit=claim.unit if claim.spelled else claim.unit or CHANNELS[claim.channel].unit,
        )
        for claim in found
    ]
    series, notes = claims.settle(path, found, _held(raw), aliases, app_power=False, columns=[*entities.values()])
    doubt = _doubt(path, found, raw)
    trips = columns.drives(path, NAME, series, ("a state holds until the next change", *notes))
    return [replace(trip, doubt=doubt) for trip in trips]


def _one_unit(frame: pl.DataFrame) -> pl.DataFrame:
    """The states of an entity whose unit was changed in between, in its first one."""
    first = pl.col("unit").first().over("entity")
    changed = frame.select("unit", first.alias("first")).filter(pl.col("unit") != pl.col("first")).unique().rows()
    for theirs, ours in changed:
        if factor := cell_units.factor_of(theirs, ours):
            row = (pl.col("unit") == theirs) & (first == ours)
            frame = frame.with_columns(
                pl.when(row).then(pl.col("value") * factor).otherwise(pl.col("value")).alias("value"),
                pl.when(row).then(pl.lit(ours)).otherwise(pl.col("unit")).alias("unit"),
            )
    return frame


def _doubt(path: Path, found: list[claims.Claim], raw: Mapping[str, Series]) -> str:
    """What is said of a speed without a unit; an error where temperatures show that the history is not in metric units."""
    bare = {claim.channel: claim for claim in reversed(found) if not claim.spelled}
    if "speed_kmh" not in bare:
        return ""
    speed = bare["speed_kmh"].label
    name = f"--alias 'speed_kmh={speed} (mph)'"
    if (air := bare.get("ambient_temp_c")) and np.nanmedian(raw[air.column][1]) > _HOTTEST_C:
        raise LogError(
            f"{path}: {air.label} is no temperature in C, so its units are imperial, but it names none; give them with "
            f"{name} and --alias 'ambient_temp_c={air.label} (F)', or the speed as (km/h)."
        )
    return f"the history names no unit for {speed}: taken as km/h; {name} takes it as mph, with (km/h) it is certain"


def _from_csv(path: Path, data: bytes) -> pl.DataFrame:
    table = text.table(path, data)
    where = columns.names(table.header)
    ours = [pl.col(str(where[name])).alias(own) for name, own in _COLUMNS.items()]
    return (
        table.frame.cast(pl.String)
        .select(*ours, _unit(where).alias("unit"))
        .with_columns(pl.col("entity").fill_null(""))
    )


def _unit(where: Mapping[str, int]) -> pl.Expr:
    """The unit of each row, from a column of its own or from the attributes as JSON."""
    found = [pl.col(str(where[name])).replace("", None) for name in _UNITS if name in where]
    for name in _ATTRIBUTES:
        if name in where:
            unit = pl.col(str(where[name])).str.extract(r"""["']unit_of_measurement["']\s*:\s*["']([^"']*)["']""")
            found.append(unit.str.replace("\\u00b0", "°", literal=True))
    return pl.coalesce(*found, pl.lit(None, pl.String))


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


def _named(entity: str, unit: str, aliases: Mapping[str, Alias]) -> tuple[str, str]:
    """What an entity measures, and its unit, which may end its name: `sensor.zoe_speed_mph`."""
    name = _name(entity, aliases)
    stem, _, end = entity.replace("_km_h", "_kmh").rpartition("_")
    if unit or not is_unit(end) or any(name in alias.names for alias in aliases.values()):
        return name, unit
    return _name(stem, aliases), end


def _held(raw: Mapping[str, Series]) -> dict[str, Series]:
    """Every series at the instants of all, each state held."""
    instants = np.unique(np.concatenate([time for time, _ in raw.values()])) if raw else np.empty(0)
    held = {}
    for entity, (time, value) in raw.items():
        last = np.searchsorted(time, instants, side="right") - 1
        known = (last >= 0) & (instants - time[np.maximum(last, 0)] <= HELD_S)
        held[entity] = claims.series(instants, np.where(known, value[np.maximum(last, 0)], np.nan))
    return held
