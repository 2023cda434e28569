"""N cars at 1 Hz through mosquitto into `evband serve` and back: latency, lost bands, memory, cores (`python -m benchmarks.live.load`).

One shared ensemble, a small part of its own for each car, ranges renewed every 10 s. Cars are spread over the second; each message's
`utc` is when it is due, so the latency from there to the state's arrival at a listener holds the generator's own delay, too.
Generator and listener are processes of their own, whose cores are shown apart. `--find` adds a fifth until bands are lost or late.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import os
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.results_file import RESULTS, show, write
from evband.live.config import Car, Config, Mqtt, Server, Store
from evband.live.mqtt import CONNECT, PUBLISH, SUBSCRIBE, Packets, packet, publish_packet, text
from evband.live.run import DEMO

SLOTS = 20  # sends per second
TICK = os.sysconf("SC_CLK_TCK")


def connection(port: int, name: str) -> socket.socket:
    """A plain MQTT connection."""
    s = socket.create_connection(("127.0.0.1", port))
    s.sendall(packet(CONNECT, 0, text("MQTT") + bytes([4, 2, 0, 0]) + text(name)))
    s.recv(4)
    return s


def serve_cars(count: int, port: int, http: int, folder: str, keep: bool) -> None:
    """The service, with a part of its own for each car: data sheets and weights drawn as the base knows that cars differ."""
    from evband.adaptation import Base
    from evband.adaptation.bulk import Fleet
    from evband.adaptation.location import location
    from evband.adaptation.starting import started
    from evband.live.fleet import Roster
    from evband.live.run import serve
    from evband.vehicles import Sheet

    base, rng = Base.load(), np.random.default_rng(0)
    mass = np.sort(rng.uniform(1300.0, 2600.0, count))
    wheels = np.column_stack([mass, 0.62 * (mass / 1700.0) ** 0.6, rng.uniform(0.008, 0.011, count)])
    views = base.views
    own = np.einsum(
        "mpq,cq->cmp", np.linalg.cholesky(base.covariance), rng.standard_normal((count, base.spread.shape[1]))
    )
    weights, level = (location(views) + own).astype(np.float32), np.tile(views["head_b"][:, 1], (count, 1))
    kwh = 8.0 * (mass / 1000.0) ** 0.8
    fleet = Fleet(base, (Path(),) * count, weights, level, wheels, np.ones((count, 2)), kwh, ())
    cars = [Car(id=f"c{i}", model="", capacity_kwh=60.0) for i in range(count)]
    store = Store(path=str(Path(folder) / "fleet.sqlite") if keep else None, seconds_days=1 / 24)
    config = Config(tuple(cars), Mqtt(port=port), None, Server(port=http, max_cars=count), store)
    roster = Roster(cars, [], fleet, {i: i for i in range(count)})
    kg, cda, crr = map(float, wheels[roster.middle])
    sheet = Sheet("the car in the middle", "car", kerb_kg=kg - 100.0, cda_m2=cda, crr=crr)
    roster.models = [started(base, sheet)] * count
    serve(config, roster)


def generate(count: int, port: int, ready: Any, start_at: Any, seconds: int) -> None:
    """Messages of all cars, each at its own phase of the second."""
    import polars as pl

    drive = pl.read_csv(DEMO / "drive.csv").to_dicts()
    rng = np.random.default_rng(1)
    start = rng.integers(0, len(drive), count)
    s = connection(port, "generator")
    groups = np.array_split(np.arange(count), SLOTS)
    ready.wait()
    begin = start_at.value
    for second in range(seconds):
        for slot, cars in enumerate(groups):
            due = begin + second + slot / SLOTS
            lines = []
            for car in cars.tolist():
                row = drive[(start[car] + second) % len(drive)]
                message = (
                    f'{{"utc":{due:.3f},"speed":{row["speed_kmh"]},"elevation":{row["elevation_m"]},'
                    f'"ext_temp":{row["ambient_temp_c"]},"power":{row["power_kw"] or 1.0},"soc":{row["soc_pct"]}}}'
                )
                lines.append(publish_packet(f"evband/c{car}/in", message.encode()))
            wait = due - time.time()
            if wait > 0:
                time.sleep(wait)
            s.sendall(b"".join(lines))


def listen(count: int, port: int, ready: Any, start_at: Any, seconds: int, out: Any) -> None:
    """States as they arrive: latency from when the message was due, and how many seconds of each car were seen."""
    s = connection(port, "listener")
    s.sendall(packet(SUBSCRIBE, 2, b"\0\1" + text("evband/+/state") + b"\0"))
    s.settimeout(1.0)
    ready.wait()
    begin = start_at.value
    packets, waits, seen = Packets(), [], np.zeros((count, seconds), bool)
    while time.time() < begin + seconds + 8.0:
        try:
            data = s.recv(1 << 20)
        except TimeoutError:
            continue
        now = time.time()
        for kind, _, body in packets.feed(data):
            if kind != PUBLISH:
                continue
            size = body[0] << 8 | body[1]
            state = json.loads(body[2 + size :])
            at = state["at"]
            if at is not None and at >= begin - 0.01:
                second = int(at - begin + 1e-3)
                car = int(state["id"][1:])
                if second < seconds and not seen[car, second]:
                    seen[car, second] = True
                    waits.append(now - at)
    out.put((np.array(waits), int(seen.sum())))


def cores(pid: int) -> float:
    """Processor seconds of a process and its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def peak_mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def run(count: int, seconds: int, keep: bool) -> dict[str, object]:
    """One load."""
    with tempfile.TemporaryDirectory() as folder, broker_on(Path(folder)) as port:
        http, context = free_port(), mp.get_context("spawn")
        service = context.Process(target=serve_cars, args=(count, port, http, folder, keep))
        service.start()
        try:
            wait_until_ready(http)
            out, ready, start_at = context.Queue(), context.Barrier(3), context.Value("d", 0.0)
            parts = {
                "listener": context.Process(target=listen, args=(count, port, ready, start_at, seconds, out)),
                "generator": context.Process(target=generate, args=(count, port, ready, start_at, seconds)),
            }
            for process in parts.values():
                process.start()
            while ready.n_waiting < 2:  # both have started
                time.sleep(0.05)
            begin = start_at.value = float(int(time.time()) + 2)
            ready.wait()
            pids = {"service": service.pid or 0, "mosquitto": int((Path(folder) / "m.pid").read_text())}
            pids |= {n: p.pid or 0 for n, p in parts.items()}
            time.sleep(max(begin - time.time(), 0.0) + 2.0)
            before = {name: cores(pid) for name, pid in pids.items()}
            time.sleep(max(seconds - 4.0, 1.0))
            used = {name: (cores(pid) - before[name]) / max(seconds - 4.0, 1.0) for name, pid in pids.items()}
            waits, seen = out.get(timeout=seconds + 60)
            memory = peak_mb(pids["service"])
            for process in parts.values():
                process.join(10)
        finally:
            service.terminate()
            service.join(10)
    quantiles = np.quantile(waits, [0.5, 0.99, 1.0]) if len(waits) else np.full(3, np.nan)
    return {
        "cars": count, "seconds": seconds, "store": keep, "bands_lost": count * seconds - seen,
        "latency_p50_s": round(float(quantiles[0]), 3), "latency_p99_s": round(float(quantiles[1]), 3), "latency_max_s": round(float(quantiles[2]), 3),
        "memory_mb": round(memory), **{f"{name}_cores": round(value, 2) for name, value in used.items()},
    }  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def broker_on(folder: Path, more: str = "") -> Iterator[int]:
    """A mosquitto of our own; its port."""
    broker = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin")
    assert broker, "mosquitto is missing; python -m tools.live_parts installs it"
    port, conf = free_port(), folder / "m.conf"
    own = f"listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\nset_tcp_nodelay true\n"
    conf.write_text(own + more)
    process = subprocess.Popen([broker, "-c", str(conf)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    (folder / "m.pid").write_text(str(process.pid))
    time.sleep(1.0)
    try:
        yield port
    finally:
        process.terminate()
        process.wait(10)


def is_ready(port: int) -> bool:
    """Whether the service steps and has its broker: its socket listens long before."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
            return bool(json.loads(answer.read())["status"] == "ok")
    except OSError:
        return False


def wait_until_ready(port: int, seconds: float = 300.0) -> None:
    end = time.time() + seconds
    while not is_ready(port):
        if time.time() > end:
            raise TimeoutError("the service did not start")
        time.sleep(0.2)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cars", type=int, default=10_000)
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--no-store", action="store_true")
    parser.add_argument(
        "--find", action="store_true", help="more cars, by a fifth each time, until it does not keep up"
    )
    options = parser.parse_args()
    rows = [run(options.cars, options.seconds, not options.no_store)]
    while options.find and not rows[-1]["bands_lost"] and float(str(rows[-1]["latency_p99_s"])) < 1.0:
        rows.append(run(int(1.2 * int(str(rows[-1]["cars"]))), options.seconds, not options.no_store))
    show("Live load", rows)
    write(RESULTS / ("live_load_most.csv" if options.find else "live_load.csv"), rows)


if __name__ == "__main__":
    main()
