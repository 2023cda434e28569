"""Energy bands over whole trips, with and without a plan, on ten logs: every trip held out once, and the last third in time order.

    python -m benchmarks.measured.trip_drives prepare --data DIR     # see its docstring: prepare, then train
    python -m benchmarks.measured.trip_bands                         # after them; no data and no training needed

Contenders on the same held-out trips: `evband` (30 members), `evband 10` (10 of them), `evband, no known ways` (as if every way were
new), `least squares` on all features of our model with the same error model (its noise taken from the ensemble, which helps it),
`least squares, known ways` (with what evband learns of ways driven before), `average`: kWh/km of the training trips with its spread.
`rest`: the trip after its first 5 km, without and with the power measured until then; `rest, cabin unknown`: also without the cabin's
draw ahead, which a driver does not know, either. `planned`: the trip as a router would have planned it, speeds smoothed and stops
unknown. `width_at_90`: mean width over mean energy, all bands of a contender stretched alike so that 90 % hold; `ratio`: evband's over
the row's. A trip counts once; legs of one drive are in one fold.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from benchmarks.common.results_file import RESULTS, show, write
from benchmarks.measured.trip_cabins import cabin_of, unknown_ahead
from benchmarks.measured.trip_drives import LOGS, Drives, splits_of
from evband.energy import Drive, EnergyBand, ErrorModel, TripMean, fit_errors, stretch_energy
from evband.energy.cabin import Cabin
from evband.energy.floor import below
from evband.energy.planned import Planned, fit_planned
from evband.energy.ways import Ways

Array = NDArray[np.float64]
NOTE = (
    "30 members, default settings, seed 0, fits from the base of 2,377 simulated vehicles; "
    "the form of the error model was settled by looking at the same trips"
)
POOLED = "all"
FIRST_KM = 5.0
STRETCH_KM = 10.0
CUT_KM = 8.0  # trips shorter than this have no rest to speak of


class Band(NamedTuple):
    """One band and what came true, in kWh."""

    log: str
    trip: str
    error: float
    needed: float  # the error over the 90 % band's side that it fell on
    half: float  # of the 90 % band's width
    scale: float
    dof: float
    used: float


def band_of(log: str, band: EnergyBand, used: float) -> Band:
    """An energy band, and what was used."""
    half, error = band.quantile(0.95) - band.mean_kwh, used - band.mean_kwh
    return Band(log, band.trip_id, error, abs(error) / half, half, band.scale_kwh, band.dof, used)


def linear(drives: Iterable[Drive]) -> list[Drive]:
    """The same drives as least squares predicts them."""
    return [replace(d, mean=d.linear, members=d.linear[None]) for d in drives if d.linear is not None]


def measured(drive: Drive, which: slice) -> float:
    power = drive.power_kw[which]
    return float(np.where(np.isfinite(power), power, drive.mean[which]).sum() / drive.hz / 3600.0)


def whole(drive: Drive) -> list[slice]:
    return [slice(0, len(drive))]


def stretches(drive: Drive) -> list[slice]:
    """Five stretches of 10 km; a trip's count together as one."""
    room = float(drive.distance_km[-1]) - STRETCH_KM
    if room <= 0:
        return []
    return [drive.between_km(s, s + STRETCH_KM) for s in np.random.default_rng(len(drive)).uniform(0, room, 5)]


def rest(drive: Drive) -> list[slice]:
    long = drive.distance_km[-1] >= CUT_KM
    return [slice(int(np.searchsorted(drive.distance_km, FIRST_KM)), len(drive))] if long else []


def bands(log: str, drives: list[Drive], errors: ErrorModel, cut: Callable[[Drive], list[slice]], so_far: bool = False) -> list[Band]:  # fmt: skip
    found = []
    for raw in drives:
        drive = errors.mean.of(raw)
        for which in filter(partial(judged, drive), cut(drive)):
            found.append(band_of(log, stretch_energy(drive, which, errors, so_far), measured(drive, which)))
    return found


def judged(drive: Drive, which: slice) -> bool:
    """Whether enough was measured of these rows."""
    return bool(np.isfinite(drive.power_kw[which]).mean() >= 0.5 and which.stop - which.start >= 10 * drive.hz)


def unknown_bands(log: str, drives: list[Drive], errors: ErrorModel, cabin: Cabin, so_far: bool) -> list[Band]:
    """Of the rest of each drive, where it is not known what the cabin will draw."""
    found = []
    for raw in drives:
        drive = errors.mean.of(raw)
        for which in filter(partial(judged, drive), rest(drive)):
            expected, unsure = unknown_ahead(log, drive, cabin, which.start, so_far)
            band, more = stretch_energy(expected, which, errors, so_far), float(unsure.sum()) / drive.hz / 3600.0
            band = replace(band, scale_kwh=float(np.hypot(band.scale_kwh, more)))
            found.append(band_of(log, band, measured(expected, which)))
    return found


def average(log: str, train: list[Drive], test: list[Drive]) -> list[Band]:
    """kWh/km of the training trips, t prediction interval."""
    train = [d for d in train if d.distance_km[-1] > 0.2 and np.isfinite(d.power_kw).mean() > 0.5]
    use = np.array([measured(d, slice(None)) / d.distance_km[-1] for d in train])
    scale = float(use.std(ddof=1) * np.sqrt(1 + 1 / len(use)))
    found = []
    for d in test:
        if np.isfinite(d.power_kw).mean() >= 0.5 and len(d) >= 10 * d.hz:
            km, used = float(d.distance_km[-1]), measured(d, slice(None))
            error, half = used - float(use.mean()) * km, scale * km * float(stdtrit(len(use) - 1, 0.95))
            found.append(Band(log, d.trip_id, error, abs(error) / half, half, scale * km, len(use) - 1, used))
    return found


def planned_bands(log: str, drives: Drives, errors: ErrorModel) -> tuple[list[Band], list[Band]]:
    """(with, without) what plans differ by, of test trips as a router would have planned them."""
    plans = drives.plans("oob")
    pairs = [(d, plans[d.trip_id]) for d in drives.of("oob") if d.trip_id in plans]
    kwh = [[float(errors.mean.of(d).mean.sum()) / d.hz / 3600 for d in pair] for pair in pairs]
    found = fit_planned([a - b for a, b in kwh], [(p.speed_kmh, p.hz) for _, p in pairs])
    plans = drives.plans("test")
    more: list[Band] = []
    plain: list[Band] = []
    for drive in drives.of("test"):
        if drive.trip_id not in plans or np.isfinite(drive.power_kw).mean() < 0.5:
            continue
        plan = errors.mean.of(plans[drive.trip_id])
        band, used = stretch_energy(plan, slice(0, len(plan)), errors), measured(drive, slice(None))
        for kept, extra in ((more, found), (plain, Planned(0.0, 0.0, 0.0, 10))):
            assert extra is not None
            shift, variance = extra.over(plan.distance_km[-1], extra.counted_km(plan.speed_kmh, plan.hz))
            scale, mean = float(np.hypot(band.scale_kwh, np.sqrt(variance))), band.mean_kwh + float(shift)
            kept.append(band_of(log, replace(band, scale_kwh=scale, mean_kwh=mean), used))
    return more, plain


Found = dict[tuple[str, str, str], list[Band]]  # (split, what, contender)


def add(found: Found, split: str, what: str, contender: str, items: list[Band]) -> None:
    found.setdefault((split, what, contender), []).extend(items)


def run(log: str, variant: str, split: str | int, found: Found, unknown: bool) -> None:
    """All bands of one held-out fold; with the cabin `unknown` ahead, too."""
    name = "last third" if split == "time" else "folds"
    drives = Drives(log, split, variant)
    errors = fit_errors(drives.of("oob"))
    test = drives.of("test")
    on_ways = fit_errors(linear(drives.of("oob")), TripMean())
    path = replace(on_ways, ways=Ways())  # no weighing in, no correction between trips
    ten = Drives(log, split, variant, members=10)
    for what, cut in (("trip", whole), ("10 km", stretches)):
        add(found, name, what, "evband", bands(log, test, errors, cut))
        add(found, name, what, "evband 10", bands(log, ten.of("test"), fit_errors(ten.of("oob")), cut))
        add(found, name, what, "evband, no known ways", bands(log, test, replace(errors, ways=Ways()), cut))
        add(found, name, what, "least squares", bands(log, linear(test), path, cut))
        add(found, name, what, "least squares, known ways", bands(log, linear(test), on_ways, cut))
    add(found, name, "trip", "average", average(log, drives.of("oob"), test))
    add(found, name, "rest", "evband", bands(log, test, errors, rest, so_far=True))
    add(found, name, "rest", "without the drive so far", bands(log, test, errors, rest))
    cabin = cabin_of(drives)
    for contender, so_far in (("evband", True), ("without the drive so far", False)) if unknown else ():
        if cabin is None:
            items = bands(log, test, errors, rest, so_far)
        else:
            items = unknown_bands(log, test, errors, cabin, so_far)
        add(found, name, "rest, cabin unknown", contender, items)


def plans(log: str, split: str | int, found: Found) -> None:
    """Bands of one held-out fold's trips as a router would have planned them."""
    name = "last third" if split == "time" else "folds"
    drives = Drives(log, split, "base")
    errors = replace(fit_errors(drives.of("oob")), ways=Ways())  # plans do not use them
    more, plain = planned_bands(log, drives, errors)
    add(found, name, "planned", "evband", more)
    add(found, name, "planned", "as if driven as planned", plain)
    add(found, name, "planned", "average", average(log, drives.of("oob"), drives.of("test")))


def needed_at_90(items: list[Band], weight: Array) -> float:
    needed = np.array([b.needed for b in items])
    order = np.argsort(needed)
    at = int(np.searchsorted(np.cumsum(weight[order]) / weight.sum(), 0.9 - 1e-9))
    return float(needed[order][min(at, len(order) - 1)])


def summary(items: list[Band]) -> dict[str, float]:
    keys = [(b.log, b.trip) for b in items]
    weight = np.array([1.0 / keys.count(k) for k in keys])
    inside = np.array([b.needed <= 1.0 for b in items])
    used = np.array([b.used for b in items])
    share = float(np.sum(weight * [2 * b.half for b in items]) / np.sum(weight * used))
    return {
        "trips": len(set(keys)),
        "cover90": float(np.average(inside, weights=weight)),
        "width90": share,
        "width_at_90": share * needed_at_90(items, weight),
        "median_error": float(np.median(np.abs([b.error for b in items]) / np.maximum(np.abs(used), 0.1))),
    }


def table(found: Found, features: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for (split, what, contender), items in found.items():
        for log in (POOLED, *dict.fromkeys(b.log for b in items)):
            chosen = [b for b in items if log in (POOLED, b.log)]
            ours = [b for b in found[split, what, "evband"] if log in (POOLED, b.log)]
            numbers = summary(chosen)
            ratio = summary(ours)["width_at_90"] / numbers["width_at_90"]
            head: dict[str, object] = {"features": features, "split": split, "what": what, "log": log, "contender": contender}  # fmt: skip
            rows.append(head | numbers | {"ratio": ratio})
    return [{k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]


def arrivals(found: Found) -> list[dict[str, object]]:
    """Will it arrive? Batteries of 0.7 to 1.4 times the evband median; chance against what came true, and Brier scores."""
    rows: list[dict[str, object]] = []
    contenders = {name: found["folds", "planned", name] for name in ("evband", "average")}
    rng = np.random.default_rng(0)
    middle = {(b.log, b.trip): b.used - b.error for b in contenders["evband"]}
    factor = {key: rng.uniform(0.7, 1.4, 5) for key in middle}
    fixed = [b._replace(scale=0.2 * abs(b.used - b.error) / 1.645, dof=1e9) for b in contenders["evband"]]
    for name, items in {**contenders, "fixed 20 %": fixed}.items():
        chance, arrived = [], []
        for b in items:
            for f in factor.get((b.log, b.trip), ()):
                battery, mean = f * middle[b.log, b.trip], b.used - b.error
                scale = below(b.scale, mean, b.dof) if name == "evband" and battery < mean else b.scale
                chance.append(float(stdtr(b.dof, (battery - mean) / scale)))
                arrived.append(float(b.used <= battery))
        p, y = np.array(chance), np.array(arrived)
        bins = np.clip((p * 5).astype(int), 0, 4)
        brier = float(np.mean((p - y) ** 2))
        for k in range(5):
            in_bin = bins == k
            if in_bin.any():
                rows.append({"contender": name, "brier": f"{brier:.4f}", "chance": f"{p[in_bin].mean():.3f}", "arrived": f"{y[in_bin].mean():.3f}", "n": int(in_bin.sum())})  # fmt: skip
    return rows


def row_coverage() -> list[dict[str, object]]:
    """Rows held by calibrated 90 % bands on the last third of each log, all features."""
    rows: list[dict[str, object]] = []
    total = np.zeros(3)
    for log, variant in SETS["auto"]:
        found = Drives(log, "time", variant).info["rows"]
        sums = np.array([len(found), sum(r["n"] for r in found), sum(r["covered"] for r in found)], float)
        total += sums
        rows.append({"log": log, "trips": int(sums[0]), "rows": int(sums[1]), "cover90": f"{sums[2] / sums[1]:.4f}"})
    return [*rows, {"log": POOLED, "trips": int(total[0]), "rows": int(total[1]), "cover90": f"{total[2] / total[1]:.4f}"}]  # fmt: skip


SETS = {  # features -> (log, variant)
    "auto": [(log, "hvac" if LOGS[log].cabin else "base") for log in LOGS if log != "i3_motion"],
    "without cabin": [("i3_torque", "base"), ("i3_motion", "base"), ("ved_10", "base"), ("ved_455", "base")],
    "cabin, no torque": [("i3_motion", "hvac")],
    "plans": [(log, "base") for log in LOGS if LOGS[log].plannable and log != "cc_belmont"],
}
BASE = [(log, "base") for log in LOGS if log != "i3_motion"]  # no cabin, no log twice


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rows: list[dict[str, object]] = []
    for features, members in SETS.items():
        found: Found = {}
        for log, variant in members:
            for split in splits_of(log):
                if features == "plans":
                    plans(log, split, found)
                else:
                    run(log, variant, split, found, features != "without cabin")
            print(features, log, flush=True)
        rows += table(found, features)
        if features == "plans":
            arrived = arrivals(found)
    write(RESULTS / "trips.csv", rows, NOTE)
    write(
        RESULTS / "trips_arrivals.csv",
        arrived,
        "planned routes of `folds`: chance to arrive and how many did, in five bins of chance",
    )
    write(
        RESULTS / "trips_rows.csv",
        row_coverage(),
        "single rows, not trips: trained on the first two thirds in time order",
    )
    show("trips", [r for r in rows if r["log"] == POOLED])
    show("arrivals", arrived)


if __name__ == "__main__":
    main()
