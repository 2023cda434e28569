"""What a parked car draws says nothing about how noisy its log is on the move, and is no drive."""

from copy import copy
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import evband
from evband.energy import plan
from evband.trips import Trip, Trips
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip


def parked(seconds: int, seed: int = 0) -> Trip:
    rng, time = np.random.default_rng(seed), np.arange(float(seconds))
    table = {"time_s": time, "speed_kmh": 0.0 * time, "power_kw": 0.3 + 0.01 * rng.standard_normal(seconds)}
    return Trip(f"parked{seed}", pl.DataFrame(table | {"ambient_temp_c": 20.0 + 0.0 * time}))


@pytest.mark.parametrize("seconds", [60, 600])
def test_a_log_that_only_stands_leaves_bands_on_the_move(seconds: int) -> None:
    model, drive = evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR), Trips([trip(40)])
    stood = evband.adapt(model, Trips([parked(seconds)]))
    before, after = (one.predict(drive).aleatoric for one in (model, stood))
    assert after.mean() == pytest.approx(before.mean(), rel=0.1)


def test_a_stream_that_stays_parked_learns_no_more() -> None:
    stream = evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR).stream(adapt=True)
    for row in trip(41).on_grid(1.0).table.iter_rows(named=True):
        stream.tick(speed_kmh=row["speed_kmh"], power_kw=row["power_kw"])
    for kw in parked(3600, seed=1).table["power_kw"]:
        stream.tick(speed_kmh=0.0, power_kw=kw)
    assert stream.model.adaptation_.trips == 1
    assert stream.model.calibration_.trips <= 1


def test_a_plan_is_known_as_closely_as_the_logs_that_the_car_learned_from() -> None:
    way = pl.DataFrame({"distance_km": [0.0, 30.0], "speed_kmh": [70.0, 70.0]})
    model = evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)
    width = {}
    for readings in (None, 1.0):
        one = copy(model)
        one.adaptation_ = replace(model.adaptation_, readings=readings)
        found = plan(one, 80, 50, way)
        width[readings] = found.energy_kwh(0.95) - found.energy_kwh(0.05)
    assert width[1.0] > 1.05 * width[None]
