"""An ELM327 dongle over serial, Bluetooth or Wi-Fi: set it up, ask SAE and the maker's PIDs in turn, come back when pulled out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from evband.live.config import Car
from evband.live.reading import Reading
from evband.live.sources.background import Background
from evband.live.sources.elm_protocol import Adapter, AdapterError
from evband.live.sources.pids import SAE, Pid, read_pids

if TYPE_CHECKING:
    from evband.live.sources import Put

AGAIN_S = 3.0  # between attempts to find the dongle
REFUSALS = 5  # of a question, after which it is asked once in a while only
RARELY_S = 300.0


class Dongle(Background):
    """Asks for ever from a thread of its own."""

    def __init__(self, car: Car, put: Put) -> None:
        super().__init__(car, put)
        own = read_pids(Path(car.pids)).pids if car.pids else ()
        covered = {channel for pid in own for channel in pid.channels}
        self._pids = (*own, *(pid for pid in SAE if not covered & set(pid.channels)))
        self._due: dict[Pid | int, float] = {}
        self._refused: dict[int, int] = {}
        self.connections = self.answers = 0

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with Adapter(str(self._car.port), self._car.baud) as adapter:
                    self.connections += 1
                    self.problem = None
                    while not self._stop.is_set():
                        self._round(adapter)
            except (AdapterError, OSError) as problem:
                self.problem = str(problem)
            self._stop.wait(AGAIN_S)

    def _round(self, adapter: Adapter) -> None:
        """Ask what is due; if nothing is, wait a little."""
        asked = False
        for number, pid in enumerate(self._pids):
            if time.monotonic() >= self._due.get(number, 0.0):
                self._ask(adapter, number, pid)
                asked = True
        if not asked:
            self._stop.wait(0.02)

    def _ask(self, adapter: Adapter, number: int, pid: Pid) -> None:
        answer = adapter.ask(pid.command, pid.header)
        refused = self._refused[number] = self._refused.get(number, 0) + 1 if answer is None else 0
        pause = RARELY_S if refused >= REFUSALS and number > 0 else max(pid.every_s, 0.05)
        self._due[number] = time.monotonic() + pause
        if answer is None:
            return
        self.answers += 1
        for channel, formula in pid.channels.items():
            try:
                self._put(Reading(self._car.id, channel, formula(answer)))
            except (IndexError, ZeroDivisionError, OverflowError, ValueError):
                continue  # an answer shorter than the formula needs
