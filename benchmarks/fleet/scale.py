"""How long a fleet takes, what it needs, and whether a killed worker or another engine changes a bit of it.

    python -m benchmarks.fleet.simulated --cars 10000 -o LAKE
    python -m benchmarks.fleet.scale LAKE --cars 10000 --workers 2 --ray auto --kill       # -> results/fleet_scale.csv
    python -m benchmarks.fleet.scale LAKE --cars 1000 --workers 1                          # adds rows to it
    python -m benchmarks.fleet.scale LAKE --cars 200 --predict                             # -> results/fleet_predict.csv

Each car has three trips of ten minutes at 1 Hz. Seconds are those of the whole command: finding cars, starting workers,
fitting, prior and report. With --kill the worker that is busiest is killed after a third of the cars. The last column is a
hash of all bytes of the first `SAME` cars' parts: equal hashes are equal parts.

"""

from __future__ import annotations

import argparse
import csv
import hashlib
import os
import resource
import shutil
import signal
import time
from pathlib import Path
from typing import Any

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.fleet.simulated import PER_FILE

SAME = 200  # cars whose parts are hashed


def processes() -> dict[int, str]:
    """Workers on this machine: of this command's pool, or Ray's."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            name = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
        except (OSError, ValueError):
            continue
        if name.startswith("ray::") or (parent == os.getpid() and "spawn_main" in name):
            found[int(folder.name)] = name
    return found


def status(pid: int, field: str) -> int:
    """kB of a process."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(field)), 0)


class Watch:
    """Called after each batch: the largest worker so far, and the kill."""

    def __init__(self, kill: bool) -> None:
        self.kill, self.killed, self.largest = kill, 0, 0
        self.began = time.perf_counter()

    def __call__(self, done: int, total: int) -> None:
        pids = processes()
        self.largest = max([self.largest, *(status(pid, "VmHWM") for pid in pids)])
        if self.kill and not self.killed and 3 * done >= total:
            busy = [pid for pid, name in pids.items() if "work" in name or "spawn_main" in name]
            self.killed = max(busy, key=lambda pid: status(pid, "VmRSS"))
            os.kill(self.killed, signal.SIGKILL)
        if done % 1000 < 50 or done == total:
            print(f"{done} of {total} cars, {time.perf_counter() - self.began:.0f} s", flush=True)


def cpu_s() -> float:
    """Of this process and of its workers that have ended: what a busy machine does not stretch."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def parts_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted((folder / "cars").glob("*.evband"))[:SAME]:
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def measure(given: argparse.Namespace) -> dict[str, Any]:
    from evband.fleet import run_fleet

    files = [str(given.lake / f"part-{first:06d}.parquet") for first in range(0, given.cars, PER_FILE)]
    output = given.lake.with_name(f"fleet-{given.cars}-{given.workers}-{given.ray}")
    shutil.rmtree(output, ignore_errors=True)
    watch = Watch(given.kill)
    options = {"sheets": given.lake.with_suffix(".toml"), "workers": given.workers, "ray": given.ray, "tell": watch}
    table = run_fleet("fit", files, output, **options)
    seconds = time.perf_counter() - watch.began
    if given.predict:
        return predicted(files, output, given)
    size = sum(file.stat().st_size for file in output.rglob("*") if file.is_file())
    return {
        "cars": given.cars, "workers": given.workers, "ray": given.ray, "killed": int(watch.killed > 0),
        "seconds": round(seconds, 1), "core_seconds_per_car": round(seconds * given.workers / given.cars, 4),
        "part_kb": round(sum(f.stat().st_size for f in (output / "cars").iterdir()) / len(table) / 1e3, 1),
        "fleet_mb": round(size / 1e6, 1), "largest_worker_mb": round(watch.largest / 1e3), "cars_done": len(table),
        "warnings": int((table["warning"] != "").sum()), "last_trip_coverage": round(float(table["coverage"].drop_nulls().to_numpy().mean()), 4),
        "hash": parts_hash(output),
    }  # fmt: skip


def predicted(files: list[str], output: Path, given: argparse.Namespace) -> dict[str, Any]:
    """`evband fleet predict --every 10` of the same half hour of each car, after the fit."""
    from evband.fleet import run_fleet

    watch, before = Watch(kill=False), cpu_s()
    run_fleet("predict", files, output, every=10, workers=given.workers, ray=given.ray, tell=watch)
    seconds = time.perf_counter() - watch.began
    size = sum(file.stat().st_size for file in (output / "predict").iterdir())
    hours = 0.5 * given.cars
    return {
        "cars": given.cars, "hours": hours, "workers": given.workers, "ray": given.ray, "seconds": round(seconds, 1),
        "core_seconds_per_hour_driven": round(seconds * given.workers / hours, 4),
        "cpu_seconds_per_hour_driven": round((cpu_s() - before) / hours, 4) if given.ray == "off" else "", "kb_per_car": round(size / given.cars / 1e3, 1),
        "largest_worker_mb": round(watch.largest / 1e3),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lake", type=Path)
    parser.add_argument("--cars", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ray", default="off")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--predict", action="store_true")
    given = parser.parse_args()
    path = RESULTS / ("fleet_predict.csv" if given.predict else "fleet_scale.csv")
    rows: list[dict[str, Any]] = []
    if path.exists():
        rows = list(csv.DictReader(line for line in path.read_text().splitlines() if not line.startswith("#")))
    rows.append(measure(given))
    write(path, rows, f"the command of the last row; three trips of ten minutes per car; hash of {SAME} cars' parts")
    show("a fleet", rows)


if __name__ == "__main__":
    main()
