"""The border of saved streams: a state file is checked in full before any of it is taken, so that whatever a hand, a disk or
another program did to it, the stream either goes on as before or refuses in one sentence.

Every number is finite and of a size that a drive can have; what hangs together must still do so (the open bin is the one that the
last time falls into, a reading before another is earlier, variances are variances).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evband.channels import CHANNELS, EDGES
from evband.energy.range import LEVELS
from evband.errors import SettingsError
from evband.logs.border import LATEST_S
from evband.streaming.ticks import NUMBERS

HUGE = 1e9  # no speed, power, energy or sum of a trip is larger
SPEED = "speed_kmh"
_COUNTERS = {"lines": 1e15, "km": 1e7, "seconds": 1e10, "size": 1e15}
_BAND = {*NUMBERS, "warmup", "outside"}
_BECAUSE = {f"{name}_km" for name in ("change", "slope", "temperature", "speed", "auxiliaries", "ahead", "other")}


class Damaged(ValueError):
    """Which field is wrong, and how."""


def check(saved: Mapping[str, Any], fresh: Mapping[str, Any], width_s: float) -> None:
    """Raise a SettingsError unless `saved` is a state of a stream like the one that begins with `fresh`."""
    try:
        missing = [name for name in fresh if name not in saved]
        if missing:
            raise Damaged(f"{missing[0]} is missing")
        _check_trip(saved, fresh)
        _check_bins(_object(saved, "bins"), saved["time"], width_s)
        _check_stream(_object(saved, "stream"), fresh["stream"])
        if fresh["past"] is not None:
            _check_past(_object(saved, "past"))
        _check_reasons(_object(saved, "reasons"))
    except Damaged as problem:
        raise SettingsError(f"The saved state of the stream is damaged ({problem}); start without it.") from None
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, RecursionError) as problem:
        raise SettingsError(
            f"The saved state of the stream is damaged ({type(problem).__name__}); start without it."
        ) from None


def _number(value: Any, name: str, low: float = -HUGE, high: float = HUGE) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise Damaged(f"{name} is {str(value)[:30]}, not a number in {low:g}..{high:g}")
    return float(value)


def _whole(value: Any, name: str, high: float = 1e15) -> int:
    if not isinstance(value, int):
        raise Damaged(f"{name} is {str(value)[:30]}, not a whole number")
    return int(_number(value, name, 0, high))


def _flag(value: Any, name: str) -> None:
    if not isinstance(value, bool):
        raise Damaged(f"{name} is {str(value)[:30]}, neither true nor false")


def _object(saved: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = saved[name]
    if not isinstance(value, Mapping):
        raise Damaged(f"{name} is not an object")
    return value


def _numbers(value: Any, name: str, count: int, most: float = HUGE) -> None:
    if not isinstance(value, list | tuple) or len(value) != count:
        raise Damaged(f"{name} does not hold {count} numbers")
    for item in value:
        _number(item, name, -most, most)


def _quantiles(value: Any, name: str) -> None:
    if value is not None:
        if not isinstance(value, Mapping) or set(value) != set(LEVELS):
            raise Damaged(f"{name} does not hold p05, p50 and p95")
        for item in value.values():
            _number(item, name)


def _check_trip(saved: Mapping[str, Any], fresh: Mapping[str, Any]) -> None:
    """Counters, what was shown last, and the sums of the trip."""
    _whole(saved["lines"], "lines")
    for name, most in _COUNTERS.items():
        _number(saved[name], name, 0.0, most)
    if 0.0 < saved["seconds"] < 1e-6:  # it counts grid steps; its square divides
        raise Damaged("seconds is next to nothing")
    for name in ("mean_kwh", "measured_kwh"):
        _number(saved[name], name)
    for name in ("time", "band_s"):
        if saved[name] is not None:
            _number(saved[name], name, -LATEST_S, LATEST_S)
    _number(saved["_looked"], "_looked", -1e18, LATEST_S)
    if saved["soc"] is not None:
        _number(saved["soc"], "soc", CHANNELS["soc_pct"].low, CHANNELS["soc_pct"].high)
    if saved["trip"] is not None and not isinstance(saved["trip"], str):
        raise Damaged("trip is not a text")
    _quantiles(saved["range"], "range")
    shown = _object(saved, "shown")
    if not set(shown) >= _BAND or set(shown) - _BAND - {"energy_kwh", "range_km", "because"}:
        raise Damaged("shown is not a band")
    for name, value in shown.items():
        if name in ("warmup", "outside"):
            _flag(value, name)
        elif name == "because":
            _because(value)
        elif name.endswith("_kw"):
            if value is not None:
                _number(value, name)
        else:
            _quantiles(value, name)
    _numbers(saved["members_kwh"], "members_kwh", len(fresh["members_kwh"]))


def _because(value: Any) -> None:
    if value is not None:
        if not isinstance(value, Mapping) or set(value) != _BECAUSE:
            raise Damaged("because does not hold the reasons")
        for name, item in value.items():
            _number(item, name)


def _check_reasons(reasons: Mapping[str, Any]) -> None:
    """Sums of the trip and the mark of a minute ago."""
    for name, value in _object(reasons, "sums").items():
        _number(value, name)
    for name, value in (_object(reasons, "mark") if reasons["mark"] is not None else {}).items():
        _number(value, name, -LATEST_S, LATEST_S)
    _because(reasons["because"])
    if reasons["before"] is not None:
        _check_past(_object(reasons, "before"))


def _pair(value: Any, name: str) -> tuple[float, float]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise Damaged(f"{name} is not a time and a value")
    return _number(value[0], name, -LATEST_S, LATEST_S), _number(value[1], name)


def _channel(name: Any) -> str:
    if not isinstance(name, str) or (name not in CHANNELS and name not in EDGES):
        raise Damaged(f"{str(name)[:30]} is not a channel")
    return name


def _check_bins(bins: Mapping[str, Any], time: Any, width_s: float) -> None:
    """Readings wait for their bin to end; the open bin must be the one that the last time falls into."""
    number = _whole(bins["open"], "open")
    _flag(bins["broken"], "broken")
    last = {_channel(name): _pair(pair, "last") for name, pair in _object(bins, "last").items()}
    if time is not None and any(when > time for when, _ in last.values()):
        raise Damaged("a reading is later than the last line")
    for name, pair in _object(bins, "sums").items():
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise Damaged("sums does not hold a sum and a count")
        _number(pair[0], f"sums of {_channel(name)}", -1e12, 1e12)
        _whole(pair[1], "the count of sums")
    if not isinstance(bins["early"], list) or not isinstance(bins["known"], list):
        raise Damaged("early or known is not a list")
    for when, values in bins["early"]:
        _number(when, "early", -LATEST_S, LATEST_S)
        for name, value in values.items():
            _number(value, f"early {_channel(name)}")
    for name in bins["known"]:
        _channel(name)
    mark = _pair(bins["mark"], "mark")
    after, before = (None if bins[name] is None else _pair(bins[name], name) for name in ("next", "before"))
    if bins["origin"] is None:
        if number or after or before or (time is None and last):
            raise Damaged("a bin is open before the first speed")
        return
    origin = _number(bins["origin"], "origin", -LATEST_S, LATEST_S)
    if time is None or SPEED not in last or abs((time - origin) / width_s - number) > 2.0:
        raise Damaged("the open bin is not that of the last line")
    if (after and after[0] <= mark[0]) or (before and before[0] >= last[SPEED][0]):
        raise Damaged("its speed readings are not in order")


def _check_stream(stream: Mapping[str, Any], fresh: Mapping[str, Any]) -> None:
    """The network's memory: hidden values lie in -1..1 by construction, cells move by one per step at most."""
    _whole(stream["since"], "since")
    _numbers(stream["h"], "h", len(fresh["h"]), 1.0 + 1e-6)
    _numbers(stream["c"], "c", len(fresh["c"]))
    _check_memory(stream["features"], fresh["features"])
    if stream["online"] is not None:
        _check_online(_object(stream, "online"))
    if stream["learner"] is not None:
        _object(stream, "learner")  # which checks itself


def _check_memory(saved: Any, fresh: Mapping[str, Any]) -> None:
    """What features remember: the same names as a fresh stream has, finite numbers or nothing."""
    if not isinstance(saved, Mapping) or set(saved) != set(fresh):
        raise Damaged("features do not hold what they should")
    for name, value in saved.items():
        if value is not None:
            _number(value, f"features {name}", 0.0 if name in ("w", "sss", "ticks", "seen") else -1e15, 1e15)


def _check_past(past: Mapping[str, Any]) -> None:
    """The error so far: two means with a covariance, and a block being filled."""
    for name in ("b", "u", "bu", "_error"):
        _number(past[name], name)
    for name in ("bb", "uu", "_size", "_age"):
        _number(past[name], name, 0.0)
    _whole(past["_rows"], "_rows", 1e9)
    if past["bu"] ** 2 > past["bb"] * past["uu"] * (1 + 1e-6) + 1e-12:
        raise Damaged("its error so far has no covariance that can be")


def _check_online(online: Mapping[str, Any]) -> None:
    """What was learned of offset and width; its settings are checked where it is made."""
    for name in ("level", "hz", "start_s", "gamma", "limit", "offset_kw"):
        _number(online[name], name)
    if online["offset_s"] is not None:
        _number(online["offset_s"], "offset_s", 1e-3)
    if not 1.0 < online["limit"] <= 1e6 or abs(_number(online["log_stretch"], "log_stretch")) > math.log(
        online["limit"]
    ):
        raise Damaged("its stretch is beyond its limit")
    _whole(online["ticks"], "ticks")
    if online["waiting"] is not None:
        _numbers(online["waiting"], "waiting", 3)
