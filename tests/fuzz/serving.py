"""What reaches `evband serve`: requests, WebSocket messages, MQTT packets, a dongle's answers; and its files of settings.

The application, the feeds and the engine are the real ones, without a network: a request is text (method and target, headers, an empty
line, the body), packets are bytes as a broker sends them, and the clock advances a second with each input.
"""

from __future__ import annotations

import asyncio
import json
import random
from functools import cache
from pathlib import Path
from typing import Any

from evband.errors import EvbandError
from fuzz import mutate, seeds

HEADERS = (b"host: 127.0.0.1:8750", b"content-type: application/json", b"content-type: application/x-www-form-urlencoded", b"origin: http://evil.example",
           b"content-length: 99999999999", b"content-length: -1", b"cookie: evband_token=\xff; ;=", b"authorization: Bearer \xe9", b"host: [::1")  # fmt: skip
TARGETS = (b"GET /api/cars", b"GET /api/cars/a", b"PUT /api/cars/a/route", b"DELETE /api/cars/a/route", b"GET /api/cars/a/trips", b"GET /api/cars/a/trips/1.csv",
           b"GET /api/cars/a/trips/1700000000.5?since=nan", b"POST /api/cars/a/in", b"POST /api/in", b"POST /1/tlm/send?token=a", b"GET /metrics", b"GET /healthz",
           b"GET /openapi.json", b"GET /index.html", b"GET /../config.py", b"GET /%2e%2e/%00", b"DELETE /api/cars/a", b"WS /api/in", b"GET /?token=x")  # fmt: skip
FORM = b"token=a&tlm=%7B%22utc%22%3A1700000000%2C%22speed%22%3A50%2C%22power%22%3A8%7D"
TOPICS = {
    "ovms/u/v": ("metric/v/p/speed", "metric/v/b/power", "metric/v/c/charging", "metric/v/b/soc", "x"),
    "teslamate/cars/1": ("speed", "power", "state", "battery_level", "usable_battery_level"),
    "tesla/VIN": ("v/VehicleSpeed", "v/Soc", "v/ChargeState", "v/PackCurrent"),
    "wican/1": ("can/rx", "status", "elm327"),
    "evband/a": ("in",),
}
PAYLOADS = (b"50", b"-1e308", b"nan", b'"12.3"', b"charging", b"<invalid>", *seeds.LINES, b'{"frame": [{"id": 948, "data": [1, 2, 255]}]}', b'{"SOC": 50, "SPEED": "x"}')  # fmt: skip
CONFIG = b"""[mqtt]
host = "127.0.0.1"
port = 1883
[server]
port = 8750
max_body_kb = 64
[store]
path = "x.sqlite"
max_mb = 10
[[car]]
id = "a"
model = "car.evband"
source = "ovms"
topic = "ovms/u/v"
capacity_kwh = 60
reserve_soc = 5.0
"""
PIDS = b"""[[pid]]
header = "7E4"
command = "220101"
every_s = 1.0
battery_current_a = "signed(K*256+L, 16)/10"
battery_voltage_v = "([3:4] & 255) << 1"
[[can]]
id = 0x3B4
soc_pct = "[1]/2"
speed_kmh = "B02 - S01 * .5"
[names]
HV_SOC = "soc_pct"
"""
ANSWERS = b"7E8 04 41 0D 32 00\r7EC 10 0B 62 01 01 01 02\r7EC 21 03 04 05 06 07 08\r18DAF110 03 41 46 3C\rNO DATA\r\r>"


class Served:
    """One service for all inputs of a process: what the last one left behind is part of the next."""

    def __init__(self, folder: Path) -> None:
        from evband.live.config import parse_config
        from evband.live.feeds import Feeds
        from evband.live.http import application
        from evband.live.reading import Sample
        from evband.live.service import Service

        (folder / "live.evband").write_bytes(seeds.artifact(folder))
        (folder / "pids.toml").write_bytes(PIDS)
        shared = {"model": str(folder / "live.evband"), "capacity_kwh": 60.0}
        cars = [{"id": name, "source": source, "topic": topic} | shared for name, source, topic in (
            ("o", "ovms", "ovms/u/v"), ("t", "teslamate", "teslamate/cars/1"), ("f", "fleet_telemetry", "tesla/VIN"))]  # fmt: skip
        cars += [{"id": "w", "source": "wican", "topic": "wican/1", "pids": str(folder / "pids.toml")} | shared]
        server = {"max_body_kb": 64, "max_requests_per_s": 10**8}
        table: dict[str, Any] = {"car": [*cars, {"id": "a"} | shared], "mqtt": {}, "server": server}
        self.service = Service(parse_config(table, "fuzz", folder))
        self.feeds, self.app, self.now = Feeds(self.service), application(self.service), seeds.START
        self.loop, put = asyncio.new_event_loop(), self.service.assembler.put
        self.service.put = lambda item: put(item, arrived=self.now)  # type: ignore[method-assign]
        for _ in range(60):  # compiles what has to be
            self.service.put(Sample("a", {"speed_kmh": 50.0, "power_kw": 8.0, "soc_pct": 50.0}, self.now))
            self.step()

    def step(self) -> None:
        """A second passes; every state is JSON without NaN."""
        self.now += 1.0
        self.service.step(self.now)
        for state in self.service.latest.values():
            json.loads(state, parse_constant=_refuse)


def _refuse(word: str) -> None:
    raise AssertionError(f"{word} in an answer")


@cache
def _served(folder: Path) -> Served:
    return Served(folder)


def request(data: bytes, folder: Path) -> None:
    """Any request is answered, by less than status 500, and JSON is finite."""
    served = _served(folder)
    head, _, body = data.partition(b"\n\n")
    first, *lines = head.split(b"\n")
    method, _, target = first.partition(b" ")
    path, _, query = target.partition(b"?")
    headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
    scope = {
        "type": "websocket" if method == b"WS" else "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http", "root_path": "",
        "method": method.decode("latin-1"), "path": path.decode("utf-8", "replace"), "raw_path": path, "query_string": query,
        "headers": headers, "client": ("127.0.0.1", 5), "server": ("127.0.0.1", 8750), "subprotocols": [],
    }  # fmt: skip
    if method == b"WS":
        texts = [{"type": "websocket.receive", "text": part.decode("utf-8", "replace")} for part in body.split(b"\x1e")]
        waiting = [{"type": "websocket.connect"}, *texts, {"type": "websocket.disconnect", "code": 1000}]
    else:
        waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else {"type": f"{scope['type']}.disconnect", "code": 1000}

    async def send(message: Any) -> None:
        sent.append(message)

    served.loop.run_until_complete(served.app(scope, receive, send))
    assert sent
    status = sent[0].get("status", 200)
    assert status < 500 or path == b"/healthz", status  # whose engine has no thread here
    if b"application/json" in dict(sent[0].get("headers", [])).get(b"content-type", b""):
        json.loads(b"".join(m.get("body", b"") for m in sent), parse_constant=_refuse)
    served.step()


def request_bytes(rng: random.Random) -> bytes:
    target = rng.choice(TARGETS)
    headers = [HEADERS[0], *rng.sample(HEADERS[1:3], 1), *(rng.sample(HEADERS[3:], 1) if rng.random() < 0.2 else [])]
    if b"/route" in target:
        route = rng.choice(list(seeds.ROUTES.values()))
        body = mutate.mutate_json(route, rng) if route.startswith(b"{") else mutate.mutate(route, rng)
    elif rng.random() < 0.2:
        body = mutate.mutate(FORM, rng)
    else:
        lines = [b'{"car": "a", ' + line[1:] for line in rng.choices(seeds.LINES, k=5)]
        body = rng.choice((b"\n", b"\x1e")).join(mutate.mutate_json(line, rng) for line in lines)
    head = b"\n".join([target, *headers])
    return (mutate.mutate(head, rng) if rng.random() < 0.3 else head) + b"\n\n" + body


class _Deaf:
    def sendall(self, data: bytes) -> None: ...


def packets(data: bytes, folder: Path) -> None:
    """Bytes from a broker; one that breaks the protocol is hung up on."""
    from evband.live.mqtt import Packets

    served, stream = _served(folder), Packets()
    client = served.feeds.client
    assert client is not None
    try:
        for at in range(0, len(data), 1000):
            client._handle(stream, data[at : at + 1000], _Deaf())  # type: ignore[arg-type]
    except ConnectionError as problem:
        raise EvbandError(problem) from None
    finally:
        client._lost()
        served.step()


def packet_bytes(rng: random.Random) -> bytes:
    from evband.live.mqtt import publish_packet

    found = [b"\x20\x02\x00\x00"]
    for _ in range(20):
        base, names = rng.choice(list(TOPICS.items()))
        payload = rng.choice(PAYLOADS)
        payload = mutate.mutate_json(payload, rng) if payload.startswith(b"{") else payload
        payload = mutate.mutate(payload, rng) if rng.random() < 0.3 else payload
        found.append(publish_packet(f"{base}/{rng.choice(names)}", payload, rng.random() < 0.2, rng.randrange(2)))
    whole = b"".join(found)
    return mutate.mutate(whole, rng) if rng.random() < 0.4 else whole


def configuration(data: bytes, folder: Path) -> None:
    from evband.live.config import read_config

    (folder / "serve.toml").write_bytes(data)
    read_config(folder / "serve.toml")


def pids(data: bytes, folder: Path) -> None:
    """A list of PIDs, and its formulas on answers of every length."""
    from evband.live.sources.pids import read_pids

    (folder / "own.toml").write_bytes(data)
    found = read_pids(folder / "own.toml")
    for formulas in [*(pid.channels for pid in found.pids), *found.frames.values()]:
        for formula in formulas.values():
            for answer in (b"", bytes(range(8)), b"\xff" * 64):
                try:
                    float(formula(answer))
                except (IndexError, ZeroDivisionError, OverflowError, ValueError):
                    continue


def dongle(data: bytes, folder: Path) -> None:
    from evband.live.sources.elm_protocol import answer

    for command in ("010D", "220101", "0146"):
        answer(data.decode("ascii", "replace"), command)
