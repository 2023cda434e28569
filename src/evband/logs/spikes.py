"""Isolated bogus readings within a channel's limits: by their neighbours, and by what a car can do.

A reading, or two in a row (and the same value repeated for up to `PLATEAU_S` counts as one), is a spike if it stands out from both its neighbours, on the same side, by
more than `allowed` on either:

* speed: 5 km/h and what 7 m/s2 make of the time to that neighbour; nobody speeds up faster, and a dip ends in speeding up.
* power P and current I (times the pack's median voltage): 25 kW, or 5 times what nine of ten readings of this log stand out by, and on top
  the kinetic power of a car of 2.5 t over the seconds around it, max |v1^2 - v0^2|/2 per second: power without motion is bogus, a
  kick-down is not. Nor is one that the voltage confirms by sagging with it (`evband.logs.sag`).
* altitude: 10 m and a slope of 40 % over the way driven.
* slow channels (voltage, charge, temperature): a fixed size, or 8 times what nine of ten readings stand out by.

A reading of exactly 0, where the log holds hardly any at other times, is a dropout: a quarter of all that is enough. Measured on
real logs by benchmarks/checks/dirty.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from evband.logs.sag import confirmed
from evband.trips.readings import Series, trapezoids

Array = NDArray[np.float64]

LEAST = {"speed_kmh": 5.0, "elevation_m": 10.0}  # stands out by no more, at whatever distance
SLOW = {"battery_voltage_v": 25.0, "soc_pct": 5.0, "ambient_temp_c": 6.0, "hvac_power_kw": 8.0}
WATCHED = ("speed_kmh", "power_kw", "battery_current_a", "elevation_m", *SLOW)
NOMINAL_V = 350.0  # where the log has no voltage
PLATEAU_S = 2.5
PASSES = 5  # a double spike shows its second half only when the first is gone
_KW, _PEAKS, _TONNES = 25.0, 5.0, 2.5
_MS2 = 7.0
_SLOPE = 0.4
_JUMP_M = 30.0
_DROPOUT = 0.25
_FEW_ZEROS = 0.03
PIECE, MARGIN = 1 << 20, 100  # readings looked at in one go, for memory's sake; more around them
LONGEST_JUMP_S = 300.0
MOST_JUMPS = 10_000  # a channel with more of them is not an altitude


def spikes(name: str, series: Mapping[str, Series], max_gap_s: float) -> NDArray[np.bool_]:
    """[readings]: which readings of a channel are spikes, a piece at a time, each with a few readings of its neighbours."""
    time, value = series[name]
    spike = np.zeros(len(value), bool)
    for start in range(0, len(value) if name in WATCHED else 0, PIECE):
        first = max(start - MARGIN, 0)
        piece = slice(first, start + PIECE + MARGIN)
        found = _in_piece(name, {**series, name: (time[piece], value[piece])}, max_gap_s)
        spike[start : start + PIECE] = found[start - first :][:PIECE]
    return spike


def _in_piece(name: str, series: Mapping[str, Series], max_gap_s: float) -> NDArray[np.bool_]:
    """Looked for again without those found, up to `PASSES` times."""
    time, value = series[name]
    spike = np.zeros(len(value), bool)
    for _ in range(PASSES):
        left = np.flatnonzero(~spike)
        found = _look(name, {**series, name: (time[left], value[left])}, max_gap_s)
        if not found.any():
            break
        spike[left[found]] = True
    return spike


def _look(name: str, series: Mapping[str, Series], max_gap_s: float) -> NDArray[np.bool_]:
    """Spikes of one value and of two in a row, in the runs of equal values."""
    time, value = series[name]
    first = np.flatnonzero(np.append(True, np.diff(value) != 0))[: len(value)]  # of each run of one value
    last = np.append(first[1:] - 1, len(value) - 1)
    found = np.zeros(len(first), bool)
    for width in (1, 2):
        if len(first) >= width + 2:
            found |= _peaks(name, series, (time[first], time[last], value[first]), width, max_gap_s)
    return np.repeat(found, last - first + 1)


def _peaks(
    name: str, series: Mapping[str, Series], runs: tuple[Array, Array, Array], width: int, max_gap_s: float
) -> NDArray[np.bool_]:
    """[runs]: those in peaks or dips of `width` runs that stand out from the runs before and after."""
    begin, end, level = runs
    count = len(level) - width - 1  # blocks of `width` runs with a neighbour on either side
    first, last = level[1 : 1 + count], level[width : width + count]  # of each block
    before, after = level[:count], level[width + 1 :]
    low, high = np.minimum(first, last), np.maximum(first, last)
    reach = np.maximum(low - np.maximum(before, after), np.minimum(before, after) - high)  # over both neighbours
    np.maximum(reach, 0.0, out=reach)
    length = end[width : width + count] - begin[1 : 1 + count]
    reach[(length > PLATEAU_S) | (begin[width + 1 :] - end[:count] - length > max_gap_s)] = 0.0
    some = np.flatnonzero(reach > _DROPOUT * _least(name, series))  # the rest is far below any threshold
    if not len(some):
        return np.zeros(len(level), bool)
    usual = float(np.quantile(reach, 0.9, overwrite_input=True))
    steps = np.stack([begin[1 + some] - end[some], begin[width + 1 + some] - end[width + some]])  # to either neighbour
    allowed = _allowed(name, series, begin[1 + some], steps, usual)
    zeros = (low == 0.0) & (high == 0.0)
    if zeros.mean() < _FEW_ZEROS:
        allowed = np.where(zeros[some], _DROPOUT * allowed, allowed)
    edge = np.where(low > before, low, high)[some]
    sides = np.abs(np.stack([edge - before[some], edge - after[some]]))
    hit = some[(sides > allowed).all(0)]
    hit = hit[~_confirmed(name, series, runs, hit, width)]
    found = np.zeros(len(level), bool)
    for i in range(width):
        found[1 + hit + i] = True
    return found


def _confirmed(
    name: str, series: Mapping[str, Series], runs: tuple[Array, Array, Array], hit: NDArray[np.intp], width: int
) -> NDArray[np.bool_]:
    """[hits]: peaks of current or power after the runs `hit` whose every run the voltage confirms."""
    volts = series.get("battery_voltage_v")
    if name not in ("power_kw", "battery_current_a") or volts is None or len(volts[0]) < 2 or not len(hit):
        return np.zeros(len(hit), bool)
    kv = _kilovolts("battery_current_a", series) if name == "power_kw" else 1.0
    (begin, end, level), (time, value) = runs, series[name]
    amps, last = level / kv, hit + width + 1
    confirmations = [
        confirmed((time, value / kv), volts, np.stack([end[hit], begin[k], begin[last]]), np.stack([amps[hit], amps[k], amps[last]]))
        for k in (hit + 1 + i for i in range(width))
    ]  # fmt: skip
    return np.asarray(np.all(confirmations, axis=0))


def _kilovolts(name: str, series: Mapping[str, Series]) -> float:
    """What turns a reading into kW."""
    volts = series.get("battery_voltage_v")
    if name == "power_kw":
        return 1.0
    return (NOMINAL_V if volts is None or not len(volts[1]) else float(np.median(volts[1]))) / 1000.0


def _least(name: str, series: Mapping[str, Series]) -> float:
    """The smallest of the channel's thresholds."""
    return {**LEAST, **SLOW}.get(name) or _KW / _kilovolts(name, series)


def _allowed(name: str, series: Mapping[str, Series], at: Array, steps: Array, usual: float) -> Array:
    """[2, runs] or [runs]: how far a true reading may stand out from its neighbours."""
    if name == "speed_kmh":
        return LEAST[name] + 3.6 * _MS2 * steps
    speed = series.get("speed_kmh")
    if speed is not None and not len(speed[0]):
        speed = None
    if name == "elevation_m":
        way = np.zeros(len(at)) if speed is None else np.abs(np.interp(at, *speed)) / 3.6
        return LEAST[name] + _SLOPE * way * steps
    if name in SLOW:
        return np.full(len(at), max(SLOW[name], 8.0 * usual))
    kv = _kilovolts(name, series)
    kinetic = np.zeros(len(at)) if speed is None else _TONNES * _kinetic(speed, at)
    return np.asarray((max(_KW, _PEAKS * usual * kv) + kinetic) / kv)


def _kinetic(speed: Series, at: Array) -> Array:
    """Largest change of v^2/2 per second within two seconds either side, in kW per tonne."""
    square = np.stack([np.interp(at + shift, *speed) ** 2 for shift in (-2.0, -1.0, 0.0, 1.0, 2.0)]) / 3.6**2
    return np.asarray(np.abs(np.diff(square, axis=0)).max(0) / 2.0)


def altitude_jumps(elevation: Series, speed: Series | None) -> NDArray[np.bool_]:
    """[readings]: stretches of altitude that begin and end with a jump no road makes and lie off the level before and after.

    A jump is more than 30 m and a slope of 40 % over the way between two readings; it parts two stretches. The longest stretch is
    trusted; going out from it, a stretch that fits the last trusted one (no jump between their ends) is trusted as well, and one that
    does not is bogus if it lasts up to `LONGEST_JUMP_S` or holds nothing but zeros.
    """
    time, value = elevation
    bogus = np.zeros(len(value), bool)
    if len(value) < 3:
        return bogus
    way = np.diff(time) * 40.0 if speed is None or not len(speed[0]) else _driven(speed, time)
    cuts = np.flatnonzero(np.abs(np.diff(value)) > _JUMP_M + _SLOPE * way) + 1
    if not len(cuts) or len(cuts) > MOST_JUMPS:
        return bogus
    along = np.concatenate([[0.0], np.cumsum(way)])
    stretches = list(zip([0, *cuts.tolist()], [*(cuts - 1).tolist(), len(value) - 1], strict=True))
    zeros = [not value[a : b + 1].any() for a, b in stretches]
    start = max(range(len(stretches)), key=lambda k: (not zeros[k], stretches[k][1] - stretches[k][0]))
    for way_out, inner, outer in ((range(start + 1, len(stretches)), 1, 0), (range(start - 1, -1, -1), 0, 1)):
        trusted = stretches[start][inner]
        for k in way_out:
            near = stretches[k][outer]
            apart = _JUMP_M + _SLOPE * abs(along[near] - along[trusted])
            fits = not zeros[k] and abs(value[near] - value[trusted]) <= apart
            long = not zeros[k] and time[stretches[k][1]] - time[stretches[k][0]] > LONGEST_JUMP_S
            if fits or long:
                trusted = stretches[k][inner]
            else:
                bogus[stretches[k][0] : stretches[k][1] + 1] = True
    return bogus


def _driven(speed: Series, time: Array) -> Array:
    """Metres between consecutive instants."""
    whole = np.concatenate([[0.0], np.cumsum(np.abs(trapezoids(speed)) / 3.6)])
    return np.diff(np.interp(time, speed[0], whole))
