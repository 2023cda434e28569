"""Recordings that lie inside another one: two apps on one drive, or an export cut out of another.

Left in, they count as trips of their own: a model would be calibrated on a drive it was trained on. Known by content: of every run of
`ROWS` speed readings (values, the power known with them, and the times between them, at least `SPEEDS` of the speeds different: a
schedule driven twice has other power) a hash is taken, one in `ONE_IN` of
all hashes is kept, by its value, so that both recordings keep the same ones; a recording lies inside another if that holds `SHARE` of
its kept hashes. Where both have a date (seconds since 1970), also by two clocks that agree: they overlap for most of the shorter, and
the speeds read off both go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from evband.trips import Trip
from evband.trips.quality import Action, Finding, Quality

ROWS = 12
SPEEDS = 5
ONE_IN = 8
SHARE = 0.5
LEAST = 3  # kept hashes that a recording needs to be known by
_DATED_S = 5e8  # times later than this count from 1970
_ALIKE, _OFF_KMH = 0.97, 3.0


def without_copies(trips: list[Trip], files: Sequence[int], drop: bool = True) -> list[Trip]:
    """The trips that lie inside no other file's; each of the others is noted in the report of the one that holds it."""
    inside = copies(trips, files)
    if not inside:
        return trips
    notes: dict[str, list[Finding]] = {}
    by_id = {trip.trip_id: trip for trip in trips}
    for copy, original in inside.items():
        time = by_id[copy].table["time_s"]
        outcome = "and is left out" if drop else "and is kept"
        text = f"the recording {copy} ({_where(by_id[copy])}) lies inside this one {outcome}"
        action: Action = "dropped" if drop else "kept"
        notes.setdefault(original, []).append(
            Finding("copy", None, len(time), float(time[0]), float(time[-1]), action, text)
        )
    kept = [trip for trip in trips if not (drop and trip.trip_id in inside)]
    return [_with(trip, notes.get(trip.trip_id, [])) for trip in kept]


def copies(trips: list[Trip], files: Sequence[int]) -> dict[str, str]:
    """Id of each recording that lies inside another -> the id of that one; of two alike the later is the copy.

    `files` numbers the file of each: trips that one table keeps apart are apart.
    """
    if len(set(files)) < 2:
        return {}
    marks = [_marks(trip) for trip in trips]
    holders: dict[int, list[int]] = {}
    for number, kept in enumerate(marks):
        for mark in kept:
            holders.setdefault(mark, []).append(number)
    spans = np.array([(float(trip.table["time_s"][0]), float(trip.table["time_s"][-1])) for trip in trips])
    found = _equal(trips, files)
    for number in sorted(range(len(trips)), key=lambda n: (len(marks[n]), float(spans[n, 1] - spans[n, 0]), -n)):
        if number in found:
            continue
        shared: dict[int, int] = {}
        for mark in marks[number]:
            for other in holders[mark]:
                shared[other] = shared.get(other, 0) + 1
        others = [o for o, count in shared.items() if files[o] != files[number] and o not in found and count >= max(LEAST, SHARE * len(marks[number]))]  # fmt: skip
        if not others:
            others = [
                o
                for o in _around(spans, number)
                if files[o] != files[number] and o not in found and _same_motion(trips[number], trips[o])
            ]
        if others:
            found[number] = max(others, key=lambda o: (shared.get(o, 0), len(marks[o])))
    return {trips[copy].trip_id: trips[original].trip_id for copy, original in found.items()}


def _equal(trips: list[Trip], files: Sequence[int]) -> dict[int, int]:
    """Recordings given twice, however short."""
    first: dict[str, int] = {}
    found: dict[int, int] = {}
    for number, trip in enumerate(trips):
        original = first.setdefault(trip.fingerprint, number)
        if files[original] != files[number]:
            found[number] = original
    return found


def _marks(trip: Trip) -> set[int]:
    """The kept hashes of a recording's runs of speed readings."""
    time, speed = trip.series("speed_kmh")
    if len(time) < ROWS:
        return set()
    values = np.rint(speed.clip(-1e6, 1e6) * 100.0).astype(np.int64)
    steps = np.rint(np.diff(time, prepend=time[0]).clip(0.0, 1e6) * 100.0).astype(np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(values, ROWS)
    varied = (np.diff(windows, axis=1) != 0).sum(1) >= SPEEDS - 1
    power = _power_at(trip, time)
    weights = np.random.default_rng(1).integers(1 << 63, size=3 * ROWS, dtype=np.uint64) | np.uint64(1)
    mixed = np.zeros(len(windows), np.uint64)
    for row in range(ROWS):
        mixed += values[row : row + len(windows)].view(np.uint64) * weights[row]
        if row:
            mixed += steps[row : row + len(windows)].view(np.uint64) * weights[ROWS + row]
            mixed += power[row : row + len(windows)].view(np.uint64) * weights[2 * ROWS + row]
    mixed ^= mixed >> np.uint64(29)
    mixed *= weights[0]
    mixed ^= mixed >> np.uint64(32)
    return set(mixed[varied & (mixed % np.uint64(ONE_IN) == 0)].tolist())


def _power_at(trip: Trip, time: NDArray[np.float64]) -> NDArray[np.int64]:
    """The last power reading at or before each instant, in W; 0 before the first."""
    if not trip.has("power_kw"):
        return np.zeros(len(time), np.int64)
    at, power = trip.series("power_kw")
    last = np.searchsorted(at, time, side="right") - 1
    return np.where(last >= 0, np.rint(power[np.maximum(last, 0)].clip(-1e6, 1e6) * 1000.0), 0.0).astype(np.int64)


def _around(spans: NDArray[np.float64], number: int) -> list[int]:
    """The longer dated recordings within whose time this dated one lies for the most part."""
    start, end = spans[number]
    if start < _DATED_S:
        return []
    both = np.minimum(end, spans[:, 1]) - np.maximum(start, spans[:, 0])
    length = spans[:, 1] - spans[:, 0]
    order = np.arange(len(spans))
    longer = (length > end - start) | ((length == end - start) & (order < number))
    return np.flatnonzero(longer & (spans[:, 0] >= _DATED_S) & (both >= max(60.0, 0.8 * (end - start)))).tolist()


def _same_motion(one: Trip, two: Trip) -> bool:
    """Whether two recordings of one time read the same speeds, and the same power where both have it."""
    first = max(one.table["time_s"][0], two.table["time_s"][0])
    at = np.arange(first, min(one.table["time_s"][-1], two.table["time_s"][-1]), 1.0)[:20_000]
    a, b = (np.interp(at, *trip.series("speed_kmh")) for trip in (one, two))
    if min(float(np.std(a)), float(np.std(b))) < 3.0:
        return False
    alike = bool(np.corrcoef(a, b)[0, 1] > _ALIKE and np.median(np.abs(a - b)) < _OFF_KMH)
    if not alike or not (one.has("power_kw") and two.has("power_kw")):
        return alike
    a, b = (np.interp(at, *trip.series("power_kw")) for trip in (one, two))
    return bool(np.median(np.abs(a - b)) <= 0.1 * max(float(np.std(a)), 1e-3))


def _where(trip: Trip) -> str:
    return trip.report.source if trip.report else "a table"


def _with(trip: Trip, findings: list[Finding]) -> Trip:
    if not findings:
        return trip
    report = trip.report or Quality("trip")
    return replace(trip, report=replace(report, findings=(*report.findings, *findings)))
