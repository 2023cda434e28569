"""Real parts for the live tests: a mosquitto of our own, and `evband serve` as a process."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path

import paho.mqtt.client as paho

ROOT = Path(__file__).parents[1]
PARTS = ROOT / ".venv-parts" / "bin"  # made by tools.live_parts
BROKER = shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(what, seconds=30.0, every=0.05):
    """The first true answer of `what`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(OSError, KeyError, IndexError):
            if found := what():
                return found
        time.sleep(every)
    raise AssertionError(f"it did not happen within {seconds} s")


class Broker:
    """A mosquitto that can be taken away and brought back."""

    def __init__(self, folder: Path) -> None:
        assert BROKER, "mosquitto is missing; run make test-live"
        self.port, self._conf = free_port(), folder / "mosquitto.conf"
        self._conf.write_text(f"listener {self.port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 100000\n")
        self._process = None
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(
            [BROKER, "-c", str(self._conf)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(self._there, 10)

    def _there(self) -> bool:
        with socket.create_connection(("127.0.0.1", self.port), 1):
            return True

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(10)


class Listener:
    """An independent client: publishes, and keeps all that it hears."""

    def __init__(self, port: int, *filters: str) -> None:
        self.heard: list[tuple[str, bytes, bool]] = []
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2)
        self._client.on_message = lambda c, u, m: self.heard.append((m.topic, m.payload, m.retain))
        self._client.on_connect = lambda c, *_: [c.subscribe(name, 1) for name in filters]
        self._client.reconnect_delay_set(1, 1)
        self._client.connect("127.0.0.1", port)
        self._client.loop_start()

    def send(self, topic: str, payload, retain=False, qos=0) -> None:
        self._client.publish(topic, payload, qos, retain).wait_for_publish(5)

    def of(self, topic: str) -> list[bytes]:
        return [payload for name, payload, _ in list(self.heard) if name == topic]

    def close(self) -> None:
        self._client.loop_stop()
        self._client.disconnect()


class Served:
    """`evband serve` on a configuration."""

    def __init__(self, folder: Path, config: str, *options: str) -> None:
        self.port, self.folder = free_port(), folder
        self.url = f"http://127.0.0.1:{self.port}"
        (folder / "evband.toml").write_text(config)
        self._options = options
        self.start()

    def command(self) -> list[str]:
        return [sys.executable, "-m", "evband", "serve", "evband.toml", "--port", str(self.port), *self._options]

    def start(self, wait: bool = True) -> None:
        with (self.folder / "serve.log").open("ab") as log:
            self.process = subprocess.Popen(self.command(), cwd=self.folder, stdout=log, stderr=log)
        if wait:
            wait_for(lambda: self.get("/healthz")["status"], 240)

    def get(self, path: str):
        with urllib.request.urlopen(self.url + path, timeout=10) as answer:
            return json.loads(answer.read())

    def metric(self, name: str) -> float:
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=10) as answer:
            lines = answer.read().decode().splitlines()
        return next(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


@contextmanager
def serving(folder: Path, config: str, *options: str):
    served = Served(folder, config, *options)
    try:
        yield served
    finally:
        served.stop()
