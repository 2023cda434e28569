"""The sources of a configuration, connected: MQTT messages to the right car's source, replays and dongles in threads."""

from __future__ import annotations

from pathlib import Path

from evband.live.config import Car, Mqtt
from evband.live.mqtt import Client
from evband.live.publish import OFFLINE, Publisher
from evband.live.reading import LARGEST
from evband.live.service import Service
from evband.live.sources import MQTT, MqttSource
from evband.live.sources.background import Background
from evband.live.sources.elm327 import Dongle
from evband.live.sources.replay import Replay
from evband.live.states import STATES

QUIET = (STATES[0], STATES[-1])  # waiting and offline: not online


class Feeds:
    """All sources of a service, and what it publishes."""

    def __init__(self, service: Service) -> None:
        self._service, self._settings = service, service.config.mqtt
        self.active: dict[str, Background] = {}  # by car
        self.client: Client | None = None
        self.publisher: Publisher | None = None
        self._sources = {car.id: car.source for car in service.roster.cars}
        self._exact: dict[str, tuple[int, MqttSource]] = {}
        self._under: list[tuple[str, int, MqttSource]] = []
        filters: list[str] = []
        for number, car in enumerate(service.roster.cars):
            if car.source == "replay":
                self.active[car.id] = Replay(car, Path(str(car.file)), service.put)
            elif car.source == "elm327":
                self.active[car.id] = Dongle(car, service.put)
            elif car.source in MQTT and self._settings is not None:
                filters += self._add(number, car, self._settings)
        if self._settings is not None:
            self._connect(self._settings, filters)

    def _add(self, number: int, car: Car, settings: Mqtt) -> tuple[str, ...]:
        """Note where a car's messages come from; one filter serves all cars on the default topics."""
        source = MQTT[car.source](car, settings)
        if car.source == "json":
            self._exact[source.filters[0]] = (number, source)
            alone = self._service.config.part == (1, 1)  # else messages of other processes' cars would come, too
            return (f"{settings.prefix}/+/in",) if alone and not car.topic else source.filters
        self._under += [(name.rstrip("#+"), number, source) for name in source.filters]
        return source.filters

    def _connect(self, settings: Mqtt, filters: list[str]) -> None:
        self.publisher = Publisher(settings, list(zip(self._service.ids, self._service.names, strict=True)))
        names = [*dict.fromkeys(filters), self.publisher.birth]
        home = self._service.at_home
        self.client = Client(settings, names, self._message, self.publisher.connected, self.publisher.will, home)
        if home:
            self._service.receive(self.client.received_so_far)
        self.publisher.use(self.client)
        self._service.listen(self._publish)

    def _message(self, topic: str, payload: bytes, retained: bool) -> None:
        """From the client's thread, for every message: nothing in it may stop the next."""
        assert self.publisher is not None
        drops = self._service.assembler.drops
        if topic == self.publisher.birth:
            if payload != OFFLINE and not retained:
                self.publisher.discover()
            return
        found = self._exact.get(topic) or next(((n, s) for base, n, s in self._under if topic.startswith(base)), None)
        if found is None:
            drops.add("unknown_car")
        elif len(payload) > LARGEST:
            drops.add("too_large", found[0])
        elif payload:
            try:
                for reading in found[1].read(topic, payload, retained):
                    self._service.put(reading)
            except (ValueError, TypeError, KeyError, RecursionError):
                drops.add("not_readable", found[0])

    def _publish(self, updates: list[tuple[str, bytes]]) -> None:
        assert self.publisher is not None
        self.publisher.states(updates)
        state, index = self._service.state, self._service.assembler.index
        for car, _ in updates:
            self.publisher.online(car, STATES[state[index[car]]] not in QUIET)

    def start(self) -> None:
        if self.client is not None:
            self.client.start()
        for feed in self.active.values():
            feed.start()

    def problems(self) -> list[str]:
        """Sources that cannot read, a sentence each."""
        found = ((car, feed.problem) for car, feed in self.active.items())
        return [
            f"The {self._sources[car]} of {car} cannot be read: {problem.rstrip('.')}."
            for car, problem in found
            if problem
        ]

    def stop(self) -> None:
        for feed in self.active.values():
            feed.stop()
        if self.client is not None and self.publisher is not None:
            self.publisher.goodbye()
            self.client.stop()
