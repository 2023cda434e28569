"""How much of the dirt in logs is found, and how many good readings go with it.

    python -m benchmarks.checks.dirty --data DIR [--fit 10 --seeds 2]

Faults are put at known places into copies of the i3's drives (10 Hz, and thinned to one reading every 1.2 s, as a phone app logs) and of
the e-208's exports as they are:

* spikes: in 1 of 400 readings of current (1 of 25 in some drives, as an app was seen to do) a value drawn evenly from -600..600 A that is
  100 A or more off both its neighbours;
* zeros: single zeros of speed while it is over 30 km/h, and stretches of zero altitude of 1 to 60 s where the road lies 100 m up or more;
* unit slips of whole drives: power in W, power a thousand times too small, speed in m/s, the sign turned.

A put-in reading is found if cleaning drops it; a good one is lost if cleaning drops it though nothing was put there (against what it drops of
the clean copy). A slip is found if the finding names the channel. Writes `benchmarks/results/dirty.csv`; the exit status is 1 if under 95 %
is found or 0.1 % or more of the good readings is lost. `--fit N` trains N members on clean and dirty copies of half of the i3's trips and scores
them on the other half, clean, instead; it writes `benchmarks/results/dirty_fits.csv`, and its status is 1 if CRPS differs by 2 % or more.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import evband
from benchmarks.common.results_file import RESULTS, show, write
from evband.logs.cleaning import clean
from evband.logs.reading import read_file, to_trip
from evband.trips import Trips
from evband.trips.quality import Cleaning
from evband.trips.readings import Readings, ReadOptions, Series

AllSeries = dict[str, Series]
KEEP = Cleaning(parked=False, charging=False, fills=False)  # only what is looked at here
WANTED_FOUND, WANTED_LOST, WANTED_CRPS_PCT = 0.95, 0.001, 2.0


def i3(data: Path) -> list[Readings]:
    return read_file(data / "bmw_i3_road" / "bmw_i3_road_10hz.parquet", ReadOptions())


def drives(data: Path) -> Iterator[tuple[str, AllSeries]]:
    for readings in i3(data):
        yield "i3 10 Hz", dict(readings.series)
        yield "i3 1.2 s", {name: (time[::12], value[::12]) for name, (time, value) in readings.series.items()}
    for path in sorted((data / "peugeot_e208_carscanner" / "raw").glob("*")):
        yield "e-208", dict(read_file(path, ReadOptions())[0].series)


def spikes(series: AllSeries, rng: np.random.Generator, one_in: int) -> tuple[AllSeries, dict[str, np.ndarray]]:
    amps = series["battery_current_a"][1]
    at = np.sort(rng.choice(np.arange(2, len(amps) - 2), max(len(amps) // one_in, 1), replace=False))
    at = at[np.append(np.diff(at) > 2, True)]
    drawn = rng.uniform(-600.0, 600.0, len(at))
    far = np.minimum(np.abs(drawn - amps[at - 1]), np.abs(drawn - amps[at + 1])) >= 100.0
    sided = (drawn - amps[at - 1]) * (drawn - amps[at + 1]) > 0
    at, drawn = at[far & sided], drawn[far & sided]
    return _put(series, "battery_current_a", at, drawn), {"battery_current_a": at}


def zeros(series: AllSeries, rng: np.random.Generator) -> tuple[AllSeries, dict[str, np.ndarray]]:
    time, speed = series["speed_kmh"]
    fast = np.flatnonzero(speed > 30.0)
    at = np.sort(rng.choice(fast, max(len(fast) // 400, 1), replace=False)) if len(fast) else np.empty(0, int)
    at = at[np.append(np.diff(at) > 3, True)] if len(at) else at
    series, places = _put(series, "speed_kmh", at, np.zeros(len(at))), {"speed_kmh": at}
    if "elevation_m" not in series:
        return series, places
    time, height = series["elevation_m"]
    low = []
    for start in rng.uniform(time[0], time[-1], 5):
        inside = np.flatnonzero((time >= start) & (time <= start + rng.uniform(1.0, 60.0)) & (height > 100.0))
        low.append(inside)
    at = np.unique(np.concatenate(low)).astype(int)
    return _put(series, "elevation_m", at, np.zeros(len(at))), {**places, "elevation_m": at}


def _put(series: AllSeries, name: str, at: np.ndarray, value: np.ndarray) -> AllSeries:
    time, values = series[name]
    values = values.copy()
    values[at] = value
    return {**series, name: (time, values)}


def slips(series: AllSeries) -> Iterator[tuple[str, str, AllSeries]]:
    """(name, the channel in doubt, the slipped drive)."""
    time, kw = clean(series, KEEP)[0]["power_kw"]
    rest = {name: s for name, s in series.items() if not name.startswith("battery") and name != "power_kw"}
    at, speed = series["speed_kmh"]
    yield "power in W", "power_kw", {**rest, "power_kw": (time, 1000.0 * kw)}
    yield "power / 1000", "power_kw", {**rest, "power_kw": (time, kw / 1000.0)}
    yield "sign turned", "power_kw", {**rest, "power_kw": (time, -kw)}
    yield "speed in m/s", "speed_kmh", {**series, "speed_kmh": (at, speed / 3.6)}


def dropped(series: AllSeries, names: list[str]) -> dict[str, set[float]]:
    kept = clean(series, KEEP)[0]
    return {n: set(series[n][0].tolist()) - set(kept[n][0].tolist() if n in kept else ()) for n in names}


class Counts:
    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], list[int]] = {}

    def add(self, log: str, fault: str, put: int, found: int, good: int = 0, lost: int = 0) -> None:
        row = self.rows.setdefault((log, fault), [0, 0, 0, 0])
        for i, value in enumerate((put, found, good, lost)):
            row[i] += value

    def table(self) -> list[dict[str, object]]:
        return [
            {"log": log, "fault": fault, "put_in": put, "found": found, "found_share": round(found / max(put, 1), 4),
             "good": good, "lost": lost, "lost_share": round(lost / max(good, 1), 6)}
            for (log, fault), (put, found, good, lost) in self.rows.items()
        ]  # fmt: skip


def measure(data: Path, seed: int) -> Counts:
    counts, rng = Counts(), np.random.default_rng(seed)
    for number, (log, series) in enumerate(drives(data)):
        if "battery_current_a" in series:
            series.pop("power_kw", None)  # power comes of current and voltage, as in an app's log
        before = dropped(series, list(series))
        for name, lost in before.items():
            counts.add(log, "clean, as logged", 0, 0, len(series[name][0]), len(lost))
        for fault, (dirty, places) in (
            ("spikes", spikes(series, rng, 25 if number % 5 == 0 else 400)),
            ("zeros", zeros(series, rng)),
        ):
            after = dropped(dirty, list(dirty))
            for name in dirty:
                put = set(dirty[name][0][places[name]].tolist()) if name in places else set()
                good = len(dirty[name][0]) - len(put)
                counts.add(log, fault, len(put), len(put & after[name]), good, len(after[name] - put - before[name]))
        if len(series["speed_kmh"][0]) >= 300:
            for fault, channel, slipped in slips(series):
                found = [f for f in clean(slipped, KEEP)[1] if f.kind in ("unit", "sign")]
                counts.add(log, fault, 1, int(any(f.channel == channel for f in found)))
    return counts


def fits(data: Path, members: int, seeds: int) -> Iterator[dict[str, object]]:
    """CRPS on clean trips after training on clean, on dirty and, once, on dirty trips that nobody cleaned."""
    everything = i3(data)
    half, rest = everything[::2], everything[1::2]
    off = Cleaning(spikes=False, jumps=False)
    test = Trips(to_trip(readings, "i3", Cleaning()) for readings in rest)
    for seed in range(seeds):
        rng, dirt, clean_crps = np.random.default_rng(seed), [], 0.0
        for number, readings in enumerate(half):
            series = {name: s for name, s in readings.series.items() if name != "power_kw"}
            series = zeros(spikes(series, rng, 25 if number % 5 == 0 else 400)[0], rng)[0]
            dirt.append(Readings(readings.trip_id, series, readings.format))
        for name, trips, cleaning in (("clean", half, Cleaning()), ("dirty", dirt, Cleaning()), ("dirty, kept", dirt, off)):  # fmt: skip
            if seed and cleaning is off:
                continue
            train = Trips(to_trip(readings, "i3", cleaning) for readings in trips)
            model = evband.PowerModel(members=members, seed=seed, calibrate=False).fit(train)
            crps = float(evband.evaluate(model.predict(test))["crps_kw"])
            clean_crps = clean_crps or crps
            yield {"trained_on": name, "members": members, "seed": seed, "crps_kw": round(crps, 4), "over_clean_pct": round(100.0 * (crps / clean_crps - 1.0), 2)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--fit", type=int, default=0, metavar="MEMBERS")
    parser.add_argument("--seeds", type=int, default=2, help="of the fits")
    parser.add_argument("--seed", type=int, default=0, help="of the faults put in")
    options = parser.parse_args()
    if options.fit:
        compare_fits(options.data, options.fit, options.seeds)
    rows = measure(options.data, options.seed).table()
    put, found = (sum(int(str(row[key])) for row in rows) for key in ("put_in", "found"))
    good, lost = (sum(int(str(row[key])) for row in rows) for key in ("good", "lost"))
    rows.append({"log": "all", "fault": "all", "put_in": put, "found": found, "found_share": round(found / put, 4),
                 "good": good, "lost": lost, "lost_share": round(lost / good, 6)})  # fmt: skip
    show("Faults put in and found", rows)
    write(RESULTS / "dirty.csv", rows)
    sys.exit(0 if found >= WANTED_FOUND * put and lost < WANTED_LOST * good else 1)


def compare_fits(data: Path, members: int, seeds: int) -> None:
    rows: list[dict[str, object]] = []
    for row in fits(data, members, seeds):
        rows.append(row)
        write(RESULTS / "dirty_fits.csv", rows, "CRPS on the other half of the i3's trips, which are clean")
    show("Fits on clean and dirty logs", rows)
    worst = max(abs(float(str(row["over_clean_pct"]))) for row in rows if row["trained_on"] == "dirty")
    sys.exit(0 if worst < WANTED_CRPS_PCT else 1)


if __name__ == "__main__":
    main()
