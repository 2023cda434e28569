"""Draw the pictures of docs/gallery.md, all of a simulated car whose model ships with `evband serve --demo`.

    python -m tools.docs.gallery [PICTURE...]

The drives shown are simulated (nothing in them is measured), and the model never saw them. Pictures of pages are taken
with Chromium (`python -m tools.live_parts` installs it).
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import evband
from evband.live.run import DEMO
from evband.model import PowerModel
from evband.trips import Trips

OUT = Path(__file__).parents[2] / "docs" / "gallery"
CHROMIUM = "/usr/bin/chromium"
DESK, PHONE = {"width": 1180, "height": 900}, {"width": 390, "height": 844}
CAPACITY_KWH, SOC = 60.0, 78.0
PORT = 8767


@cache
def car() -> PowerModel:
    return evband.load(DEMO / "demo.evband")


@cache
def drives() -> Trips:
    """Ten drives after those that the model was trained on."""
    return Trips(evband.simulate("highway", hz=1.0, seed=7, trips=20)[10:]).on_grid(car().settings_.hz)


def plot(axes: Any, path: Path) -> None:
    axes.figure.savefig(path, dpi=110, metadata={"Software": None})


def bands(path: Path) -> None:
    axes = car().predict(drives()).plot()
    axes.set(xlim=(0, 10), ylim=(-45, 60))
    plot(axes, path)


def energy(path: Path) -> None:
    plot(car().energy(drives()).plot(), path)


def reach(path: Path) -> None:
    plan = car().range(SOC, CAPACITY_KWH, str(DEMO / "route.csv"), ambient_c=8.0)
    plot(plan.plot(), path)


@contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


def write_report(path: Path) -> None:
    found = car().predict(drives())
    evband.write_report(path, car(), found, evband.evaluate(found, drives()), drives())


def report(path: Path, size: dict[str, int] = DESK, anchor: str = "") -> None:
    """The report's first screen, or one of its sections, in a window of this size."""
    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        write_report(Path(folder) / "report.html")
        page = chromium.new_page(viewport=size)
        page.goto(f"file://{folder}/report.html")
        if anchor:
            page.locator(anchor).screenshot(path=path)
        else:
            page.screenshot(path=path)


def live(path: Path) -> None:
    """`evband serve --demo` after it has run for a while."""
    command = [sys.executable, "-m", "evband", "serve", "--demo", "--port", str(PORT)]
    service = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with browser() as chromium:
            page = chromium.new_page(viewport=DESK, locale="de-DE")  # kilometres
            for _ in range(60):
                try:
                    page.goto(f"http://127.0.0.1:{PORT}/")
                    break
                except Exception:  # not yet listening
                    time.sleep(1.0)
            page.wait_for_timeout(60_000)
            page.screenshot(path=path)
    finally:
        service.terminate()
        service.wait()


PICTURES: dict[str, Callable[[Path], None]] = {
    "bands": bands,
    "energy": energy,
    "range": reach,
    "report": report,
    "report_energy": lambda path: report(path, anchor="#energy-0"),
    "report_phone": lambda path: report(path, PHONE),
    "live": live,
}


def main(names: list[str]) -> None:
    OUT.mkdir(exist_ok=True)
    for name in names or list(PICTURES):
        PICTURES[name](OUT / f"{name}.png")
        print(f"docs/gallery/{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
