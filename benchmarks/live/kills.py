"""kill -9 again and again in the middle of a drive: what is lost, whether the database is whole, how bands compare (`python -m benchmarks.live.kills`).

Two services get the same messages; one is never killed. Messages go out with QoS 1 (they wait at the broker), with QoS 0 (what comes
while it is dead is lost, but for two seconds nothing else may be), and with QoS 0 through a broker that keeps also those
(mosquitto's `queue_qos0_messages`). Each service runs in a folder of its own.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.live.load import broker_on, free_port, is_ready
from evband.live.config import Mqtt
from evband.live.mqtt import Client
from evband.live.run import DEMO


class Server:
    """`evband serve` of one car in a folder."""

    def __init__(self, folder: Path, car: str, port: int) -> None:
        folder.mkdir()
        self.folder, self.car, self.http = folder, car, free_port()
        (folder / "c.toml").write_text(self.configuration(port))
        self.start()

    def configuration(self, port: int) -> str:
        car = f'[[car]]\nid = "{self.car}"\nmodel = "{DEMO / "demo.evband"}"\ncapacity_kwh = 60\n'
        return f'[mqtt]\nport = {port}\nclient_id = "{self.car}"\n[store]\npath = "s.sqlite"\n{car}'

    def start(self) -> None:
        command = [sys.executable, "-m", "evband", "serve", "c.toml", "--port", str(self.http)]
        self.process = subprocess.Popen(command, cwd=self.folder, stderr=subprocess.DEVNULL)

    def ready(self) -> bool:
        return is_ready(self.http)


def play(
    client: Client, servers: list[Server], drive: list[dict[str, Any]], kills: int, qos: int
) -> tuple[float, int, list[tuple[float, float]]]:
    """Send a message per second to both and kill the second again and again: (start, seconds sent, times dead)."""
    while not (all(server.ready() for server in servers) and client.connected):
        time.sleep(0.2)
    dead: list[tuple[float, float]] = []
    start = float(int(time.time()) + 2)
    second, killed_at, next_kill = 0, 0.0, start + 20.0
    while len(dead) < kills or time.time() < dead[-1][1] + 62.0:
        at = start + second
        time.sleep(max(at - time.time(), 0.0))
        row = drive[second % 900]
        message = {
            "utc": at, "speed": row["speed_kmh"], "elevation": row["elevation_m"], "ext_temp": row["ambient_temp_c"],
            "power": row["power_kw"] or 1.0, "soc": row["soc_pct"],
        }  # fmt: skip
        for server in servers:
            client.publish(f"evband/{server.car}/in", json.dumps(message).encode(), qos=qos)
        second += 1
        if killed_at and servers[1].ready():
            dead.append((killed_at, time.time()))
            killed_at, next_kill = 0.0, time.time() + 5.0 + (second * 7919 % 10)
        if not killed_at and time.time() > next_kill and len(dead) < kills:
            servers[1].process.kill()
            servers[1].process.wait()
            killed_at = time.time()
            servers[1].start()
    time.sleep(3.0)
    return start, second, dead


def run(kills: int, qos: int, queued: bool) -> dict[str, Any]:
    drive = pl.read_csv(DEMO / "drive.csv").slice(200).to_dicts()
    states: dict[str, dict[float, dict[str, Any]]] = {"whole": {}, "killed": {}}

    def heard(topic: str, payload: bytes, retained: bool) -> None:
        state = json.loads(payload)
        if state["at"] is not None and state["mean_kw"] is not None:
            states[state["id"]][state["at"]] = state

    with tempfile.TemporaryDirectory() as name, ExitStack() as broker:
        folder = Path(name)
        port = broker.enter_context(broker_on(folder, "queue_qos0_messages true\n" if queued else ""))
        client = Client(Mqtt(port=port, client_id="sender"), ["evband/+/state"], heard)
        client.start()
        servers = [Server(folder / car, car, port) for car in states]
        try:
            start, second, dead = play(client, servers, drive, kills, qos)
        finally:
            for server in servers:
                server.process.terminate()
                server.process.wait(20)
            client.stop()
        base = sqlite3.connect(folder / "killed" / "s.sqlite")
        whole = base.execute("PRAGMA integrity_check").fetchone()[0]
        stored = np.array([t for (t,) in base.execute("SELECT t FROM seconds ORDER BY t")])
        base.close()
    missing = np.setdiff1d(np.round(start + np.arange(second - 5), 3), np.round(stored, 3))
    alive = [t for t in missing if not any(a - 0.001 <= t <= b + 1.0 for a, b in dead)]
    lost = [sum(1 for t in alive if a - 10 <= t < a) for a, _ in dead]
    last = dead[-1][1]
    shared = [at for at in states["whole"] if at in states["killed"] and at > last + 58.0]
    worst = max(
        abs(states["whole"][at][k] - states["killed"][at][k])
        for at in shared
        for k in ("mean_kw", "lower_kw", "upper_kw")
    )
    return {
        "kills": len(dead), "qos": qos, "broker_keeps_qos0": queued, "database": whole, "seconds_lost_before_a_kill_max": max(lost), "seconds_lost_while_dead": len(missing) - len(alive),
        "down_s_mean": round(float(np.mean([b - a for a, b in dead])), 2), "band_difference_60_s_later_kw": round(worst, 4),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    options = parser.parse_args()
    with ThreadPoolExecutor(3) as together:
        rows = list(together.map(lambda how: run(options.kills, *how), ((1, False), (0, False), (0, True))))
    show("kill -9", rows)
    write(RESULTS / "live_kills.csv", rows)


if __name__ == "__main__":
    main()
