"""Sources: each a small file that turns what a feed sends into readings. To add one, name it here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from evband.live.config import Car, Mqtt
from evband.live.reading import Reading, Sample
from evband.live.sources.fleet_telemetry import FleetTelemetry
from evband.live.sources.json_messages import JsonMessages
from evband.live.sources.ovms import Ovms
from evband.live.sources.teslamate import TeslaMate
from evband.live.sources.wican import Wican

Put = Callable[[Reading | Sample], None]


class MqttSource(Protocol):
    """Messages of one car on MQTT."""

    def __init__(self, car: Car, mqtt: Mqtt) -> None: ...

    @property
    def filters(self) -> tuple[str, ...]:
        """What to subscribe to."""
        ...

    def read(self, topic: str, payload: bytes, retained: bool) -> Iterable[Reading | Sample]:
        """The readings in one message; ValueError where it is not one of this feed."""
        ...


MQTT: dict[str, type[MqttSource]] = {
    "ovms": Ovms,
    "teslamate": TeslaMate,
    "fleet_telemetry": FleetTelemetry,
    "wican": Wican,
    "json": JsonMessages,
}
TRUSTED = ("json", "abrp", "ovms", "replay")
"""Feeds whose documents say kW, positive for discharge; the power of the others is compared with motion before it is used."""
