"""What a study runs on: a vehicle's training and test trips, the features it offers, the grid."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path

from evband.errors import SettingsError
from evband.settings import MOST_HZ
from evband.trips import Trips

DYNO_HZ, ROAD_HZ = 10.0, 1.0
PAPER_FEATURES = {"highway": "torque"}  # the road drive's; else S1, the bench's best set
TEST_SHARE = 0.3
LONGEST_NAME = 150  # characters of a file's name


@dataclass(frozen=True)
class Case:
    """One vehicle, cut into training and test trips."""

    name: str
    train: Trips
    test: Trips
    features: str
    hz: float

    @property
    def fingerprint(self) -> str:
        """Of trips and cut, so that results of other data are never taken for these."""
        prints = (*self.train.fingerprints, "/", *self.test.fingerprints)
        return _digest(" ".join(prints))


def file_name(text: str) -> str:
    """Text as (a part of) a file's name; a long one is cut and ends in its hash."""
    plain = re.sub(r"[^\w.+-]", "_", text.replace(",", "+"))
    return plain if len(plain) <= LONGEST_NAME else f"{plain[:LONGEST_NAME]}-{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def check_hz(hz: float) -> None:
    if not 0 < hz <= MOST_HZ:
        raise SettingsError(f"--hz {hz:g}: choose a grid above 0 and up to {MOST_HZ} rows per second.")


def cut(name: str, trips: Trips, features: str, hz: float, seed: int = 0) -> Case:
    """Whole trips to either side; a single run is cut once in time, with a gap.

    The paper tests on 30 % of the samples of one run and does not say which. Samples drawn at random would have
    training samples a tenth of a second to their left and right, so the last 30 % of the run are taken instead.
    """
    check_hz(hz)
    train, held = trips.split(test=TEST_SHARE, seed=seed)
    return Case(name, train.on_grid(hz), held.on_grid(hz), features, hz)


def simulated(name: str, features: str | None = None, hz: float | None = None, trips: int = 1) -> Case:
    """One of the simulated vehicles: the first HWFET run, or the highway drive, unless more trips are asked for."""
    from evband.simulation import simulate

    grid = (ROAD_HZ if name == "highway" else DYNO_HZ) if hz is None else hz
    check_hz(grid)
    drives = simulate(name, hz=grid, trips=trips)
    return cut(name, drives, PAPER_FEATURES.get(name, "S1") if features is None else features, grid)


def simulated_names(text: str) -> list[str]:
    """`sedan_1,truck` or `all`."""
    from evband.simulation import NAMES

    names = list(NAMES) if text == "all" else [part.strip() for part in text.split(",") if part.strip()]
    unknown = [name for name in names if name not in NAMES]
    if unknown or not names:
        raise SettingsError(
            f"There is no simulated vehicle {(unknown or [text])[0]!r}; choose from {', '.join(NAMES)}, or all."
        )
    return names


def name_of(log: str) -> tuple[str, str]:
    """`car=logs/*.csv` as (car, logs/*.csv); without a name, the file's own. A log whose path has a = is not a name."""
    name, equals, pattern = log.partition("=")
    if equals and not glob(log):
        return name, pattern
    stem = Path(log).stem
    return (stem if "*" not in stem and "?" not in stem else Path(log).parent.name or "log"), log


def check_names(cases: Sequence[Case]) -> None:
    names = [case.name for case in cases]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"Two logs are called {twice!r}; name them, as in --logs car1={twice}.csv.")
