"""An accelerometer on a slope feels gravity: what a plan, or a feed without it, has in its place must hold the slope, too."""

import numpy as np
import polars as pl
import pytest

from evband.channels import EDGES
from evband.features import FeatureMap
from evband.trips import Trip, Trips

GRAVITY = 9.81


def drive(seed: int, felt: float, minutes: int = 15) -> Trip:
    """Hills of some per cent; acceleration as a sensor measures it that feels this much of gravity."""
    rng = np.random.default_rng(seed)
    time = 0.25 * np.arange(240 * minutes)
    speed = 15.0 + 6.0 * np.sin(time / 9.0 + seed) + 3.0 * np.sin(time / 31.0)
    grade = 0.05 * np.sin(time / 40.0)
    change = np.gradient(speed, time)
    power = 0.5 + (0.2 * speed + 1.5 * change * speed + 1.5 * GRAVITY * grade * speed) / 1.0
    table = {
        "time_s": time, "speed_kmh": 3.6 * speed, "elevation_m": 300.0 + np.cumsum(grade * speed) * 0.25,
        "acceleration_ms2": change + felt * grade + 0.02 * rng.standard_normal(len(time)), "power_kw": power,
    }  # fmt: skip
    return Trip(f"t{seed}", pl.DataFrame(table))


def fitted(felt: float) -> tuple[FeatureMap, Trips]:
    trips = Trips([drive(seed, felt) for seed in range(3)]).on_grid(1.0)
    return FeatureMap.fit(list(trips), "speed_kmh,acceleration_ms2,elevation_m", edges=True), trips


@pytest.mark.parametrize(("felt", "found"), [(GRAVITY, GRAVITY), (0.0, 0.0)])
def test_what_a_sensor_feels_of_a_slope_is_learned(felt: float, found: float) -> None:
    features, _ = fitted(felt)
    assert features.tilt == pytest.approx(found, rel=0.15)
    assert FeatureMap.from_dict(features.to_dict()).tilt == features.tilt


def test_acceleration_that_was_not_measured_holds_the_slope_as_in_training() -> None:
    features, trips = fitted(GRAVITY)
    trip = trips[0]
    measured = features.signals_of(trip)["acceleration_ms2"]
    without = Trip(trip.trip_id, trip.table.with_columns(acceleration_ms2=pl.lit(None, pl.Float64)), trip.hz)
    felt = features.signals_of(without)["acceleration_ms2"]
    change = (trip.column(EDGES[1]) - trip.column(EDGES[0])) / 3.6
    assert np.std((felt - measured)[60:]) < 0.35 * np.std((change - measured)[60:])


def test_ticks_are_the_rows_of_such_a_trip() -> None:
    features, trips = fitted(GRAVITY)
    table = trips[1].table.drop("acceleration_ms2", "power_kw")
    trip = Trip("plan", table.with_columns(acceleration_ms2=pl.lit(None, pl.Float64)), 1.0)
    rows, stream = features.transform(trip), features.stream()
    ticks = [stream.tick(row)[:2] for row in table.drop("segment").iter_rows(named=True)]
    assert np.stack([x for x, _ in ticks]) == pytest.approx(rows.x, abs=1e-5)
    assert np.stack([r for _, r in ticks]) == pytest.approx(rows.r, abs=1e-5)
