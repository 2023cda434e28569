"""Readings as they arrive, put into the bins of `evband.trips.grid` as soon as each is known to be whole."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evband.channels import AGE, EDGES, READINGS, SENSED
from evband.trips import between_numbers as between
from evband.trips.between import SLOW_BINS
from evband.trips.grid import MAX_GAP_S, UNCOUNTED, held_s
from evband.trips.motion import SAME

SPEED = "speed_kmh"


@dataclass(slots=True)
class Row:
    """One grid row: every known channel, edge speeds, and whether a segment starts here."""

    time_s: float
    values: dict[str, float]
    start: bool


class Bins:
    """One row per bin, equal to the rows of the whole log; a bin closes with the first reading at or after its end."""

    def __init__(self, hz: float, max_gap_s: float = MAX_GAP_S, bridge_s: float = 0.0, lag: float = 0.0) -> None:
        self.lag = lag
        self.width, self.max_gap_s, self.bridge_s = 1.0 / hz, max(max_gap_s, bridge_s), bridge_s
        self.reset()

    def reset(self) -> None:
        """A new trip: the next speed reading is its first row."""
        self.origin: float | None = None  # t0, the first speed reading
        self.open = 0  # number of the bin being filled
        self.last: dict[str, tuple[float, float]] = {}  # channel -> its last reading (time, value)
        self.sums: dict[str, tuple[float, int]] = {}  # channel -> (sum, count) in the open bin
        self.early: list[tuple[float, dict[str, float]]] = []  # readings before the first speed, one bin back
        self.mark = (0.0, 0.0)  # last speed reading at the open bin's start, or the first after a gap
        self.next: tuple[float, float] | None = None  # the speed reading after that
        self.before: tuple[float, float] | None = None  # the speed reading before the last, if no gap parts them
        self.broken = True  # a row was left out, or a gap in speed fell into the open bin
        self.known: frozenset[str] = frozenset()  # channels known in the last row

    def add(self, time: float, values: Mapping[str, float]) -> list[Row]:
        """Take a reading later than all before; the rows that it completes."""
        rows: list[Row] = []
        if self.origin is None:
            self.early = [e for e in self.early if e[0] > time - self.width * (1.0 - SAME)]
            self.early.append((time, dict(values)))
            if SPEED not in values:
                for name, value in values.items():
                    self.last[name] = (time, value)
                return rows
            self.origin, self.mark = time, (time, values[SPEED])
            for _, old in self.early[:-1]:
                self._sum(old)
            self.early = []
        number = max(math.ceil((time - self.origin) / self.width - SAME), 0)
        if number > self.open:
            self._close_until(number, rows)
        if SPEED in values and SPEED in self.last:
            self._speed((time, values[SPEED]))
        self._sum(values)
        for name, value in values.items():
            self.last[name] = (time, value)
        if time >= self.origin + self.width * number - SAME * self.width:
            self._close_until(number + 1, rows)
        return rows

    def _speed(self, reading: tuple[float, float]) -> None:
        """Keep the few speed readings that the edges of a bin hang on."""
        last = self.last[SPEED]
        if reading[0] - last[0] > self.max_gap_s:
            self.broken, self.mark, self.next, self.before = True, reading, None, None
            return
        self.next = self.next or reading
        self.before = last

    def _edges(self, end: float) -> tuple[float, float]:
        """Speed at the bin's start and end, as `evband.trips.motion` has it."""
        last = self.last[SPEED]
        start = between.start_speed(end - self.width, *self.mark, *(self.next or self.mark))
        return start, between.end_speed(end, *last, *(self.before or last))

    def _slow_edges(self, end: float) -> tuple[float, float] | None:
        """The same where readings lie further apart than the grid; None where they do not."""
        last, after, back = self.last[SPEED], self.next, None
        slope = between.slope_of(*last, *(self.before or last), self.width)
        time, measured = self.last.get("acceleration_ms2", (-math.inf, 0.0))
        if time > last[0] - self.width:
            slope = 3.6 * measured
        if SPEED not in self.sums:
            after, back = last, slope
        elif after is not None and after[0] - self.mark[0] > SLOW_BINS * self.width:
            back = between.slope_of(*after, *self.mark, self.width)
        if after is None or back is None:
            return None
        return between.speed_at(end - self.width, *after, back), between.speed_at(end, *last, slope)

    def _sum(self, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            total, count = self.sums.get(name, (0.0, 0))
            self.sums[name] = (total + value, count + 1)

    def _close_until(self, number: int, rows: list[Row]) -> None:
        """Close the bins before `number`; those without a speed are left out, however many."""
        assert self.origin is not None
        while self.open < number:
            row = self._close(self.origin + self.width * self.open)
            self.open += 1
            if row is None:
                self.open = number
            else:
                rows.append(row)

    def _close(self, end: float) -> Row | None:
        values = {}
        for name, (time, last) in self.last.items():
            total, count = self.sums.get(name, (0.0, 0))
            if count:
                values[name] = total / count
            elif end - time <= held_s(name, self.bridge_s) and name != "power_kw":
                values[name] = last
        if SPEED in values:
            self._motion(end, values)
        self.sums = {}
        self.mark, self.next = self.last[SPEED], None
        if SPEED not in values:
            self.broken = True
            return None
        known = frozenset(values.keys() - UNCOUNTED)
        anew, self.broken = self.broken or known != self.known, False
        self.known = known
        return Row(end, values, anew)

    def _motion(self, end: float, values: dict[str, float]) -> None:
        """Speeds at the edges, and what follows from them."""
        slow = self._slow_edges(end)
        start, stop = values[EDGES[0]], values[EDGES[1]] = slow or self._edges(end)
        change = self.last[SPEED][1] - self.mark[1]
        if slow:
            values[SPEED], change = (start + stop) / 2, stop - start
            if "acceleration_ms2" not in self.sums:
                values.pop("acceleration_ms2", None)
        elif self.lag and self.sums[SPEED][1] == 1:
            values[SPEED] = between.mean_speed(start, stop, self.lag)
        values[SENSED] = float("acceleration_ms2" in values)
        values.setdefault("acceleration_ms2", change / 3.6 / self.width)
        values[READINGS] = float(self.sums[SPEED][1]) if SPEED in self.sums else 0.0
        if self.bridge_s:
            values[AGE] = 0.0 if SPEED in self.sums else end - self.last[SPEED][0]

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _STATE} | {"known": sorted(self.known)}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave, through JSON or not."""
        for name in _STATE:
            setattr(self, name, saved[name])
        self.known = frozenset(saved["known"])
        self.last = {str(k): (float(t), float(v)) for k, (t, v) in saved["last"].items()}
        self.sums = {str(k): (float(t), int(n)) for k, (t, n) in saved["sums"].items()}
        self.early = [(float(t), dict(v)) for t, v in saved["early"]]
        self.mark = (float(saved["mark"][0]), float(saved["mark"][1]))
        self.next, self.before = (
            None if r is None else (float(r[0]), float(r[1])) for r in (saved["next"], saved["before"])
        )


_STATE = ("origin", "open", "last", "sums", "early", "mark", "next", "before", "broken")
