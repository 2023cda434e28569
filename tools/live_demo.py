"""Make what `evband serve --demo` shows: a small model, drives and routes, all of a simulated car (`python -m tools.live_demo`).

The drives are `evband.simulation`'s highway log at 1 Hz; the charge of a shown one is its measured energy out of the battery.
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
SLOW_S = 30  # seconds between two readings of the slow feed
ROUTE_KM, ERRAND_KM = 250.0, 98.0
FEATURES = "speed_kmh,acceleration_ms2,elevation_m,ambient_temp_c"


def shown(trip: Trip, start_soc: float = START_SOC, capacity_kwh: float = CAPACITY_KWH) -> pl.DataFrame:
    """The drive as a feed would send it: a reading per second, power measured, charge in whole percent."""
    table = trip.on_grid(1.0).table
    table = table.filter(pl.col("time_s") - table["time_s"][0] <= 60.0 * MINUTES)
    used = table["power_kw"].fill_null(0.0).cum_sum() / 3600.0
    names = ["time_s", *(c for c in FEATURES.split(",") if c != "acceleration_ms2"), "power_kw"]
    soc = np.floor(start_soc - 100.0 * used.to_numpy() / capacity_kwh)
    begin = float(table["time_s"][0])
    return (
        table.select(names)
        .with_columns(pl.col("time_s") - begin, soc_pct=pl.Series(soc))
        .with_columns(pl.selectors.float().round(2))
    )


def route(length_km: float, begin_m: float, rise_m: float) -> pl.DataFrame:
    """A way out of town, over country roads and a motorway, with hills of a few kilometres on a slow rise."""
    km = np.arange(0.0, length_km + 0.5, 1.0)
    share = km / length_km
    speed = np.select([share < 0.06, share < 0.3, share < 0.82, share < 0.95], [50.0, 85.0, 108.0, 80.0], 45.0)
    hills = 35.0 * np.sin(km / 3.1) + 60.0 * np.sin(km / 11.0) + rise_m * share
    table = {"distance_km": km, "speed_kmh": speed, "elevation_m": np.round(begin_m + hills - hills[0], 1)}
    return pl.DataFrame(table)


def others(trips: list[Trip]) -> None:
    """The cars beside the first: one that measures no power and gets short of charge, one whose feed is slow, one that is known by
    its data sheet and learns; and the routes."""
    shown(trips[11], 36.0).drop("power_kw").write_csv(OUT / "errand.csv")
    shown(trips[12], 57.0, 75.0).drop("power_kw").gather_every(SLOW_S).write_csv(OUT / "van.csv")
    shown(trips[13], 64.0, 52.0).write_csv(OUT / "zoe.csv")
    route(ROUTE_KM, 196.0, 140.0).write_csv(OUT / "route.csv")
    route(ERRAND_KM, 200.0, 60.0).write_csv(OUT / "errand_route.csv")


def main() -> None:
    """Train on ten drives, show the next four."""
    trips = simulate("highway", hz=1.0, seed=7, trips=14)
    OUT.mkdir(exist_ok=True)
    model = PowerModel(members=6, hidden=12, features=FEATURES, hz=1.0, epochs=30, seed=0, device="cpu")
    model.fit(trips.subset([trip.trip_id for trip in trips][:10]))
    model.save(OUT / "demo.evband")
    shown([*trips][10]).write_csv(OUT / "drive.csv")
    others([*trips])


if __name__ == "__main__":
    main()
