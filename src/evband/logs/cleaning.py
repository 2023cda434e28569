"""Cleaning: readings as logged in; readings that can be trusted, and a list of findings, out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evband.channels import CHANNELS, CHARGING_KW, ELECTRICAL, VALUES
from evband.logs.fills import straight_line_fills
from evband.logs.spikes import WATCHED, altitude_jumps, spikes
from evband.logs.suspicion import suspicions, unit_by_range
from evband.trips.power import gap_of, rebuild_power
from evband.trips.quality import Action, Cleaning, Finding, Kind
from evband.trips.readings import Series, not_empty

Array = NDArray[np.float64]
AllSeries = dict[str, Series]
Stretch = tuple[float, float]  # start_s, end_s

_LIVELY = ("speed_kmh", "acceleration_ms2", "motor_torque_nm", "motor_rpm", "battery_current_a", "power_kw")
PARKED_KMH = 0.5  # a parked car does not creep, as one in traffic may (`channels.STANDING_KMH`)


def clean(series: Mapping[str, Series], options: Cleaning) -> tuple[AllSeries, list[Finding]]:
    """Drop what `options` says, rebuild power where the log has none, and report everything found."""
    found: list[Finding] = []
    kept = not_empty({n: outside_limits(n, series[n], options, found) for n in VALUES if n in series})
    kept = _spikes(_jumps(kept, options, found), options, found)
    kept = _fills(kept, options, found)
    if "power_kw" not in kept and {"battery_current_a", "battery_voltage_v"} <= kept.keys():
        rebuilt = rebuild_power(kept["battery_current_a"], kept["battery_voltage_v"])
        kept["power_kw"] = outside_limits("power_kw", rebuilt, options, found)
    kept = not_empty(kept)
    found += suspicions(kept, found)
    kept = not_empty(_standing(kept, options, found))
    kept = _stuck(kept, options, found)
    _gaps(kept, options, found)
    return not_empty(kept), found


def _jumps(series: AllSeries, options: Cleaning, found: list[Finding]) -> AllSeries:
    """Altitudes that no road leads to."""
    if "elevation_m" not in series:
        return series
    time, value = series["elevation_m"]
    bogus = altitude_jumps(series["elevation_m"], series.get("speed_kmh"))
    if not bogus.any():
        return series
    text = f"{bogus.sum()} readings lie off the road before and after them (such as {value[bogus][0]:g} m at {time[bogus][0]:.0f} s)"
    found.append(_finding("jump", "elevation_m", time[bogus], options.jumps, text))
    return {**series, "elevation_m": (time[~bogus], value[~bogus])} if options.jumps else series


def _spikes(series: AllSeries, options: Cleaning, found: list[Finding]) -> AllSeries:
    """Lone readings that neither neighbours nor motion explain; speed first, since the others are judged by it."""
    kept = dict(series)
    for name in sorted(WATCHED, key=lambda name: name != "speed_kmh"):
        if name not in kept or not (spike := spikes(name, kept, options.max_gap_s)).any():
            continue
        time, value = kept[name]
        worst = int(np.flatnonzero(spike)[0])
        text = f"{spike.sum()} lone readings that neither neighbours nor motion explain (such as {value[worst]:g} at {time[worst]:.0f} s)"
        found.append(_finding("spike", name, time[spike], options.spikes, text))
        if options.spikes:
            kept[name] = (time[~spike], value[~spike])
    return kept


def outside_limits(name: str, readings: Series, options: Cleaning, found: list[Finding]) -> Series:
    """Values that cannot be: outside the channel's limits."""
    time, value = readings
    low, high = options.limits.get(name, (CHANNELS[name].low, CHANNELS[name].high))
    bad = ~((value >= low) & (value <= high))
    if bad.any():
        worst = value[bad][np.argmax(np.abs(np.nan_to_num(value[bad], posinf=np.inf, neginf=-np.inf)))]
        text = f"{bad.sum()} readings outside {low:g}..{high:g} {CHANNELS[name].unit} (such as {worst:g})"
        found.append(_finding("glitch", name, time[bad], options.glitches, text))
        if hint := unit_by_range(name, readings, low, high):
            found.append(hint)
        if options.glitches:
            time, value = time[~bad], value[~bad]
    return time, value


def _fills(series: AllSeries, options: Cleaning, found: list[Finding]) -> AllSeries:
    """Straight-line fills: nobody drove those seconds, so all channels lose them and a gap is left."""
    fills = straight_line_fills(series, options.fill_s)
    for start, end in fills:
        text = f"every channel runs straight from {start:.1f} to {end:.1f} s: a hole that was filled in"
        found.append(_stretch("fill", None, start, end, options.fills, text))
    return _without(series, fills) if options.fills else series


def _standing(series: AllSeries, options: Cleaning, found: list[Finding]) -> AllSeries:
    """Charging (standing, power coming in) and parked stretches."""
    if "speed_kmh" not in series:
        return series
    time, speed = series["speed_kmh"]
    cuts: list[Stretch] = []
    if "power_kw" in series:
        instants, kw = series["power_kw"]
        charging = (kw < CHARGING_KW) & (np.abs(_held(series["speed_kmh"], instants)) < PARKED_KMH)
        for start, end in _runs(instants, charging, options.charging_s, options.max_gap_s):
            text = f"the car stands and takes power in from {start:.0f} to {end:.0f} s: it charges"
            found.append(_stretch("charging", None, start, end, options.charging, text))
            cuts += [(start, end)] if options.charging else []
    for start, end in _runs(time, np.abs(speed) < PARKED_KMH, options.parked_s, options.max_gap_s):
        text = f"the car is parked from {start:.0f} to {end:.0f} s"
        if options.parked:
            text += f"; all but {options.parked_margin_s:g} s at either end is left out"
            cuts.append((start + options.parked_margin_s, end - options.parked_margin_s))
        found.append(_stretch("parked", None, start, end, options.parked, text))
    return _without(series, cuts)


def _stuck(series: AllSeries, options: Cleaning, found: list[Finding]) -> AllSeries:
    """A channel that repeats one value, at ten readings or more, while the car moves and its other readings change."""
    if "speed_kmh" not in series:
        return series
    kept = dict(series)
    for name, (instants, value) in series.items():
        if name not in _LIVELY:
            continue
        same = np.zeros(len(value), bool)
        same[1:] = (np.diff(value) == 0) & (_held(series["speed_kmh"], instants)[1:] > 5.0)
        stretches = [
            run for run in _runs(instants, same, options.stuck_s, options.max_gap_s) if _count(instants, run) >= 10
        ]
        for start, end in stretches:
            text = f"it repeats one value from {start:.0f} to {end:.0f} s while the car moves"
            found.append(_stretch("stuck", name, start, end, options.stuck, text))
        if options.stuck:
            kept[name] = _without({name: kept[name]}, stretches)[name]
    return kept


def _held(readings: Series, instants: Array) -> Array:
    """The last reading at or before each instant; the first before that."""
    time, value = readings
    return np.asarray(value[np.clip(np.searchsorted(time, instants, side="right") - 1, 0, None)])


def _gaps(series: AllSeries, options: Cleaning, found: list[Finding]) -> None:
    """Where speed, or any other fast channel, falls silent for longer than a gap."""
    for name, (time, _) in series.items():
        limit = gap_of(time, max(options.max_gap_s, CHANNELS[name].max_age_s))
        after = np.flatnonzero(np.diff(time) > limit)
        if len(after):
            longest = after[np.argmax(np.diff(time)[after])]
            text = f"{len(after)} gap{'s' * (len(after) > 1)} of more than {limit:g} s, the longest {time[longest + 1] - time[longest]:.0f} s"
            action: Action = "kept" if name in ELECTRICAL else "new segment"  # without power there, the motion goes on
            found.append(Finding("gap", name, len(after), float(time[longest]), float(time[longest + 1]), action, text))


def _runs(time: Array, flag: NDArray[np.bool_], least_s: float, max_gap_s: float) -> list[Stretch]:
    """Stretches of at least `least_s` in which `flag` holds and no gap falls."""
    if not flag.any():
        return []
    joins = flag[1:] & flag[:-1] & (np.diff(time) <= max(max_gap_s, 0.0))
    starts = np.flatnonzero(flag & ~np.concatenate([[False], joins]))
    ends = np.flatnonzero(flag & ~np.concatenate([joins, [False]]))
    long = time[ends] - time[starts] >= least_s
    return [(float(a), float(b)) for a, b in zip(time[starts[long]], time[ends[long]], strict=True)]


def _count(time: Array, stretch: Stretch) -> int:
    return int(np.searchsorted(time, stretch[1], side="right") - np.searchsorted(time, stretch[0]))


def _without(series: AllSeries, stretches: list[Stretch]) -> AllSeries:
    """All channels without the readings inside these stretches."""
    kept = dict(series)
    for start, end in stretches:
        for name, (time, value) in kept.items():
            outside = (time < start) | (time > end)
            if not outside.all():
                kept[name] = (time[outside], value[outside])
    return kept


def _finding(kind: Kind, channel: str, time: Array, dropped: bool, text: str) -> Finding:
    action: Action = "dropped" if dropped else "kept"
    return Finding(kind, channel, len(time), float(time[0]), float(time[-1]), action, text)


def _stretch(kind: Kind, channel: str | None, start: float, end: float, dropped: bool, text: str) -> Finding:
    return Finding(kind, channel, 1, start, end, "dropped" if dropped else "kept", text)
