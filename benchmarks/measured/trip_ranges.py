"""Range on the held-out trips of trip_bands.py: how far a battery goes that holds what the rest of the trip used.

    python -m benchmarks.measured.trip_ranges          # after trip_drives; no data and no training needed

`range`: a trip is cut at five random places (they count together as one trip), the way goes on as driven, and the band of the
distance is compared with where such a battery was empty. The way up to the cut is known, too, so that the whole of it can be one that
was driven before. `after 5 km`: the same from there on, without and with the power measured
until then; `cabin unknown`: also without the cabin's draw ahead, which a driver does not know, either.
Contenders, splits and columns as in trip_bands.py; widths are shares of the distance. `base`: no model knows the cabin.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.measured.trip_bands import (
    BASE,
    CUT_KM,
    FIRST_KM,
    NOTE,
    POOLED,
    SETS,
    Band,
    Found,
    add,
    linear,
    measured,
    table,
)
from benchmarks.measured.trip_cabins import cabin_of, unknown_ahead
from benchmarks.measured.trip_drives import Drives, splits_of
from evband.energy import Ahead, Drive, ErrorModel, SoFar, TripMean, fit_errors
from evband.energy.ahead import long_enough
from evband.energy.cabin import Cabin
from evband.energy.ways import Ways

CUTS = 5
LEAST_KM = 2.0  # left to go
UNKNOWN = "after 5 km, cabin unknown"
BEFORE = "without the drive so far"


def reached(log: str, drive: Drive, errors: ErrorModel, at: int, so_far: bool, cabin: Cabin | None) -> Band | None:
    """The band of the distance from row `at` on, and where the battery was empty; None where nothing was drawn. With a `cabin`,
    its draw ahead is not known."""
    unsure = np.zeros(len(drive) - at)
    if cabin is not None:
        drive, unsure = unknown_ahead(log, drive, cabin, at, so_far)
    rest = drive.rows(slice(at, len(drive)))
    drawn = np.cumsum(np.where(np.isfinite(rest.power_kw), rest.power_kw, rest.mean)) / rest.hz / 3600.0
    used = float(drawn[-1])
    if np.isfinite(rest.power_kw).mean() < 0.5 or rest.distance_km[-1] < LEAST_KM or used <= 0:
        return None
    past = SoFar(errors)
    if so_far:
        past.drive(drive.rows(slice(0, at)))
    once, again = ({"cabin": kw} for kw in (unsure, np.full(len(drive), unsure[-1])))
    way = long_enough(Ahead.of(rest, errors, doubts=once), Ahead.of(drive, errors, doubts=again), used, past)
    low, middle, high = way.reach(used, past)
    km = float(rest.distance_km[np.argmax(drawn >= used)])
    return _band(log, drive, km, low, middle, high)


def _band(log: str, drive: Drive, km: float, low: float, middle: float, high: float) -> Band:
    half, side = (high - low) / 2.0, high - middle if km > middle else middle - low
    return Band(log, drive.trip_id, km - middle, abs(km - middle) / max(side, 1e-9), half, half, np.inf, km)


def cuts(drive: Drive) -> Iterator[int]:
    for share in np.random.default_rng(len(drive)).uniform(0.2, 0.8, CUTS):
        yield int(np.searchsorted(drive.distance_km, share * drive.distance_km[-1]))


def bands(log: str, drives: list[Drive], errors: ErrorModel, first: bool, so_far: bool = False, cabin: Cabin | None = None) -> list[Band]:  # fmt: skip
    found = []
    for raw in drives:
        drive, own = errors.on_its_way(errors.mean.of(raw))
        if first and drive.distance_km[-1] < CUT_KM:
            continue
        for at in [int(np.searchsorted(drive.distance_km, FIRST_KM))] if first else cuts(drive):
            found.append(reached(log, drive, own, at, so_far, cabin))
    return [band for band in found if band is not None]


def average(log: str, train: list[Drive], test: list[Drive]) -> list[Band]:
    """The battery over kWh/km of the training trips, with their spread."""
    uses = [
        measured(d, slice(None)) / d.distance_km[-1]
        for d in train
        if d.distance_km[-1] > 0.2 and np.isfinite(d.power_kw).mean() > 0.5
    ]
    use = np.array([u for u in uses if u > 0])
    low, middle, high = 1.0 / np.quantile(use, [0.95, 0.5, 0.05])
    found = []
    for drive in test:
        for at in cuts(drive):
            rest = slice(at, len(drive))
            km, kwh = float(drive.rows(rest).distance_km[-1]) if at < len(drive) else 0.0, measured(drive, rest)
            if np.isfinite(drive.power_kw[rest]).mean() < 0.5 or km < LEAST_KM or kwh <= 0:
                continue
            found.append(_band(log, drive, km, kwh * low, kwh * middle, kwh * high))
    return found


def contenders(log: str, split: str | int, variant: str) -> Iterator[tuple[str, ErrorModel, list[Drive]]]:
    """(name, errors, held-out drives) of each."""
    drives, ten = (Drives(log, split, variant, members) for members in (30, 10))
    errors, path = fit_errors(drives.of("oob")), fit_errors(linear(drives.of("oob")), TripMean())
    test = drives.of("test")
    yield "evband", errors, test
    yield "evband 10", fit_errors(ten.of("oob")), ten.of("test")
    yield "evband, no known ways", replace(errors, ways=Ways()), test
    yield "least squares", replace(path, ways=Ways()), linear(test)
    yield "least squares, known ways", path, linear(test)


def run(log: str, variant: str, split: str | int, found: Found, unknown: bool) -> None:
    """All bands of one held-out fold; with the cabin `unknown` ahead, too."""
    name = "last third" if split == "time" else "folds"
    drives = Drives(log, split, variant)
    for contender, errors, test in contenders(log, split, variant):
        add(found, name, "range", contender, bands(log, test, errors, first=False))
        add(found, name, "after 5 km", contender, bands(log, test, errors, first=True, so_far=True))
        if contender == "evband":
            add(found, name, "after 5 km", BEFORE, bands(log, test, errors, first=True))
            for other, so_far in (("evband", True), (BEFORE, False)) if unknown else ():
                add(found, name, UNKNOWN, other, bands(log, test, errors, True, so_far, cabin_of(drives)))
    add(found, name, "range", "average", average(log, drives.of("oob"), drives.of("test")))


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rows: list[dict[str, object]] = []
    for features, members in {"auto": SETS["auto"], "base": BASE}.items():
        found: Found = {}
        for log, variant in members:
            for split in splits_of(log):
                run(log, variant, split, found, features == "auto")
            print(features, log, flush=True)
        rows += table(found, features)
    write(RESULTS / "trips_range.csv", rows, NOTE)
    show("range", [r for r in rows if r["log"] == POOLED])


if __name__ == "__main__":
    main()
