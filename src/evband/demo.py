"""The demonstration: five simulated vehicles, a model each, scored on drives it never saw, on one page.

For whoever has no log yet. Nothing in it is measured, and the page says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evband.errors import SettingsError
from evband.files import write_whole

if TYPE_CHECKING:
    from evband.report.chapter import Chapter
    from evband.training.loop import Progress

HZ = 1.0
TRIPS = 12  # of each vehicle: three to score on, and the nine that calibrating 90 % bands takes
MEMBERS = 8
LEVEL = 0.9


@dataclass(frozen=True)
class Vehicle:
    """A simulated vehicle, and which of its drives are held out of training."""

    name: str
    title: str
    about: str
    held_out: tuple[int, ...]


_BENCH = (
    "on a simulated dynamometer. Trained on HWFET, UDDS and made-up cycles; scored on made-up cycles that it never saw."
)
BENCH_HELD_OUT = (2, 3, 7)  # made-up cycles: HWFET and UDDS come again among the training runs

VEHICLES = (
    Vehicle("sedan_1", "Sedan 1", f"A compact electric sedan {_BENCH}", BENCH_HELD_OUT),
    Vehicle("sedan_2", "Sedan 2", f"A heavier electric sedan {_BENCH}", BENCH_HELD_OUT),
    Vehicle("truck", "Truck", f"A full-size electric pickup {_BENCH}", BENCH_HELD_OUT),
    Vehicle("hatchback", "Hatchback", f"A small electric hatchback {_BENCH}", BENCH_HELD_OUT),
    Vehicle(
        "highway",
        "Highway drive",
        "A simulated crossover on the road, as a phone app logs it: hills, wind, weather, lost readings, and a load that no "
        "channel shows. Scored on a long highway drive and two shorter ones that it never saw.",
        (0, 10, 11),
    ),
)


def chapter(vehicle: Vehicle, progress: Callable[[Progress], None], **settings: Any) -> Chapter:
    """Simulate the vehicle's drives, train on all but the held-out ones, and score those. `settings` are PowerModel's."""
    from evband.model import PowerModel
    from evband.report.chapter import Chapter
    from evband.scores import evaluate
    from evband.simulation import simulate
    from evband.trips import Trips

    drives = simulate(vehicle.name, hz=HZ, trips=TRIPS)
    train = Trips(drive for number, drive in enumerate(drives) if number not in vehicle.held_out)
    test = Trips(drives[number] for number in vehicle.held_out).on_grid(HZ)
    model = PowerModel(**{"members": MEMBERS, "hz": HZ} | settings).fit(train, progress=progress)
    bands = model.predict(test)
    return Chapter(model, bands, evaluate(bands, test, LEVEL), test, vehicle.title, vehicle.about)


def write(out: Path, chapters: dict[str, Chapter]) -> None:
    """`report.html`, one page for all vehicles, and `report.json`, the scores of each as `evaluate --json` has them."""
    from evband.report.page import write_page

    write_page(out / "report.html", list(chapters.values()), "Five simulated electric vehicles")
    scores = {"simulated": True, "vehicles": {name: dict(c.scores) for name, c in chapters.items()}}
    write_whole(out / "report.json", json.dumps(scores, indent=2, allow_nan=False) + "\n")


def make_directory(out: Path) -> None:
    """Make the directory, or say why that cannot be, before minutes are spent on training."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise SettingsError(
            f"{out}: it cannot be made a directory ({problem.strerror}); choose another place."
        ) from None
