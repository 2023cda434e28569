"""`evband demo`: from nothing to a page that shows what a band is."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evband.cli.progress import Report, duration, reporting

if TYPE_CHECKING:
    from evband.training.loop import Progress


def demo(
    out: Annotated[Path, typer.Option(help="Directory for report.html and report.json.")] = Path("demo"),
) -> None:
    """Simulate five electric vehicles, train a model each, score it on drives it never saw, and write one page about it.

    Example: evband demo --out demo/
    """
    from evband.demo import TRIPS, VEHICLES, chapter, make_directory, write
    from evband.simulation.vehicles import import_fastsim

    make_directory(out)
    import_fastsim()
    began = time.monotonic()
    print(
        f"Five simulated vehicles, {TRIPS} drives each; nothing here is measured. This takes about two minutes.",
        flush=True,
    )
    chapters = {}
    for number, vehicle in enumerate(VEHICLES, 1):
        with reporting(f"{number}/{len(VEHICLES)} {vehicle.title}: epoch") as report:
            chapters[vehicle.name] = chapter(vehicle, _show(report))
        scores = chapters[vehicle.name].scores
        print(
            f"{number}/{len(VEHICLES)} {vehicle.title:14} {scores['coverage']:6.1%} of values inside the 90 % band, "
            f"{scores['width_kw']:5.2f} kW wide; typical miss {scores['mae_kw']:.2f} kW",
            flush=True,
        )
    write(out, chapters)
    print(
        f"Done in {duration(time.monotonic() - began)}. Open {out / 'report.html'} in a browser; it needs no network."
    )
    print("Look first at the top picture: nine of ten dots inside the band is what the model promises.")
    print("Scores of every vehicle are in", out / "report.json")


def _show(report: Report) -> Callable[[Progress], None]:
    return lambda now: report(now.epoch, now.epochs, f"{duration(now.seconds_left)} left")
