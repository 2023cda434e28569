"""Every reading that is not used, counted by reason and car: nothing is lost in silence."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

REASONS = {
    "unknown_car": "no car of this name or topic is configured",
    "not_readable": "the message is not what this source sends",
    "too_large": "the message is larger than any telemetry",
    "too_fast": "more messages per second than a car can need",
    "not_a_number": "NaN or infinite",
    "out_of_limits": "beyond what the channel can physically be",
    "retained": "stored by the broker, so of unknown age",
    "clock": "its clock is far from ours and does not run with it",
    "late": "older than a reading that was taken before",
    "duplicate": "taken before",
    "jump": "a speed or charge that cannot follow the one before",
}


class Drops:
    """Counts per reason, in all and per car."""

    def __init__(self, cars: int) -> None:
        self._names = {name: i for i, name in enumerate(REASONS)}
        self._lock = threading.Lock()
        self._all = np.zeros(len(REASONS), np.int64)
        self._cars = np.zeros((cars, len(REASONS)), np.int64)

    def add(self, reason: str, car: int | None = None, count: int = 1) -> None:
        i = self._names[reason]
        with self._lock:
            self._all[i] += count
            if car is not None:
                self._cars[car, i] += count

    def add_many(self, reason: str, cars: NDArray[np.int64]) -> None:
        """One each, of these cars; a car may appear more than once."""
        if len(cars):
            i = self._names[reason]
            with self._lock:
                self._all[i] += len(cars)
                np.add.at(self._cars[:, i], cars, 1)

    def total(self) -> dict[str, int]:
        return dict(zip(REASONS, self._all.tolist(), strict=True))

    def of(self, car: int) -> dict[str, int]:
        """Reasons that occurred for one car."""
        return {name: count for name, count in zip(REASONS, self._cars[car].tolist(), strict=True) if count}

    def forget(self, car: int) -> None:
        self._cars[car] = 0
