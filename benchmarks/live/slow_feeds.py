"""Coverage of live bands when a feed is slow: real logs thinned to a reading every 2, 5 and 15 s (`python -m benchmarks.live.slow_feeds`).

All channels are read at one instant, as a gateway sends them. Bands of every second are compared with the power measured in that second,
which the service sees only at its readings (`power`) or never. Trips of fold 0 are held out; `fit` is a small model of the others,
trained on the whole log and not for slow feeds, `start` one that knows the car's data sheet only.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.results_file import RESULTS, show, write
from evband import PowerModel, Trips, load, read_trips, start
from evband.live.assemble import Assembler
from evband.live.engine import Group
from evband.live.power_check import PowerCheck
from evband.live.reading import COLUMNS, Sample
from evband.trips import Trip

INPUTS = "speed_kmh,acceleration_ms2,elevation_m,ambient_temp_c"
LOGS = {  # name -> files, inputs, vehicle
    "bmw_i3_road": ("bmw_i3_road/*.parquet", INPUTS, "BMW i3 60 Ah"),
    "tesla_model3_road": ("tesla_model3_road/*.parquet", INPUTS, "Tesla Model 3 Long Range"),
    "ved_leaf_10": ("fleet/ved_leaf_10.parquet", "auto", "Nissan Leaf 24 kWh"),
}
STEPS_S = (1.0, 2.0, 5.0, 15.0)
START = 1_790_000_000.0


def model_of(log: str, trips: Trips, members: int) -> PowerModel:
    """Fitted once, kept in .bench/."""
    path = Path(".bench/models") / f"live_{log}_{members}.evband"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        PowerModel(members=members, hidden=32, epochs=40, features=LOGS[log][1], hz=1.0, device="cpu").fit(trips).save(
            path
        )
    return load(path)


def live_bands(model: PowerModel, trip: Trip, every_s: float, power: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(time, band, warm-up) of each row that the service makes of a thinned trip."""
    assembler = Assembler(["car"], ["car"])
    check = PowerCheck(assembler.power_scale, assembler.trusted, np.zeros(1, bool))
    group = Group(model, np.zeros(1, np.int64), True, check)
    table = trip.table.filter(trip.table["speed_kmh"].is_not_null())
    time = table["time_s"].to_numpy()
    last, rows = -np.inf, []
    begin = float(time[0])
    for i, t in enumerate(time.tolist()):
        if t - last < every_s - 0.01:
            continue
        last = t
        now = START + t - begin
        values = {
            c: table[c][i]
            for c in COLUMNS
            if c in table.columns and c != "acceleration_ms2" and table[c][i] is not None
        }
        if not power:
            values = {
                c: v for c, v in values.items() if c not in ("power_kw", "battery_current_a", "battery_voltage_v")
            }
        rows += [(now, values)]
    found = []
    clock, end = START, rows[-1][0]
    at = 0
    while clock <= end:
        while at < len(rows) and rows[at][0] <= clock:
            assembler.put(Sample("car", rows[at][1], None), arrived=rows[at][0])
            at += 1
        found += list(group.step(assembler.drain(clock), assembler.now(clock)))
        clock += 1.0
    return (
        np.concatenate([a.time for a in found]) - START + begin,
        np.concatenate([a.band for a in found]),
        np.concatenate([a.warmup for a in found]),
    )


def scored(model: PowerModel, trips: list[Trip], every_s: float, power: bool) -> dict[str, float]:
    inside, width, warm, seconds, error = 0, 0.0, 0, 0, 0.0
    for trip in trips:
        grid = trip.on_grid(1.0).table
        truth = grid["power_kw"].cast(float).fill_null(float("nan")).to_numpy()
        time, band, warmup = live_bands(model, trip, every_s, power)
        true = np.interp(time, grid["time_s"].to_numpy(), truth)
        known = np.isfinite(true)
        inside += int(((band[:, 1] <= true) & (true <= band[:, 2]))[known].sum())
        width += float((band[:, 2] - band[:, 1])[known].sum())
        error += float(np.abs(band[:, 0] - true)[known].sum())
        warm += int(warmup[known].sum())
        seconds += int(known.sum())
    return {"coverage": round(inside / seconds, 3), "width_kw": round(width / seconds, 2), "mae_kw": round(error / seconds, 2), "warmup": round(warm / seconds, 3), "seconds": seconds}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--logs", nargs="+", default=list(LOGS))
    parser.add_argument("--models", nargs="+", choices=("fit", "start"), default=["fit", "start"])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--trips", type=int, default=12, help="held-out trips to score")
    options = parser.parse_args()
    rows = []
    for kind in options.models:
        for log in options.logs:
            trips = read_trips([str(p) for p in sorted(options.data.glob(LOGS[log][0]))])
            folds = _folds(options.data / "splits.csv", log) or {t.trip_id: k % 5 for k, t in enumerate(trips)}
            test = [t for t in trips if folds.get(t.trip_id) == 0][: options.trips]
            train = Trips([t for t in trips if folds.get(t.trip_id) != 0])
            model = start(LOGS[log][2]) if kind == "start" else model_of(log, train, options.members)
            for every in STEPS_S:
                for power in (True, False):
                    row = {"log": log, "model": kind, "every_s": every, "power": power}
                    rows.append(row | scored(model, test, every, power))
                    print(rows[-1], flush=True)
            write(
                RESULTS / "live_slow_feeds.csv",
                _earlier(rows) + rows,
                "pairs of log and model may be of runs one after the other",
            )
    show("Slow feeds", rows)


def _earlier(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of the result file for other logs and models."""
    if not (path := RESULTS / "live_slow_feeds.csv").exists():
        return []
    done = {(row["log"], row["model"]) for row in rows}
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    return [row for row in csv.DictReader(lines) if (row["log"], row["model"]) not in done]


def _folds(path: Path, log: str) -> dict[str, int]:
    lines = path.read_text().splitlines()[1:]
    return {cells[1]: int(cells[2]) for cells in (line.split(",") for line in lines) if cells[0] == log}


if __name__ == "__main__":
    main()
