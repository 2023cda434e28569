"""JSON, one object per car and tick: over MQTT on `evband/<id>/in`, over HTTP and WebSocket as lines. The form for fleets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from evband.files import json_value
from evband.live.config import Car, Mqtt
from evband.live.reading import Sample, sample
from evband.logs.telemetry import unwrapped


def decode(payload: bytes | str) -> Any:
    """JSON, also with the NaN that some senders write; ValueError for anything else."""
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError:
        return json_value(payload)


def message(car: str, payload: bytes | str, retained: bool = False) -> Sample:
    """One object, bare or wrapped as ABRP's `{"tlm": {...}}`."""
    found = unwrapped(decode(payload))
    if found is None:
        raise ValueError("not an object")
    read = sample(car, found, retained)
    if read is None:
        raise ValueError("no channel")
    return read


class JsonMessages:
    """`topic` is the car's own, by default `evband/<id>/in`."""

    def __init__(self, car: Car, mqtt: Mqtt) -> None:
        self._car, self.topic = car.id, car.topic or f"{mqtt.prefix}/{car.id}/in"
        self.filters = (self.topic,)

    def read(self, topic: str, payload: bytes, retained: bool) -> Iterable[Sample]:
        return (message(self._car, payload, retained),)
