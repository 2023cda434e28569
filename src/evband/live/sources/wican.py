"""WiCAN over MQTT: CAN frames on `wican/<id>/can/rx`, and objects that the dongle decoded itself on `wican/<id>/...`.

Frames and names are described in the user's own TOML (`pids`, see `evband.live.sources.pids`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evband.live.config import Car, Mqtt
from evband.live.reading import SAMPLE_KEYS, Reading, number
from evband.live.sources.json_messages import decode
from evband.live.sources.pids import PidList, read_pids

NAMES = SAMPLE_KEYS | {
    "SOC": "soc_pct",
    "SPEED": "speed_kmh",
    "VehicleSpeed": "speed_kmh",
    "AmbientAirTemp": "ambient_temp_c",
}


class Wican:
    """`topic` is the dongle's: `wican/<id>`."""

    def __init__(self, car: Car, mqtt: Mqtt) -> None:
        self._car, self._base = car.id, car.under("")
        self._list = read_pids(Path(car.pids)) if car.pids else PidList()
        self.filters = (f"{self._base}#",)

    def read(self, topic: str, payload: bytes, retained: bool) -> Iterable[Reading]:
        rest = topic.removeprefix(self._base)
        if rest == "status" or rest.startswith("can/tx"):
            return []
        found = decode(payload)
        if not isinstance(found, dict):
            raise ValueError("not an object")
        if isinstance(found.get("frame"), list):
            return [reading for frame in found["frame"] for reading in self._frame(frame, retained)]
        return [
            Reading(self._car, channel, value, None, retained)
            for name, raw in found.items()
            if (channel := self._list.names.get(name) or NAMES.get(name)) and (value := number(raw)) is not None
        ]

    def _frame(self, frame: Any, retained: bool) -> Iterable[Reading]:
        if not isinstance(frame, dict) or not isinstance(frame.get("data"), list):
            raise ValueError("not a frame")
        try:
            data = bytes(frame["data"][:64])
            formulas = self._list.frames.get(int(frame.get("id", -1)), {})
            return [Reading(self._car, name, f(data), None, retained) for name, f in formulas.items()]
        except (TypeError, IndexError, ZeroDivisionError, OverflowError) as problem:
            raise ValueError(str(problem)) from None
