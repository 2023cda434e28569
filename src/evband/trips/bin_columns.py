"""`evband.trips.bins` for many vehicles at once: the same rows, kept as columns, filled by one compiled loop over readings.

Ten thousand vehicles at 1 Hz are ten thousand readings per second; as dictionaries (`Bins`) they cost more than the
network. Here a vehicle is an index, a channel is a column, and a missing value is NaN. A bin closes with the first
reading at or after its end, as in `Bins`, or by the clock (`close`), so that a slow feed still gets its rows on time.

Beside `Bins` it also parts drives: silence of `NEW_TRIP_S` begins another, and a vehicle set `idle` gives no rows until it moves.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.channels import EDGES, NEW_TRIP_S, STANDING_KMH
from evband.compiled import compiled
from evband.trips.between import SLOW_BINS
from evband.trips.between_numbers import end_speed, mean_speed, slope_of, speed_at, start_speed, sureness
from evband.trips.bin_layout import EARLY, Array, Bins, Layout, Rows
from evband.trips.grid import MAX_GAP_S, UNCOUNTED, held_s
from evband.trips.kept import kept, restore
from evband.trips.motion import SAME

TAKEN, DUPLICATE, LATE = 0, 1, 2  # what became of a reading


@compiled()
def _forget(b: Bins, speed: int, c: int) -> None:
    """A new drive: the next speed reading is its first row. Slow channels stay known for as long as they are young."""
    b.origin[c] = np.nan
    b.open[c] = 0
    b.last_t[c, speed] = np.nan
    b.last_v[c, speed] = np.nan
    b.sums[c] = 0.0
    b.counts[c] = 0
    b.mark[c] = np.nan
    b.next[c] = np.nan
    b.before[c] = np.nan
    b.broken[c] = True
    b.known[c] = -1


@compiled()
def _edges(w: Layout, b: Bins, c: int, end: float) -> tuple[float, float]:
    """Speed at the bin's start and end, as `evband.trips.motion` has it."""
    time, speed = b.last_t[c, w.speed], b.last_v[c, w.speed]
    after = b.next[c] if b.next[c, 0] == b.next[c, 0] else b.mark[c]
    start = start_speed(end - w.width, b.mark[c, 0], b.mark[c, 1], after[0], after[1])
    if b.before[c, 0] == b.before[c, 0]:
        return start, end_speed(end, time, speed, b.before[c, 0], b.before[c, 1])
    return start, max(speed, 0.0)


@compiled()
def _slow_edges(w: Layout, b: Bins, c: int, end: float, empty: bool) -> tuple[float, float]:
    """The same where readings lie further apart than the grid; NaN where they do not."""
    time, speed = b.last_t[c, w.speed], b.last_v[c, w.speed]
    if not empty and not b.next[c, 0] - b.mark[c, 0] > SLOW_BINS * w.width:
        return np.nan, np.nan
    slope = 0.0
    if b.before[c, 0] == b.before[c, 0]:
        slope = slope_of(time, speed, b.before[c, 0], b.before[c, 1], w.width)
    if b.last_t[c, w.acceleration] > time - w.width:
        slope = 3.6 * b.last_v[c, w.acceleration]
    if empty:
        start = speed_at(end - w.width, time, speed, slope)
    else:
        after, back = b.next[c], slope_of(b.next[c, 0], b.next[c, 1], b.mark[c, 0], b.mark[c, 1], w.width)
        start = speed_at(end - w.width, after[0], after[1], back)
    return start, speed_at(end, time, speed, slope)


@compiled()
def _close(w: Layout, b: Bins, c: int, out: Rows, count: int) -> bool:
    """Fill row `count` with the open bin of vehicle `c`; False where it has no speed."""
    row = out.values[count]
    end = b.origin[c] + w.width * b.open[c]
    channels, readings, measured = len(w.max_age), b.counts[c, w.speed], b.counts[c, w.acceleration] > 0
    known = 0
    for j in range(channels):
        row[j] = np.nan
        if b.counts[c, j] > 0:
            row[j] = b.sums[c, j] / b.counts[c, j]
        elif j != w.power and end - b.last_t[c, j] <= w.max_age[j]:
            row[j] = b.last_v[c, j]
        b.sums[c, j] = 0.0
        b.counts[c, j] = 0
        if w.counted[j] and row[j] == row[j]:
            known |= 1 << j
    b_time, b_speed = b.last_t[c, w.speed], b.last_v[c, w.speed]
    seen = row[w.speed] == row[w.speed]
    if seen:
        start, stop = _slow_edges(w, b, c, end, readings == 0)
        if start == start:
            row[w.speed], change = (start + stop) / 2.0, stop - start
            if not measured:
                row[w.acceleration] = np.nan
        else:
            start, stop = _edges(w, b, c, end)
            change = b_speed - b.mark[c, 1]
            if w.lag > 0.0 and readings == 1:
                row[w.speed] = mean_speed(start, stop, w.lag)
        row[channels], row[channels + 1] = start, stop
        out.sensed[count] = row[w.acceleration] == row[w.acceleration]
        if not out.sensed[count]:
            row[w.acceleration] = change / 3.6 / w.width
    b.mark[c, 0], b.mark[c, 1] = b_time, b_speed
    b.next[c] = np.nan
    if not seen:
        b.broken[c] = True
        return False
    if known != b.known[c]:
        b.broken[c] = True
    b.known[c] = known
    return True


@compiled()
def _close_until(w: Layout, b: Bins, c: int, number: int, out: Rows, count: int) -> int:
    """Close the bins before `number`; those without a speed are left out, however many."""
    while b.open[c] < number:
        end, first = b.origin[c] + w.width * b.open[c], b.open[c] == 0
        readings, sampled = b.counts[c, w.speed], b.counts[c, w.power] == 1
        if _close(w, b, c, out, count):
            out.car[count], out.time[count] = c, end
            out.start[count], out.first[count] = b.broken[c], first
            age, step = max(end - b.last_t[c, w.speed], 0.0), b.last_t[c, w.speed] - b.before[c, 0]
            out.age[count], out.readings[count], out.sampled[count], out.sure[count] = age, readings, sampled, 1.0
            if readings == 0 or step > SLOW_BINS * w.width:
                out.sure[count] = sureness(step if step == step else 0.0, age, w.width)
            b.broken[c] = False
            b.open[c] += 1
            count += 1
        else:
            b.open[c] = number
    return count


@compiled()
def _keep_early(w: Layout, b: Bins, c: int, time: float, values: Array) -> None:
    """A reading before the first speed, in place of the oldest one that is kept."""
    k = np.argmin(b.early_t[c])
    b.early_t[c, k] = time
    b.early_v[c, k] = values
    b.early_v[c, k, w.speed] = np.nan  # of a car that stood


@compiled()
def _begin(w: Layout, b: Bins, c: int, time: float, speed: float) -> None:
    """The first speed reading, whose bin already holds what was read less than its width before."""
    b.origin[c] = time
    b.mark[c, 0], b.mark[c, 1] = time, speed
    for k in range(len(b.early_t[c])):
        if b.early_t[c, k] > time - w.width * (1.0 - SAME):
            for j in range(len(w.max_age)):
                if b.early_v[c, k, j] == b.early_v[c, k, j]:
                    b.sums[c, j] += b.early_v[c, k, j]
                    b.counts[c, j] += 1
    b.early_t[c] = -np.inf


@compiled()
def _add(w: Layout, b: Bins, c: int, time: float, values: Array, out: Rows, count: int) -> int:
    """One reading of vehicle `c`, not older than those before it."""
    channels, moving = len(values), values[w.speed] >= STANDING_KMH
    if time - b.newest[c] > NEW_TRIP_S or (b.idle[c] and moving):
        _forget(b, w.speed, c)
        b.idle[c] = b.idle[c] and not moving
    b.newest[c] = time
    number = 0
    begun = b.origin[c] == b.origin[c] and not b.idle[c]
    if not begun and not b.idle[c] and values[w.speed] == values[w.speed]:
        begun = True
        _begin(w, b, c, time, values[w.speed])
    if not begun:
        _keep_early(w, b, c, time, values)
    if begun:
        number = max(math.ceil((time - b.origin[c]) / w.width - SAME), b.open[c])
        if number > b.open[c]:
            count = _close_until(w, b, c, number, out, count)
        speed, since = values[w.speed], b.last_t[c, w.speed]
        if speed == speed and since == since:
            if time - since > w.max_gap_s:
                b.broken[c] = True
                b.mark[c, 0], b.mark[c, 1] = time, speed
                b.next[c] = np.nan
                b.before[c] = np.nan
            else:
                if b.next[c, 0] != b.next[c, 0]:
                    b.next[c, 0], b.next[c, 1] = time, speed
                b.before[c, 0], b.before[c, 1] = since, b.last_v[c, w.speed]
    for j in range(channels):
        if values[j] == values[j]:
            if begun:
                b.sums[c, j] += values[j]
                b.counts[c, j] += 1
            b.last_t[c, j], b.last_v[c, j] = time, values[j]
    if begun and time >= b.origin[c] + w.width * number - SAME * w.width:
        count = _close_until(w, b, c, number + 1, out, count)
    return count


@compiled()
def _take(
    w: Layout, b: Bins, cars: NDArray[np.int64], times: Array, values: Array, fate: NDArray[np.int8], out: Rows, at: int
) -> tuple[int, int]:
    """Readings from `at` on, until all are taken or `out` may not hold the next one's rows: (next reading, rows)."""
    count, channels = 0, values.shape[1]
    most = int(w.max_age[w.speed] / w.width) + 8  # rows that one reading may complete
    for i in range(at, len(cars)):
        if count + most > len(out.car):
            return i, count
        c, time = cars[i], times[i]
        fate[i] = TAKEN
        if time < b.newest[c]:
            fate[i] = LATE
            continue
        if time == b.newest[c]:
            fresh = False
            for j in range(channels):
                if values[i, j] == values[i, j]:
                    if b.last_t[c, j] == time:
                        values[i, j] = np.nan
                    else:
                        fresh = True
            if not fresh:
                fate[i] = DUPLICATE
                continue
        current, voltage = values[i, w.current], values[i, w.voltage]
        if values[i, w.power] != values[i, w.power] and current == current:
            if voltage != voltage and time - b.last_t[c, w.voltage] <= w.max_age[w.voltage]:
                voltage = b.last_v[c, w.voltage]
            values[i, w.power] = current * voltage / 1000.0
        count = _add(w, b, c, time, values[i], out, count)
    return len(cars), count


@compiled()
def _clock(w: Layout, b: Bins, now: Array, out: Rows, at: int) -> tuple[int, int]:
    """Close the bins of every vehicle that ended by its own `now`."""
    count = 0
    most = int(w.max_age[w.speed] / w.width) + 8
    for c in range(at, len(now)):
        if count + most > len(out.car):
            return c, count
        if b.origin[c] == b.origin[c] and not b.idle[c] and now[c] == now[c]:
            number = math.floor((now[c] - b.origin[c]) / w.width + SAME)
            if number >= b.open[c]:
                count = _close_until(w, b, c, number + 1, out, count)
    return len(now), count


class BinColumns:
    """Bins of `vehicles` vehicles over `channels` (names of `evband.channels`, speed among them).

    The coming and going of any channel, or only of those among `inputs`, begins a segment.
    """

    def __init__(
        self,
        hz: float,
        vehicles: int,
        channels: tuple[str, ...],
        max_gap_s: float = MAX_GAP_S,
        bridge_s: float = 0.0,
        lag: float = 0.0,
        inputs: Collection[str] | None = None,
    ) -> None:
        self.channels, self.vehicles, self.hz = channels, vehicles, hz
        column = {name: j for j, name in enumerate(channels)}
        self.layout = Layout(
            1.0 / hz, max(max_gap_s, bridge_s), lag, column["speed_kmh"], column["acceleration_ms2"],
            column["power_kw"], column["battery_current_a"], column["battery_voltage_v"],
            np.array([max(max_gap_s, bridge_s) if name == "speed_kmh" else held_s(name, bridge_s) for name in channels]),
            np.array([name not in UNCOUNTED and (inputs is None or name in inputs) for name in channels]),
        )  # fmt: skip
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("last_t", "last_v", "sums", "counts"), (len(channels),))
        shapes |= dict.fromkeys(("mark", "next", "before"), (2,))
        shapes |= {"early_t": (EARLY,), "early_v": (EARLY, len(channels))}
        self.bins = Bins(
            *(np.full((vehicles, *shapes.get(name, ())), _EMPTY.get(name, np.nan)) for name in Bins._fields)
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Columns of a row's values."""
        return (*self.channels, *EDGES)

    def take(
        self, cars: NDArray[np.int64], times: Array, values: Array
    ) -> tuple[list[Rows], NDArray[np.int8]]:  # values [readings, channels], overwritten
        """Readings in order of arrival; the rows that they complete, and what became of each reading."""
        fate, pieces, at = np.zeros(len(cars), np.int8), [], -1
        while at < len(cars):
            out = self._room(len(cars) - at)
            at, count = _take(self.layout, self.bins, cars, times, values, fate, out, max(at, 0))
            pieces.append(_cut(out, count))
        return [rows for rows in pieces if len(rows.car)], fate

    def close(self, now: Array) -> list[Rows]:
        """Rows whose bin ended by `now` [vehicles], each on its vehicle's own clock; NaN leaves a vehicle alone."""
        pieces, at = [], 0
        while at < self.vehicles:
            out = self._room(self.vehicles - at)
            at, count = _clock(self.layout, self.bins, now, out, at)
            pieces.append(_cut(out, count))
        return [rows for rows in pieces if len(rows.car)]

    def _room(self, rows: int) -> Rows:
        size = min(2 * rows, 65536) + int(self.layout.max_age[self.layout.speed] * self.hz) + 64
        empty = np.empty(size, np.int64), np.empty(size), np.empty((size, len(self.channels) + 2))
        start, first, sensed, sampled = (np.empty(size, bool) for _ in range(4))
        return Rows(*empty, start, first, np.empty(size), np.empty(size), np.empty(size, np.int64), sensed, sampled)

    def forget(self, car: int) -> None:
        """As if nothing of this vehicle had ever been read."""
        for name, array in self.bins._asdict().items():
            array[car] = _EMPTY.get(name, np.nan)

    def to_dict(self, car: int) -> dict[str, Any]:
        """All that is remembered of one vehicle, JSON-able; but for the last second before a drive."""
        return kept(self._lasting(), car)

    def restore(self, car: int, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave; raises where it does not fit."""
        restore(self._lasting(), car, saved)

    def _lasting(self) -> dict[str, NDArray]:
        return {name: column for name, column in self.bins._asdict().items() if not name.startswith("early")}


def _cut(rows: Rows, count: int) -> Rows:
    return Rows._make(column[:count] for column in rows)


_EMPTY = {"open": 0, "sums": 0.0, "counts": 0, "broken": True, "known": -1, "idle": False, "early_t": -np.inf}
"""What a column of `Bins` holds before anything is read; NaN in those that are not named."""
