"""The broker goes away for five minutes: does memory stay bounded, and how soon are bands back (`python -m benchmarks.live.broker_away`).

Cars go on sending over HTTP meanwhile, so that states are made that nobody takes; one car sends over MQTT before and after.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.live.kills import Server
from benchmarks.live.load import free_port
from evband.live.config import Mqtt
from evband.live.mqtt import Client
from evband.live.run import DEMO

CARS = 50


class Fifty(Server):
    """`evband serve` of many cars on one model."""

    def configuration(self, port: int) -> str:
        cars = "".join(
            f'[[car]]\nid = "c{i}"\nmodel = "{DEMO / "demo.evband"}"\ncapacity_kwh = 60\n' for i in range(CARS)
        )
        return f'[mqtt]\nport = {port}\n[store]\npath = "s.sqlite"\n{cars}'

    def post(self, at: float, speed: float) -> None:
        lines = "\n".join(json.dumps({"car": f"c{i}", "utc": at, "speed": speed, "soc": 60}) for i in range(1, CARS))
        urllib.request.urlopen(f"http://127.0.0.1:{self.http}/api/in", lines.encode(), timeout=10).close()

    def memory_mb(self) -> float:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


def run(away_s: float) -> dict[str, Any]:
    broker = shutil.which("mosquitto", path="/usr/sbin:/usr/bin")
    assert broker, "mosquitto is missing; python -m tools.live_parts installs it"
    heard: list[float] = []
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        (folder / "m.conf").write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        command = [broker, "-c", str(folder / "m.conf")]
        mosquitto = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(1.0)
        client = Client(Mqtt(port=port, client_id="sender"), ["evband/c0/state"], lambda *_: heard.append(time.time()))
        client.start()
        server = Fifty(folder / "away", "c0", port)
        try:
            while not (server.ready() and client.connected):
                time.sleep(0.2)
            before = _drive(server, client, 60.0)
            mosquitto.terminate()
            mosquitto.wait(10)
            meanwhile = _drive(server, client, away_s)
            mosquitto = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            again = time.time()
            after = _drive(server, client, 30.0)
            back = next((at - again for at in heard if at > again), None)
        finally:
            server.process.terminate()
            server.process.wait(20)
            client.stop()
            mosquitto.terminate()
            mosquitto.wait(10)
    return {
        "cars": CARS, "away_s": away_s, "memory_before_mb": round(before), "memory_away_most_mb": round(meanwhile),
        "memory_after_mb": round(after), "band_back_after_s": None if back is None else round(back, 2),
    }  # fmt: skip


def _drive(server: Fifty, client: Client, seconds: float) -> float:
    """Readings for so long; the most memory meanwhile."""
    end, most = time.time() + seconds, 0.0
    while time.time() < end:
        at = time.time()
        server.post(at, 60.0 + 10.0 * (at % 2.0))
        client.publish("evband/c0/in", json.dumps({"utc": at, "speed": 60.0, "soc": 60}).encode())
        most = max(most, server.memory_mb())
        time.sleep(max(at + 1.0 - time.time(), 0.0))
    return most


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--away-s", type=float, default=300.0)
    options = parser.parse_args()
    rows = [run(options.away_s)]
    show("Broker away", rows)
    write(RESULTS / "live_broker_away.csv", rows)


if __name__ == "__main__":
    main()
