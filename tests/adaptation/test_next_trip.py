"""Trips of one car differ in heater, wind and load: how far they do so is learned, and is in the next trip's band."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import evband
from evband.adaptation.members import NEXT_TRIP, NEXT_TRIP_COUNTS, of_next
from evband.adaptation.update import features_of, trip_effects
from evband.trips import Trip, Trips
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip


@pytest.mark.parametrize(("known", "count"), [(0, 2), (0, 8), (3, 1), (3, 3), (20, 5)])
def test_the_variance_of_effects_is_unbiased_about_what_was_known_before(known: int, count: int) -> None:
    rng = np.random.default_rng(1)
    variance, cars = 0.3, 40_000
    every = np.sqrt(variance) * rng.standard_normal((cars, known + count)) + rng.standard_normal((cars, 1))
    new = every[:, known:] - (every[:, :known].mean(1, keepdims=True) if known else 0.0)
    found = of_next(new.sum(1), (new**2).sum(1), count, known)
    freedom = count - (known == 0)
    asked = (NEXT_TRIP_COUNTS * NEXT_TRIP + freedom * variance) / (NEXT_TRIP_COUNTS + freedom)
    assert found.mean() == pytest.approx(asked, rel=0.02)  # five standard errors at least


def test_one_first_trip_tells_nothing_of_how_trips_differ() -> None:
    assert of_next(3.0, 9.0, 1, 0) == pytest.approx(NEXT_TRIP)


def with_offset(drive: Trip, kw: float) -> Trip:
    return replace(drive, table=drive.table.with_columns(pl.col("power_kw") + kw))


def test_a_car_whose_trips_differ_gets_a_wider_band_and_keeps_it() -> None:
    drives = [trip(seed) for seed in range(20, 29)]
    offsets = 1.2 * np.random.default_rng(2).standard_normal(len(drives))
    unlike = [with_offset(drive, kw) for drive, kw in zip(drives, offsets - offsets.mean(), strict=True)]
    width = {}
    for name, car in (("alike", drives), ("unlike", unlike)):
        model = evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)
        for some in (car[:3], car[3:6], car[6:]):  # log by log, as a fleet learns
            model = evband.adapt(model, Trips(some))
        bands = model.predict(Trips([trip(40)]))
        width[name] = float(bands.aleatoric.mean())
    assert width["unlike"] > 1.15 * width["alike"]


def test_hills_that_are_known_are_no_rolling_resistance_of_a_trip() -> None:
    model = evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)
    _, terms, *_ = features_of(model, Trips([trip(3)]).on_grid(1.0))
    unknown, known = (trip_effects(model, terms.astype(float), np.full(len(terms), hills)) for hills in (False, True))
    assert (known[:, :2] == unknown[:, :2]).all()
    assert known[:, 2].max() == pytest.approx(0.4 * unknown[:, 2].max())
