"""kill -9 of a service with N cars at 1 Hz: how long until every car has bands again, and whether they say that they warm up
(`python -m benchmarks.live.fleet_return`).

The load is that of `benchmarks.live.load`. After `--before` seconds the service is killed and started again at once on the same
store; times count from the kill and so hold the start of Python, the reading of every car's state and the connection to the broker.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing as mp
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.live.load import broker_on, connection, free_port, generate, peak_mb, serve_cars, wait_until_ready
from evband.live.mqtt import PUBLISH, SUBSCRIBE, Packets, packet, text


def listen(count: int, port: int, ready: Any, killed_at: Any, until: float, out: Any) -> None:
    """Of each car: when its first band after the kill came, whether it was marked, and when one came that was not."""
    s = connection(port, "listener")
    s.sendall(packet(SUBSCRIBE, 2, b"\0\1" + text("evband/+/state") + b"\0"))
    s.settimeout(1.0)
    ready.wait()
    began = time.time()
    packets, first, warm = Packets(), np.full((count, 2), np.nan), np.zeros(count, bool)
    before = np.zeros(count, bool)
    while time.time() < began + until:
        try:
            data = s.recv(1 << 20)
        except TimeoutError:
            continue
        now, killed = time.time(), killed_at.value
        for kind, _, body in packets.feed(data):
            if kind != PUBLISH:
                continue
            state = json.loads(body[2 + (body[0] << 8 | body[1]) :])
            car = int(state["id"][1:])
            if not killed:
                before[car] |= state["mean_kw"] is not None
            elif state["mean_kw"] is not None and state["at"] > killed:
                if np.isnan(first[car, 0]):
                    first[car, 0], warm[car] = now - killed, state["warmup"]
                if not state["warmup"] and np.isnan(first[car, 1]):
                    first[car, 1] = now - killed
    out.put((first, warm, int(before.sum())))


def run(count: int, before_s: int, after_s: int) -> dict[str, Any]:
    """One kill."""
    context = mp.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder, broker_on(Path(folder)) as port:
        https = free_port(), free_port()
        services = [context.Process(target=serve_cars, args=(count, port, http, folder, True)) for http in https]
        services[0].start()
        wait_until_ready(https[0])
        out, ready = context.Queue(), context.Barrier(3)
        start_at, killed_at = context.Value("d", 0.0), context.Value("d", 0.0)
        seconds = before_s + after_s
        parts = [
            context.Process(target=listen, args=(count, port, ready, killed_at, seconds + 5.0, out)),
            context.Process(target=generate, args=(count, port, ready, start_at, seconds)),
        ]
        try:
            for process in parts:
                process.start()
            while ready.n_waiting < 2:
                time.sleep(0.05)
            start_at.value = float(int(time.time()) + 2)
            ready.wait()
            time.sleep(before_s)
            services[0].kill()
            killed_at.value = time.time()
            services[0].join()
            services[1].start()
            first, warm, before = out.get(timeout=seconds + 120)
            memory = peak_mb(services[1].pid or 0)
        finally:
            for process in (*parts, *services):
                if process.pid is not None:
                    process.terminate()
                    process.join(20)
        with sqlite3.connect(Path(folder) / "fleet.sqlite") as base:
            whole = base.execute("PRAGMA integrity_check").fetchone()[0]
    back = np.isfinite(first[:, 0])
    times = np.quantile(first[back, 0], [0.0, 0.5, 0.99, 1.0]) if back.any() else np.full(4, np.nan)
    steady = first[np.isfinite(first[:, 1]), 1]
    return {
        "cars": count, "cars_with_bands_before": before, "cars_back": int(back.sum()), "first_s": round(float(times[0]), 2), "half_s": round(float(times[1]), 2),
        "p99_s": round(float(times[2]), 2), "last_s": round(float(times[3]), 2), "first_bands_marked_warmup_pct": round(100.0 * float(warm[back].mean()), 2) if back.any() else None,
        "warm_again_p99_s": round(float(np.quantile(steady, 0.99)), 2) if len(steady) else None, "database": whole, "memory_mb": round(memory),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cars", type=int, default=10_000)
    parser.add_argument("--before", type=int, default=120, help="seconds of driving before the kill")
    parser.add_argument("--after", type=int, default=180)
    options = parser.parse_args()
    rows = [run(options.cars, options.before, options.after)]
    show("A fleet after kill -9", rows)
    write(RESULTS / "live_fleet_return.csv", rows)


if __name__ == "__main__":
    main()
