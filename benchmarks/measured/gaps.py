"""One model for feeds of a reading every 1 to 15 s: silences bridged, trained on thinned copies.

    PYTHONPATH=src python -m benchmarks.measured.gaps --data DIR [--logs ved_leaf_10 i3 ...] [--members 10] [--seed 0] [--quick]

Every third trip is tested. Inputs of the test trips are thinned to a reading every 1 (as logged), 2, 5 or 15 s; power is
that of the full log at 1 Hz. `cut`: silences over 10 s reset the state, as `bridge_s=0` does; `one`: bridged 30 s and
trained on thinned copies; `alone`: bridged, trained on trips thinned as the test trips are; `boosting`: least squares +
boosting of its residual, on the log as it is. Scores are over all rows that the cut grid has too, warm-up included, so
that models compare on the same rows; `warmup` is the share of a model's own rows. About 40 min per log on two cores.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evband
from evband.bands import Bands
from evband.channels import ELECTRICAL
from evband.model import PowerModel
from evband.rivals import ResidualBoosting
from evband.trips import Trip, Trips

LOGS = {  # name -> file, features
    "ved_leaf_10": ("fleet/ved_leaf_10.parquet", "auto"),
    "ved_leaf_455": ("fleet/ved_leaf_455.parquet", "auto"),
    "i3": ("bmw_i3_road/bmw_i3_road_10hz.parquet", "motion"),
    "road": ("tesla_model3_road/tesla_model3_road_4hz.parquet", "auto"),
}
PERIODS_S = (1, 2, 5, 15)
COLUMNS = ("log", "model", "period_s", "seed", "n", "warmup", "crps_kw", "mae_kw", "coverage", "width_kw")


def read_every(trip: Trip, period_s: float) -> Trip:
    """The trip of which inputs were read only every so many seconds; electrical channels stay."""
    time = trip.series("speed_kmh")[0]
    kept = time[np.append(True, np.diff(np.floor((time - time[0]) / period_s + 1e-6)) > 0)]
    here = pl.Series(np.isin(trip.table["time_s"].to_numpy(), kept))
    inputs = [c for c in trip.table.columns if c != "time_s" and c not in ELECTRICAL]
    blank = [pl.when(here).then(pl.col(c)).otherwise(None).alias(c) for c in inputs]
    return Trip(trip.trip_id, trip.table.with_columns(blank))


def slower(trips: Trips, period_s: float) -> Trips:
    return trips if period_s == 1 else Trips(read_every(trip, period_s) for trip in trips)


def scored(bands: Bands, common: pl.DataFrame) -> dict[str, Any]:
    """Over the rows of `common` (trip_id, time_s) whose power is known."""
    rows = pl.DataFrame({"trip_id": bands.trip_id.astype(str), "time_s": np.round(bands.time_s, 3)})
    shared = rows.join(common.with_columns(here=True), on=["trip_id", "time_s"], how="left", maintain_order="left")
    assert bands.power_kw is not None
    chosen = shared["here"].fill_null(False).to_numpy() & np.isfinite(bands.power_kw)
    part = bands.rows(chosen)
    y = np.asarray(part.power_kw)
    lower, upper = part.interval(0.9)
    return {
        "n": int(chosen.sum()),
        "warmup": f"{bands.warmup[np.isfinite(bands.power_kw)].mean():.4f}",
        "crps_kw": f"{part.members.crps(y).mean():.5f}",
        "mae_kw": f"{np.abs(y - part.mean).mean():.5f}",
        "coverage": f"{np.mean((lower <= y) & (y <= upper)):.4f}",
        "width_kw": f"{np.mean(upper - lower):.4f}",
    }


def measure(name: str, given: argparse.Namespace, write: Any) -> None:
    file, features = LOGS[name]
    raw = evband.read_trips(given.data / file)
    train, test = (raw.subset(i for k, i in enumerate(raw.ids) if (k % 3 == 0) == held) for held in (False, True))
    feeds = {period: slower(test, period) for period in PERIODS_S}
    common = test.on_grid(1.0).to_polars().select("trip_id", pl.col("time_s").round(3))
    chosen: dict[str, Any] = {"members": given.members, "features": features, "seed": given.seed, "device": "cpu"}

    def row(model: str, period: int, bands: Bands) -> None:
        write({"log": name, "model": model, "period_s": period, "seed": given.seed, **scored(bands, common)})

    for label, bridge_s in (("cut", 0.0), ("one", 30.0)):
        model = PowerModel(**chosen, bridge_s=bridge_s).fit(train)
        for period, feed in feeds.items():
            row(label, period, model.predict(feed))
    for period in PERIODS_S[1:]:
        alone = PowerModel(**chosen, bridge_s=30.0, thinning=0.0).fit(slower(train, period).on_grid(1.0, bridge_s=30.0))
        row("alone", period, alone.predict(feeds[period]))
    if not given.quick:
        rival = ResidualBoosting(features=features, hz=1.0, seed=given.seed, ours=True).fit(list(train))
        row("boosting", 1, rival.predict(list(test)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--logs", nargs="+", choices=list(LOGS), default=list(LOGS))
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="leave the boosting out")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/gaps.csv"))
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def write(row: dict[str, Any]) -> None:
        rows.append(row)
        print(row, flush=True)
        with given.out.open("w", newline="") as file:
            command = (
                f"--logs {' '.join(given.logs)} --members {given.members} --seed {given.seed}{' --quick' * given.quick}"
            )
            file.write(f"# PYTHONPATH=src python -m benchmarks.measured.gaps --data DIR {command}; 90 % bands, 1 Hz\n")
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)

    for name in given.logs:
        measure(name, given, write)


if __name__ == "__main__":
    main()
