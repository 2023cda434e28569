"""Several columns of a log may claim one channel: find the claims by name and unit, then settle them by their values.

Precedence is the alias table's order. A claim is set aside where its values cannot be the quantity (most of them outside
the table's range), where it is dead (all zero, while another is not), or where it has under a tenth of the readings of the
fullest claim. The notes list whatever was set aside.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evband.channels import CHANNELS, from_unit, known_units
from evband.errors import LogError
from evband.logs.border import ordered
from evband.logs.formats.aliases import Alias, is_listed, plain
from evband.logs.formats.aliases import split_unit as split_unit
from evband.logs.formats.units import is_unit, unit_for
from evband.trips.readings import Series

_NEEDS_UNIT = ("speed_kmh",)  # km/h or mph: too different to guess
MATTERS = ("speed_kmh", "battery_current_a", "battery_voltage_v", "power_kw")
_ABSURD_KW = 400.0, 1500.0  # of a car's power, by size: the median; the most of trucks and buses, too
_REPEAT_S = 0.0125  # the app writes a reading again 10 ms later

series = ordered  # of every column that a reader takes


@dataclass(frozen=True)
class Claim:
    """One column that may be a channel. `unit` is one of `channels.known_units`; None: the log's unit is unknown."""

    column: str  # as the caller finds it
    label: str  # as the user knows it
    channel: str
    rank: float
    unit: str | None
    spelled: str


def find(columns: Iterable[tuple[str, str, str]], aliases: Mapping[str, Alias]) -> list[Claim]:
    """The claims of (column, name, unit) triples, best first.

    A unit of another quantity is not a claim. Where a name is listed for one channel, its words claim no other; and words
    alone, with no unit to confirm them, must be of one channel only.
    """
    claims: list[Claim] = []
    for column, name, unit in columns:
        found = [claim for channel, alias in aliases.items() if (claim := _claim(column, name, unit, channel, alias))]
        listed = [claim for claim in found if is_listed(claim.rank)]
        if listed or len(found) == 1 or unit:
            claims += listed or found
    return sorted(claims, key=lambda claim: claim.rank)


def bare_speed(columns: Iterable[tuple[str, str, str]], aliases: Mapping[str, Alias]) -> Claim | None:
    """The best of the (column, name, unit) triples without a unit that would be a speed with one."""
    named = [(column, name, CHANNELS["speed_kmh"].unit) for column, name, unit in columns if not unit]
    found = (claim for claim in find(named, aliases) if claim.channel == "speed_kmh")
    return next((replace(claim, unit=None, spelled="") for claim in found), None)


def _claim(column: str, name: str, unit: str, channel: str, alias: Alias) -> Claim | None:
    rank = alias.rank(plain(name))
    spelled = unit = unit or alias.units.get(plain(name), "")
    if unit and not is_unit(unit):  # perhaps not a unit but part of the name: `Speed (GPS)`
        whole = alias.rank(plain(f"{name} {unit}"))
        if whole is not None and is_listed(whole):
            rank, spelled = whole, ""
    if rank is None:
        return None
    ours = unit_for(channel, spelled) if spelled else _default(channel)
    if ours is None and (is_unit(spelled) or not is_listed(rank)):
        return None
    tagged = 0.5 if name.lstrip().startswith("[") else 0.0  # the car's own PID before one ECU's
    return Claim(column, f"{name} ({unit})" if unit else name, channel, rank + tagged, ours, spelled)


def _default(channel: str) -> str | None:
    return None if channel in _NEEDS_UNIT else CHANNELS[channel].unit


def without_repeats(readings: Mapping[str, Series]) -> tuple[dict[str, Series], list[str]]:
    """The readings without those that repeat a value within 12.5 ms, and a note where there were any."""
    kept, repeats = {}, 0
    for name, (time, value) in readings.items():
        keep = np.ones(time.size, dtype=bool)
        keep[1:] = (value[1:] != value[:-1]) | (np.diff(time) > _REPEAT_S)
        kept[name] = (time, value) if keep.all() else (time[keep], value[keep])
        repeats += int(keep.size - keep.sum())
    return kept, [f"{repeats} readings repeated 10 ms later were dropped"] if repeats else []


def settle(
    path: Path,
    claims: Sequence[Claim],
    readings: Mapping[str, Series],
    aliases: Mapping[str, Alias],
    *,
    app_power: bool,
    columns: Sequence[str],
) -> tuple[dict[str, Series], list[str]]:
    """One series per channel, in our units, and notes on what was chosen.

    `readings` holds the raw (time, value) of every claimed column. With `app_power` the log's own power is left out where
    it has current and voltage: the app multiplies values that are a second apart.
    """
    chosen: dict[str, Series] = {}
    notes: list[str] = []
    for channel in CHANNELS:
        rivals = [claim for claim in claims if claim.channel == channel]
        if (
            app_power
            and channel == "power_kw"
            and rivals
            and {"battery_current_a", "battery_voltage_v"} <= chosen.keys()
        ):
            notes.append(f"power_kw: the app's {rivals[0].label!r} is left out, since current and voltage are there")
            continue
        found = _best(path, channel, rivals, readings, aliases[channel], notes) if rivals else None
        if found is not None:
            chosen[channel] = found
    missing = [name for name in ("battery_current_a", "battery_voltage_v") if name not in chosen]
    if missing and "power_kw" not in chosen:
        notes.append(
            f"no power: no {' and no '.join(missing)} among the columns {some(columns)}; --alias can name them"
        )
    if "speed_kmh" not in chosen:
        raise LogError(_no_speed(path, [c for c in claims if c.channel == "speed_kmh"], columns, aliases["speed_kmh"]))
    return chosen, notes


def _best(
    path: Path, channel: str, rivals: list[Claim], readings: Mapping[str, Series], alias: Alias, notes: list[str]
) -> Series | None:
    usable: list[tuple[Claim, Series]] = []
    aside: list[str] = []
    for claim in rivals:
        time, value = readings[claim.column]
        if value.size == 0:
            continue
        if claim.unit is None:
            aside.append(f"{claim.label!r} (unknown unit)")
            continue
        claim = _in_watts(claim, value)
        value = from_unit(channel, value, str(claim.unit))
        if np.mean((value >= alias.low) & (value <= alias.high)) < 0.5:
            aside.append(f"{claim.label!r} (around {np.median(value):g} {CHANNELS[channel].unit}: not plausible)")
            continue
        usable.append((claim, (time, value)))
    if not usable:
        _complain(path, channel, rivals, readings)
        if aside:
            notes.append(f"{channel} is left out: {', '.join(aside)}")
        return None
    most = max(value.size for _, (_, value) in usable)
    alive = any(np.any(value != 0) for _, (_, value) in usable)
    good = [c for c in usable if c[1][1].size * 10 >= most and (not alive or np.any(c[1][1] != 0))]
    claim, result = good[0] if good else usable[0]
    aside += [repr(other.label) for other, _ in usable if other is not claim]
    more = f"; set aside: {', '.join(aside)}" if aside else ""
    notes.append(f"{channel} is {claim.label!r}{more}")
    return result


def _in_watts(claim: Claim, value: NDArray[np.float64]) -> Claim:
    """A power without a unit is in kW, or in W where kW would be absurd; one that never changes is no power."""
    if claim.channel != "power_kw" or claim.spelled or not np.ptp(value):
        return claim
    if np.any(np.quantile(np.abs(value), (0.5, 0.99)) <= _ABSURD_KW):
        return claim
    return replace(claim, unit="w", label=f"{claim.label}, in W by its size,")


def _complain(path: Path, channel: str, rivals: list[Claim], readings: Mapping[str, Series]) -> None:
    """An unknown unit of a channel that matters is an error; of another the channel is just left out."""
    for claim in rivals:
        if claim.unit is None and channel in MATTERS and readings[claim.column][1].size:
            what = f"has the unit {claim.spelled!r}, which is unknown" if claim.spelled else "has no unit"
            raise LogError(
                f"{path}: the column {claim.label!r} ({channel}) {what}; "
                f"known are {', '.join(known_units(channel))}: name it with --alias '{channel}=NAME (UNIT)' or in a --map file."
            )


def _no_speed(path: Path, claims: list[Claim], columns: Sequence[str], alias: Alias) -> str:
    if claims:
        labels = ", ".join(repr(claim.label) for claim in claims)
        return f"{path}: all values of speed ({labels}) are missing or no speeds; record a speed PID or name another column in a --map file."
    nearest = _nearest(columns, alias)
    hint = f"; the nearest is {nearest!r}" if nearest else ""
    return (
        f"{path}: there is no speed (speed_kmh) among its columns {some(columns)}{hint}; "
        "name it with --alias speed_kmh=NAME or in a --map file."
    )


def some(columns: Sequence[str]) -> str:
    """The first of them, for an error."""
    more = f" and {len(columns) - 12} more" if len(columns) > 12 else ""
    return ", ".join(map(repr, columns[:12])) + more


def _nearest(columns: Sequence[str], alias: Alias) -> str | None:
    names = [*alias.names, *alias.last]
    scored = [
        (max(difflib.SequenceMatcher(None, plain(split_unit(column)[0]), name).ratio() for name in names), column)
        for column in columns[:500]
    ]
    best = max(scored, default=(0.0, ""))
    return best[1] if best[0] >= 0.5 else None
