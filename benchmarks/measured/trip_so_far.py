"""What the first 5 km of a drive can predict of the rest: a bound on how much narrower any band could get by them.

    python -m benchmarks.measured.trip_so_far          # after trip_drives; no data and no training needed

Of every held-out trip of 8 km or more: the mean error over its first 5 km (without the start that `evband.energy.so_far` passes over)
and over the rest, both in units of the band's scale. With their correlation rho, the best linear use of the beginning leaves
sqrt(1 - rho^2) of the width. Here rho is that of the very trips reported, which no method could know beforehand, so this flatters
(rho^2 is adjusted for its one slope). Logs with fewer than ten such trips count together. `all`: each log's widths, narrowed by its own bound.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.measured.trip_bands import BASE, POOLED, SETS, band_of, judged, measured, rest
from benchmarks.measured.trip_drives import Drives, splits_of
from evband.energy import Drive, ErrorModel, fit_errors, stretch_energy
from evband.energy.so_far import START_S

FEW = 10
OTHERS = "fewer than ten trips"


class Pair(NamedTuple):
    first: float  # errors of mean power over the band's scale
    rest: float
    half: float  # kWh


def pairs(log: str, drives: list[Drive], errors: ErrorModel) -> Iterator[Pair]:
    for raw in drives:
        drive = errors.mean.of(raw)
        for which in (w for w in rest(drive) if judged(drive, w)):
            begin = slice(min(round(START_S * drive.hz), which.start // 2), which.start)
            if judged(drive, begin):
                z = [
                    band_of(log, stretch_energy(drive, part, errors), measured(drive, part)) for part in (begin, which)
                ]
                yield Pair(z[0].error / z[0].scale, z[1].error / z[1].scale, z[1].half)


def bound(found: list[Pair]) -> tuple[float, float]:
    """(correlation, share of the width that is left at best)."""
    first, later, _ = np.array(found).T
    rho, n = float(np.corrcoef(first, later)[0, 1]), len(found)
    return rho, float(np.sqrt(min(1.0, (1.0 - rho * rho) * (n - 1) / (n - 2))))


def table(features: str, members: list[tuple[str, str]]) -> list[dict[str, object]]:
    found: dict[str, list[Pair]] = {}
    for log, variant in members:
        own: list[Pair] = []
        for split in (s for s in splits_of(log) if s != "time"):
            drives = Drives(log, split, variant)
            own += pairs(log, drives.of("test"), fit_errors(drives.of("oob")))
        found.setdefault(log if len(own) >= FEW else OTHERS, []).extend(own)
    rows: list[dict[str, object]] = []
    before = after = 0.0
    for log, own in found.items():
        rho, left = bound(own)
        width = sum(pair.half for pair in own)
        before, after = before + width, after + left * width
        rows.append({"features": features, "log": log, "trips": len(own), "correlation": f"{rho:.3f}", "left": f"{left:.3f}"})  # fmt: skip
    count = sum(len(own) for own in found.values())
    return [*rows, {"features": features, "log": POOLED, "trips": count, "correlation": "", "left": f"{after / before:.3f}"}]  # fmt: skip


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rows = [row for name, members in {"auto": SETS["auto"], "base": BASE}.items() for row in table(name, members)]
    write(RESULTS / "trips_so_far.csv", rows, "folds; `left`: width after 5 km over width before, at best")
    show("so far", rows)


if __name__ == "__main__":
    main()
