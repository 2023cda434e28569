"""What changed a car's range beyond what it drove, and why: looked at with the updates of range, some minutes apart.

Range falls by what was driven; what it fell or rose beyond that has causes that the model knows: this drive takes more or less
than expected, it got colder or warmer, or what is ahead is another road. Both ends of each are kept, the page has the words.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

Change = dict[str, list[float | None]]  # field of a `Mark` -> [before, after]
EVERY_S = 300.0
MOST = 12  # of each car


class Mark(NamedTuple):
    """A range and what it rested on."""

    at: float
    range_km: float
    driven_km: float
    soc_pct: float
    ambient_temp_c: float
    drive_pct: float | None  # consumption against what the model expected
    weather_pct: float | None  # against 20 C


class Changes:
    """Of all cars of a group."""

    def __init__(self) -> None:
        self._marks: dict[int, Mark] = {}
        self._found: dict[int, deque[Change]] = {}

    def due(self, car: int, at: float, driven_km: float) -> bool:
        """Whether this update is to be compared with the mark before it."""
        mark = self._marks.get(car)
        return mark is None or not 0.0 <= at - mark.at < EVERY_S or driven_km < mark.driven_km

    def see(self, car: int, now: Mark) -> None:
        """Compare with the mark before, if that is of the same drive, and go on from here."""
        before = self._marks.get(car)
        if before is not None and now.at > before.at and now.driven_km > before.driven_km:
            pairs = {name: [_plain(a), _plain(b)] for name, a, b in zip(Mark._fields, before, now, strict=True)}
            self._found.setdefault(car, deque(maxlen=MOST)).appendleft(pairs)
        self._marks[car] = now

    def of(self, car: int) -> list[Change]:
        """Each as [before, after] of every field, the newest first."""
        return list(self._found.get(car, ()))

    def forget(self, car: int) -> None:
        """Also when another route is set: the next update is the first."""
        self._marks.pop(car, None)
        self._found.pop(car, None)


def _plain(value: float | None) -> float | None:
    return None if value is None or value != value else round(value, 3)
