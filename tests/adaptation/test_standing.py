"""How wide a started car's bands are at a standstill follows what its own trips show there."""

from copy import copy
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import evband
from evband.adaptation.members import Evidence
from evband.adaptation.standing import LEAST, LEAST_S, MOST, PRIOR_TRIPS, standing_after
from evband.bands.mixtures import StudentMixture
from evband.calibration.value import Calibration
from evband.trips import Trip, Trips
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip


@pytest.fixture(scope="module")
def model() -> evband.PowerModel:
    return evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)


def after(model, errors_kw, known=0, noise=1.0, apart=0.0, nu=1e6, moving=False) -> Calibration:
    """The calibration after trips with these errors, of two members that are `apart` either way with a noise in kW."""
    error = np.concatenate(errors_kw)
    count, trips = len(error), np.repeat(np.arange(len(errors_kw)), [len(e) for e in errors_kw])
    none = np.zeros((count, 0))
    rows = Evidence(
        none, none[None], error / model.feature_map_.y_std, trips, np.full(count, moving), none, none[:, :0]
    )
    said = StudentMixture(np.outer([apart, -apart], np.ones(count)), np.full((2, count), noise), np.full(2, nu))
    return standing_after(model, rows, said, known)


@pytest.mark.parametrize(("known", "apart"), [(0, 0.0), (7, 0.0), (3, 0.8)])
def test_trips_weigh_alike_and_the_start_counts_as_some_of_them(model, known: int, apart: float) -> None:
    """Where errors are bell-shaped: c^2 = (k c_0^2 + sum of each trip's mean of e^2 / (AU + EU) (k+n+1) / (k+n-1)) / (k + n)."""
    rng = np.random.default_rng(0)
    errors = [scale * rng.standard_normal(size) for scale, size in ((0.3, 400), (2.0, 40), (0.9, 900))]
    k, n = PRIOR_TRIPS + known, len(errors)
    each = [(e**2).mean() / (1.0 + apart**2) * (k + n + 1) / (k + n - 1) for e in errors]
    asked = (k * model.calibration_.standing**2 + sum(each)) / (k + n)
    assert after(model, errors, known, apart=apart).standing ** 2 == pytest.approx(asked, rel=1e-4)


@pytest.mark.parametrize("truth", [0.4, 1.5])
def test_many_trips_find_the_scale_of_heavy_tails(model, truth: float) -> None:
    rng = np.random.default_rng(1)
    errors = [truth * 0.5 * rng.standard_t(4.0, 300) for _ in range(400)]
    assert after(model, errors, noise=0.5, nu=4.0).standing == pytest.approx(truth, rel=0.02)


def test_an_odd_reading_counts_little_and_no_log_leads_too_far(model) -> None:
    rng = np.random.default_rng(2)
    errors = [0.7 * rng.standard_normal(300) for _ in range(4)]
    plain = after(model, errors, nu=5.0).standing
    errors[0][7] = 1e4
    assert after(model, errors, nu=5.0).standing == pytest.approx(plain, rel=0.02)
    assert after(model, [np.full(300, 1e6)] * 50, nu=5.0).standing == MOST
    assert after(model, [np.zeros(300)] * 500).standing == LEAST


def test_what_does_not_stand_long_or_was_calibrated_says_nothing(model) -> None:
    error = np.full(int(LEAST_S) - 1, 3.0)
    assert after(model, [error, error]) == after(model, [np.full(900, 3.0)], moving=True) == model.calibration_
    given = copy(model)
    given.calibration_ = Calibration(moving=1.2, standing=1.1, how="given", trips=12)
    assert after(given, [np.full(900, 3.0)]) is given.calibration_


def standing_with(drive: Trip, kw: np.ndarray) -> Trip:
    """On a mild day, on which no heater is to be thought of."""
    power = pl.when(pl.col("speed_kmh") < 1.0).then(pl.Series(kw)).otherwise("power_kw")
    return replace(drive, table=drive.table.with_columns(power_kw=power, ambient_temp_c=pl.lit(19.0)))


def test_a_car_that_draws_the_same_at_every_halt_is_known_better_there_than_one_that_does_not() -> None:
    drives, rng = [trip(seed) for seed in range(60, 66)], np.random.default_rng(3)
    stretch = {}
    for name, spread in (("steady", 0.02), ("unsteady", 2.0)):
        log = [
            standing_with(d, 0.5 + spread * (rng.standard_normal() + 0.3 * rng.standard_normal(len(d)))) for d in drives
        ]
        learned = evband.adapt(evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR), Trips(log))
        stretch[name] = learned.calibration_.standing
        assert learned.calibration_.moving == 1.0
    assert stretch["steady"] < 0.7 * evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR).calibration_.standing
    assert stretch["unsteady"] > 1.5 * stretch["steady"]
