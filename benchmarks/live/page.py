"""The page in Chromium against the demo's car (`python -m benchmarks.live.page [--moving-s 60] [--hours 8]`).

Measured: milliseconds until the page can be used; from a reading's POST until its band is painted (the page writes the newest time it drew
to `data-at`, seen in the same task as the paint); whether every second of `--moving-s` had a new picture; and the heap after a collection
while a car is replayed at speed for `--hours` of driving. Chromium is Debian's (`python -m tools.live_parts`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.live.load import free_port
from evband.live.run import DEMO

SPEED = 240.0  # of the replay that looks at memory: an hour in 15 s
WATCH = """() => { window.painted = []; const chart = document.getElementById('power-chart');
new MutationObserver(() => window.painted.push([Number(chart.dataset.at), Date.now() / 1000])).observe(chart, {attributes: true}); }"""


@contextmanager
def served(car: str) -> Iterator[str]:
    """`evband serve` of one car; its address."""
    with tempfile.TemporaryDirectory() as folder:
        config = f'[[car]]\nid = "c"\nmodel = "{DEMO / "demo.evband"}"\ncapacity_kwh = 60\nroute = "{DEMO / "route.csv"}"\n{car}'
        (Path(folder) / "c.toml").write_text(config)
        port = free_port()
        command = [sys.executable, "-m", "evband", "serve", "c.toml", "--port", str(port)]
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
        url = f"http://127.0.0.1:{port}"
        try:
            while not _answers(url):
                time.sleep(0.2)
            yield url
        finally:
            process.terminate()
            process.wait(20)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def opened(browser: Browser, url: str, complaints: list[str]) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda e: complaints.append(str(e)))
    page.goto(url)
    page.wait_for_selector("#car:not([hidden])")
    return page


def moving(browser: Browser, seconds: int) -> dict[str, Any]:
    """A reading per second, posted; when is its band on the screen?"""
    rows = pl.read_csv(DEMO / "drive.csv").slice(200).to_dicts()
    complaints: list[str] = []
    sent: dict[float, float] = {}
    with served("") as url:
        page = None
        for i in range(seconds + 15):
            at, row = float(int(time.time())), rows[i % len(rows)]
            message = {"utc": at, "speed": row["speed_kmh"], "elevation": row["elevation_m"], "ext_temp": row["ambient_temp_c"], "power": row["power_kw"], "soc": row["soc_pct"]}  # fmt: skip
            body = json.dumps({k: v for k, v in message.items() if v is not None}).encode()
            sent[at] = time.time()
            urllib.request.urlopen(f"{url}/api/cars/c/in", body, timeout=10).close()
            if i == 10:
                page = opened(browser, url, complaints)
                ready = float(page.evaluate("performance.now()"))
                page.evaluate(WATCH)
            rest = at + 1.02 - time.time()
            time.sleep(max(rest, 0.0)) if page is None else page.wait_for_timeout(1000.0 * max(rest, 0.0))
        assert page is not None
        painted = {at: when for at, when in reversed(page.evaluate("window.painted"))}
        page.close()
    late = np.array([painted[at] - sent[at] for at in sorted(sent) if at in painted][2:])
    return {
        "what": "moving", "seconds": seconds, "usable_ms": round(ready), "pictures": len(late), "tick_to_pixel_p50_ms": round(1e3 * float(np.quantile(late, 0.5))),
        "tick_to_pixel_p95_ms": round(1e3 * float(np.quantile(late, 0.95))), "console_errors": len(complaints), "heap_first_kb": None, "heap_last_kb": None,
    }  # fmt: skip


def heap(browser: Browser, hours: float) -> dict[str, Any]:
    """Memory of the page over hours of driving, after collections."""
    complaints: list[str] = []
    with served(f'source = "replay"\nspeed = {SPEED}\nfile = "{DEMO / "drive.csv"}"\n') as url:
        page = opened(browser, url, complaints)
        tools = page.context.new_cdp_session(page)
        used = []
        for _ in range(9):  # the first look is after an eighth: then every array has its size
            page.wait_for_timeout(1000.0 * 3600.0 * hours / SPEED / 8)
            tools.send("HeapProfiler.collectGarbage")
            used.append(tools.send("Runtime.getHeapUsage")["usedSize"] / 1e3)
        page.close()
    return {
        "what": "heap", "seconds": round(3600 * hours), "usable_ms": None, "pictures": None, "tick_to_pixel_p50_ms": None, "tick_to_pixel_p95_ms": None,
        "console_errors": len(complaints), "heap_first_kb": round(used[0]), "heap_last_kb": round(used[-1]),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moving-s", type=int, default=60)
    parser.add_argument("--hours", type=float, default=8.0)
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        rows = [moving(browser, options.moving_s), heap(browser, options.hours)]
        browser.close()
    show("the page in Chromium", rows)
    write(RESULTS / "live_page.csv", rows)


if __name__ == "__main__":
    main()
