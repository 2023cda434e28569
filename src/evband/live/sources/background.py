"""A source with a thread of its own."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from evband.live.config import Car

if TYPE_CHECKING:
    from evband.live.sources import Put


class Background(ABC):
    """Puts readings of one car until it is stopped; `problem` is what keeps it from reading."""

    def __init__(self, car: Car, put: Put) -> None:
        self._car, self._put, self._stop = car, put, threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"{car.source}-{car.id}", daemon=True)
        self.problem: str | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    @abstractmethod
    def _run(self) -> None: ...
