"""Make what `evband serve --demo` shows: a small model and a drive, both of a simulated car (`python -m tools.live_demo`).

The drives are `evband.simulation`'s highway log at 1 Hz; the charge of the shown one is its measured energy out of 60 kWh.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from evband.model import PowerModel
from evband.simulation import simulate
from evband.trips import Trip

OUT = Path(__file__).parent.parent / "src" / "evband" / "live" / "demo"
CAPACITY_KWH, START_SOC = 60.0, 78.0
MINUTES = 20.0
FEATURES = "speed_kmh,acceleration_ms2,elevation_m,ambient_temp_c"


def shown(trip: Trip) -> pl.DataFrame:
    """The drive as a feed would send it: a reading per second, power measured, charge in whole percent."""
    table = trip.on_grid(1.0).table
    table = table.filter(pl.col("time_s") - table["time_s"][0] <= 60.0 * MINUTES)
    used = table["power_kw"].fill_null(0.0).cum_sum() / 3600.0
    names = ["time_s", *(c for c in FEATURES.split(",") if c != "acceleration_ms2"), "power_kw"]
    soc = np.floor(START_SOC - 100.0 * used.to_numpy() / CAPACITY_KWH)
    begin = float(table["time_s"][0])
    return (
        table.select(names)
        .with_columns(pl.col("time_s") - begin, soc_pct=pl.Series(soc))
        .with_columns(pl.selectors.float().round(2))
    )


def main() -> None:
    """Train on ten drives, show an eleventh."""
    trips = simulate("highway", hz=1.0, seed=7, trips=11)
    OUT.mkdir(exist_ok=True)
    model = PowerModel(members=6, hidden=12, features=FEATURES, hz=1.0, epochs=30, seed=0, device="cpu")
    model.fit(trips.subset([trip.trip_id for trip in trips][:10]))
    model.save(OUT / "demo.evband")
    shown([*trips][10]).write_csv(OUT / "drive.csv")


if __name__ == "__main__":
    main()
