"""What goes out over MQTT: a state object per car, who is online, and Home Assistant's discovery."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import orjson

from evband.live import discovery
from evband.live.config import Mqtt
from evband.live.mqtt import Client

ONLINE, OFFLINE = b"online", b"offline"
MOST_DEVICES = 500  # cars that are announced to Home Assistant; a fleet is not a household


class Publisher:
    """States of `cars` (id and name) through a client that is set by `use`."""

    def __init__(self, settings: Mqtt, cars: Sequence[tuple[str, str]]) -> None:
        self._settings, self._cars = settings, list(cars)
        self._client: Client | None = None
        self._online: dict[str, bool] = {}

    @property
    def will(self) -> tuple[str, bytes]:
        """What the broker says for us when we are gone."""
        return f"{self._settings.prefix}/{self._settings.status}", OFFLINE

    @property
    def birth(self) -> str:
        """Where Home Assistant says that it has started."""
        return f"{self._settings.discovery_prefix}/status"

    def use(self, client: Client) -> None:
        self._client = client

    def connected(self) -> None:
        """Say everything that the broker keeps: discovery, and who is online."""
        assert self._client is not None
        self.discover()
        for car, _ in self._cars:
            self._status(car, self._online.get(car, False))
        self._send(self.will[0], ONLINE)

    def discover(self) -> None:
        """Announce every car to Home Assistant, also when it has just started."""
        if not self._settings.discovery or len(self._cars) > MOST_DEVICES:
            return
        for car, name in self._cars:
            found = discovery.device(car, name, self._settings.prefix, self._settings.status)
            self._send(discovery.topic(self._settings.discovery_prefix, car), orjson.dumps(found))

    def states(self, found: Iterable[tuple[str, bytes]]) -> None:
        """State objects of cars, as JSON."""
        if self._client is not None:
            prefix = self._settings.prefix
            self._client.publish_many((f"{prefix}/{car}/state", state) for car, state in found)

    def online(self, car: str, is_so: bool) -> None:
        """Tell of a car that came or went."""
        if self._online.get(car) != is_so:
            self._online[car] = is_so
            self._status(car, is_so)

    def goodbye(self) -> None:
        """We stop on purpose: the broker sends no will then."""
        self._send(*self.will)

    def _status(self, car: str, is_so: bool) -> None:
        self._send(f"{self._settings.prefix}/{car}/status", ONLINE if is_so else OFFLINE)

    def _send(self, topic: str, payload: bytes) -> None:
        if self._client is not None:
            self._client.publish(topic, payload, retain=True, qos=1)
