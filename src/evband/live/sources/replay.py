"""Replay of any readable log at N times its speed, on a clock of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evband.live.config import Car
from evband.live.reading import CHARGING, COLUMNS, Sample
from evband.live.sources.background import Background

if TYPE_CHECKING:
    from evband.live.sources import Put

CHARGE_S = 20.0  # between two passes the car stands at a charger, so that each pass is a drive of its own


class Replay(Background):
    """The drives of a log, one after the other, again and again if wished."""

    def __init__(self, car: Car, file: Path, put: Put) -> None:
        super().__init__(car, put)
        self._file = file

    def _samples(self) -> Iterator[tuple[float, dict[str, float]]]:
        """(seconds since the start, values) for ever, or once."""
        from evband.logs.reading import read_trips

        trips, begin = read_trips(str(self._file)), 0.0
        while True:
            for trip in trips:
                first = float(trip.table["time_s"][0])
                for row in trip.table.iter_rows(named=True):
                    since = begin + float(row["time_s"]) - first
                    yield since, {name: row[name] for name in COLUMNS if row.get(name) is not None}
                begin = since + 1.0
                for second in range(int(CHARGE_S)):
                    yield begin + second, {"speed_kmh": 0.0, CHARGING: float(second < CHARGE_S - 2)}
                begin += CHARGE_S
            if not self._car.repeat:
                return

    def _run(self) -> None:
        start = time.time()
        try:
            for since, values in self._samples():
                wait = start + since / self._car.speed - time.time()
                if wait > 0 and self._stop.wait(wait):
                    return
                if self._stop.is_set():
                    return
                self._put(Sample(self._car.id, values, start + since))
        except Exception as problem:  # a thread that dies in silence would look like a quiet car
            self.problem = f"{self._file}: {problem}"
