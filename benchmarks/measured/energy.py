"""Energy and range bands on the real logs: every trip held out once, against the ways others do it.

    python -m benchmarks.measured.energy --data ../shared/data [--tasks i3_torque ...] [--contenders evband ...] [--quick]

Models are read from .bench/models/{task}_{fold}.evband; a missing one is fitted here with few members and epochs (a smoke run,
named so in the header). Contenders: `evband`; `independent`, the same model with its rows' variances summed; `average`, kWh/km
of the training trips (or of their stretches of that length) with its spread; `least-squares` on the plain road-load features, cross-fitted,
with our error model; `least-squares-ours`, the same given all features of our model (hinges, edges, fading start); `fastsim`, fitted to the car, with our error model. `range` and `range_so_far`: a held-out trip is cut at a random point; does the
distance it then drove on the energy it then used lie in the range band, without and with the power measured before the cut.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from scipy.special import stdtrit

import evband
from benchmarks.common.results_file import MODELS, command
from benchmarks.common.tasks import TASKS, Task, split
from evband.energy import (
    Ahead,
    Drive,
    ErrorModel,
    SoFar,
    drives_of,
    energy_part,
    fit_errors,
    predicted_drives,
    stretch_energy,
)
from evband.energy.ahead import long_enough
from evband.preparing import prepare
from evband.rivals import LeastSquares
from evband.rivals.base import make_rows
from evband.rivals.rows import inner_folds
from evband.rivals.student import solve_ridge
from evband.trips import Trips
from evband.trips.grid import MAX_GAP_S
from evband.trips.power import PowerCurve

LENGTHS_KM = (5.0, 10.0, 20.0)
DRAWS = 5  # stretches of a length, and cuts, of each trip
CONTENDERS = ("evband", "independent", "average", "least-squares", "least-squares-ours", "fastsim")
POOLED = {"i3_torque + tesla_road": ("i3_torque", "tesla_road")}


@dataclass(frozen=True)
class Item:
    """One band and what came true; range items are in km, the others in kWh."""

    task: str
    contender: str
    what: str
    trip_id: str
    truth: float
    low: tuple[float, ...]  # of the 50, 80 and 90 % band
    high: tuple[float, ...]
    used: float  # the stretch's measured energy or distance, to relate widths to


def stretches(drive: Drive, seed: int) -> list[tuple[str, slice]]:
    """The whole trip and random stretches, the same for every contender."""
    rng = np.random.default_rng(seed)
    distance = drive.distance_km
    found = [("trip", slice(0, len(drive)))]
    for length in LENGTHS_KM:
        starts: list[float] = rng.uniform(0, distance[-1] - length, DRAWS).tolist() if distance[-1] >= length else []
        found += [(f"{length:g} km", drive.between_km(s, s + length)) for s in starts]
    return found


def t_item(head: dict, what: str, drive: Drive, which: slice, mean: float, scale: float, dof: float) -> Item:
    part = drive.rows(which)
    truth = float(np.where(np.isfinite(part.power_kw), part.power_kw, part.mean).sum() / part.hz / 3600)
    half = [scale * float(stdtrit(dof, 0.5 + level / 2)) for level in (0.5, 0.8, 0.9)]
    return Item(**head, what=what, trip_id=drive.trip_id, truth=truth, low=tuple(mean - h for h in half), high=tuple(mean + h for h in half), used=truth)  # fmt: skip


def with_errors(head: dict, drives: list[Drive], errors: ErrorModel) -> list[Item]:
    items = []
    for number, drive in enumerate(drives):
        for what, which in stretches(drive, number):
            band = stretch_energy(drive, which, errors)
            items.append(t_item(head, what, drive, which, band.mean_kwh, band.scale_kwh, band.dof))
        items += cuts(head, drive, errors, number)
    return items


def cuts(head: dict, drive: Drive, errors: ErrorModel, seed: int) -> list[Item]:
    """Range from a random point on: the battery holds what the rest of the trip used, and the way goes on as driven."""
    rng = np.random.default_rng(1000 + seed)
    items = []
    for share in rng.uniform(0.2, 0.8, DRAWS):
        at = int(np.searchsorted(drive.distance_km, share * drive.distance_km[-1]))
        rest = drive.rows(slice(at, len(drive)))
        drawn = np.cumsum(np.where(np.isfinite(rest.power_kw), rest.power_kw, rest.mean)) / rest.hz / 3600
        used = float(drawn[-1])
        if rest.distance_km[-1] < 2.0 or used <= 0:
            continue
        for what, past_rows in (("range", 0), ("range_so_far", at)):
            past = SoFar(errors)
            past.drive(drive.rows(slice(0, past_rows)))
            way = long_enough(Ahead.of(rest, errors), Ahead.of(drive, errors), used, past)
            ends = way.reach(used, past, (0.25, 0.1, 0.05, 0.75, 0.9, 0.95))
            km = float(rest.distance_km[np.argmax(drawn >= used)])  # where such a battery is first empty
            items.append(Item(**head, what=what, trip_id=drive.trip_id, truth=km, low=tuple(ends[:3]), high=tuple(ends[3:]), used=km))  # fmt: skip
    return items


def independent(head: dict, bands: evband.Bands) -> list[Item]:
    """Gaussian, rows' total variances added as if they knew nothing of each other."""
    items, row = [], 0
    for number, drive in enumerate(drives_of(bands)):
        variance = bands.total[row : row + len(drive)] ** 2
        row += len(drive)
        for what, which in stretches(drive, number):
            hours = 1 / drive.hz / 3600
            mean, scale = float(drive.mean[which].sum()) * hours, float(np.sqrt(variance[which].sum())) * hours
            items.append(t_item(head, what, drive, which, mean, scale, np.inf))
    return items


def average(head: dict, train: list[Drive], test: list[Drive]) -> list[Item]:
    """kWh/km of training trips, for a stretch of those of training stretches as long; t prediction interval."""
    uses: dict[str, list[float]] = {}
    for number, drive in enumerate(train):
        for what, which in dict(stretches(drive, 500 + number)).items():  # one stretch of each length a trip
            part = drive.rows(which)
            uses.setdefault(what, []).append(float(np.nanmean(part.power_kw) * len(part) / part.speed_kmh.sum()))
    items = []
    for number, drive in enumerate(test):
        for what, which in stretches(drive, number):
            use = np.array(uses[what])
            km = float(drive.speed_kmh[which].sum() / drive.hz / 3600)
            scale = use.std(ddof=1) * np.sqrt(1 + 1 / len(use)) * km
            items.append(t_item(head, what, drive, which, float(use.mean()) * km, float(scale), len(use) - 1))
    return items


def least_squares(task: Task, train: Trips, test: Trips, ours: bool) -> tuple[list[Drive], ErrorModel]:
    """Location cross-fitted over inner folds of whole trips; the noise is the full fit's."""
    rival = LeastSquares(hinges=ours, features=task.features, hz=task.hz, ours=ours).fit(train)
    bands = rival.predict(train)
    rows = make_rows(rival.feature_map_, rival.feature_map_.transform_all(train))
    known, mean = np.isfinite(rows.y), np.array(bands.mean)
    for out in inner_folds(rows.group, 5):
        w = solve_ridge(rows.r[~out & known], rows.y[~out & known], rival.ridge_)
        mean[out] = rows.r[out] @ w[:-1] + w[-1]
    drives, row = [], 0
    for drive in drives_of(bands):
        own = mean[row : row + len(drive)]
        row += len(drive)
        drives.append(Drive(drive.trip_id, drive.hz, own, own[None], drive.noise, drive.outside, drive.speed_kmh, drive.power_kw))  # fmt: skip
    return drives_of(rival.predict(test)), fit_errors(drives)


def fastsim(task: Task, train: Trips, test: Trips) -> tuple[list[Drive], ErrorModel]:
    """A handful of numbers fitted to thousands of rows: its training residuals stand for new ones."""
    from evband.rivals.fastsim_vehicle import FastSim

    rival = FastSim(features=task.features, hz=task.hz).fit(train)
    return drives_of(rival.predict(test)), fit_errors(drives_of(rival.predict(train)))


def model_of(task: Task, fold: int, train: Trips) -> tuple[evband.PowerModel, bool]:
    """The kept model, or a small one fitted here; whether it was kept."""
    path = MODELS / f"{task.name}_{fold}.evband"
    if path.exists():
        model = evband.load(path)
        assert not {t.fingerprint for t in train}.isdisjoint(model.fingerprints_), f"{path} is of other trips"
        made = prepare(train, model.settings_)
        bands = model.out_of_bag(made)
        model.energy_ = energy_part(model, train, made.rows, bands, made.job)  # by this version's rules
        return model, True
    return evband.PowerModel(features=task.features, hz=task.hz, members=5, epochs=12).fit(train), False


def run(task: Task, fold: int, data: Path, contenders: list[str]) -> tuple[list[Item], bool]:
    train, test = split(task, data, fold)
    items: list[Item] = []
    kept = True
    for contender in contenders:
        head = {"task": task.name, "contender": contender}
        if contender in ("evband", "independent"):
            model, kept = model_of(task, fold, train)
            assert not {t.fingerprint for t in test} & set(model.fingerprints_), "a test trip was trained on"
            bands = model.predict(test)
            items += independent(head, bands) if contender == "independent" else with_errors(head, predicted_drives(model, test), model.errors_)  # fmt: skip
        elif contender == "average":
            items += average(head, [plain(t) for t in train], [plain(t) for t in test])
        elif contender == "fastsim":
            items += with_errors(head, *fastsim(task, train, test))
        else:
            items += with_errors(head, *least_squares(task, train, test, ours=contender == "least-squares-ours"))
    return items, kept


def plain(trip: evband.Trip) -> Drive:
    """Speed and measured power of a trip, nothing predicted."""
    zeros = np.zeros(len(trip))
    speed, power = (trip.table[c].fill_null(float("nan")).to_numpy() for c in ("speed_kmh", "power_kw"))
    assert trip.hz is not None
    known = np.nan_to_num(power, nan=float(np.nanmean(power)))
    return Drive(trip.trip_id, trip.hz, known, zeros[None], zeros + 1, zeros > 0, np.maximum(np.nan_to_num(speed), 0), power)  # fmt: skip


def own_error(task: Task, data: Path) -> float:
    """Root mean square relative change of a trip's measured energy when every second power reading is left out.

    The error of trapezoids between readings h apart grows about as h, so the energy from all readings errs by about as much as this
    change, or a little less.
    """
    changes = []
    for trip in evband.read_trips(str(data / task.files)):
        when, power = trip.series("power_kw")
        whole = PowerCurve.of((when, power), MAX_GAP_S).energy_kwh()
        changes += [PowerCurve.of((when[k::2], power[k::2]), MAX_GAP_S).energy_kwh() / whole - 1 for k in (0, 1)]
    return float(np.sqrt(np.mean(np.square(changes))))


@dataclass(frozen=True)
class Outcome:
    """The bands of one contender and kind of stretch as arrays; trips weigh alike."""

    trip: np.ndarray  # [n] names
    weight: np.ndarray  # [n]
    inside: np.ndarray  # [n, 3]
    width: np.ndarray  # [n] of the 90 % band
    used: np.ndarray  # [n]
    needed: np.ndarray  # [n] how much wider the 90 % band would have to be to hold the truth

    @classmethod
    def of(cls, items: list[Item]) -> Self:
        trips = [i.trip_id for i in items]
        truth, low, high, used = (np.array([getattr(i, n) for i in items]) for n in ("truth", "low", "high", "used"))
        middle = (low[:, 0] + high[:, 0]) / 2
        needed = np.abs(truth - middle) / np.where(truth >= middle, high[:, 2] - middle, middle - low[:, 2])
        inside = (low <= truth[:, None]) & (truth[:, None] <= high)
        weight = np.array([1.0 / trips.count(t) for t in trips])
        return cls(np.array(trips), weight, inside, high[:, 2] - low[:, 2], used, needed)

    def share(self, weight: np.ndarray) -> float:
        return float(np.sum(weight * self.width) / np.sum(weight * self.used))

    def share_at_90(self, weight: np.ndarray) -> float:
        """The mean width as a share of what was used, once all bands are stretched alike so that 90 % hold."""
        order = np.argsort(self.needed)
        at = int(np.searchsorted(np.cumsum(weight[order]) / weight.sum(), 0.9))
        return self.share(weight) * float(self.needed[order][min(at, len(order) - 1)])

    def summary(self) -> dict[str, float]:
        cover = np.average(self.inside, axis=0, weights=self.weight)
        return {
            "trips": len(set(self.trip)), "n": len(self.trip), "cover50": cover[0], "cover80": cover[1], "cover90": cover[2],
            "width90_share": self.share(self.weight), "width_at_90_covered": self.share_at_90(self.weight),
        }  # fmt: skip


def evband_is(ours: Outcome, theirs: Outcome, draws: int = 1000) -> dict[str, float]:
    """Our width at 90 % coverage over theirs, and its 95 % interval: the same trips drawn again for both."""
    names = np.unique(ours.trip)
    rng, ratios = np.random.default_rng(0), []
    for _ in range(draws):
        times = np.bincount(rng.integers(0, len(names), len(names)), minlength=len(names))
        one, two = (o.share_at_90(o.weight * times[np.searchsorted(names, o.trip)]) for o in (ours, theirs))
        ratios.append(one / two)
    low, high = np.quantile(ratios, [0.025, 0.975])
    ratio = ours.share_at_90(ours.weight) / theirs.share_at_90(theirs.weight)
    return {"evband_is": ratio, "evband_is_low": float(low), "evband_is_high": float(high)}


def table(items: list[Item]) -> pl.DataFrame:
    groups: dict[str, tuple[str, ...]] = {name: (name,) for name in dict.fromkeys(i.task for i in items)}
    groups |= {name: tasks for name, tasks in POOLED.items() if set(tasks) <= set(groups)}
    rows: list[dict[str, Any]] = []
    for name, tasks in groups.items():
        for what in dict.fromkeys(i.what for i in items):
            ours = None
            for contender in dict.fromkeys(i.contender for i in items):
                chosen = [i for i in items if i.task in tasks and i.contender == contender and i.what == what]
                if chosen:
                    outcome = Outcome.of(chosen)
                    ours = outcome if contender == "evband" else ours
                    beside = evband_is(ours, outcome) if ours is not None else {}
                    rows.append({"task": name, "contender": contender, "what": what, **outcome.summary(), **beside})
    return pl.DataFrame(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/energy.csv"))
    parser.add_argument("--items", type=Path, default=Path(".bench/energy_items.parquet"), help="every single band")
    parser.add_argument("--tasks", nargs="+", default=[t for t in TASKS if t != "tesla_dyno"], choices=list(TASKS))
    parser.add_argument("--contenders", nargs="+", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--quick", action="store_true", help="fold 0 only")
    given = parser.parse_args()
    items: list[Item] = []
    all_kept = True
    for name in given.tasks:
        for fold in range(1 if given.quick else 5):
            began = time.perf_counter()
            found, kept = run(TASKS[name], fold, given.data, given.contenders)
            items, all_kept = items + found, all_kept and kept
            print(f"{name} fold {fold}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    given.items.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame([asdict(i) for i in items]).write_parquet(given.items)
    result = table(items)
    models = "models of all folds, tuned inside" if all_kept else "SMOKE RUN: small models fitted on the spot"
    with given.out.open("w") as file:
        file.write(f"# {command()}\n")
        file.write(f"# evband {evband.__version__}, Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores; {models}\n")  # fmt: skip
        if "e208" in given.tasks:
            error = own_error(TASKS["e208"], given.data)
            file.write(f"# e208: without every second power reading a trip's measured energy changes by {error:.1%} (rms): so much of its bands is the measurement's own\n")  # fmt: skip
        file.write("# width90_share: mean width of 90 % bands / mean measured energy (range: distance); width_at_90_covered: the same, scaled so that 90 % are covered\n")  # fmt: skip
        file.write(
            "# evband_is: evband's width_at_90_covered over the row's, and its 95 % interval over trips drawn again\n"
        )
        file.write(result.write_csv(float_precision=4))
    with pl.Config(tbl_rows=-1, tbl_cols=-1, float_precision=3, tbl_width_chars=200):
        print(result)


if __name__ == "__main__":
    main()
