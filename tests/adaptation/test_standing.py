"""How wide a started car's bands are at a standstill follows what its own trips show there."""

from copy import copy
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import evband
from evband.adaptation import Base
from evband.adaptation.members import Evidence
from evband.adaptation.standing import LEAST, LEAST_S, MOST, PRIOR_TRIPS, standing_after
from evband.adaptation.update import noise_of
from evband.bands.mixtures import StudentMixture
from evband.calibration.value import Calibration
from evband.errors import ArtifactError
from evband.trips import Trip, Trips
from tests.adaptation.test_start_and_adapt import CDA, CRR, KG, trip


@pytest.fixture(scope="module")
def model() -> evband.PowerModel:
    return evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)


def after(model, errors_kw, known=0, noise=1.0, apart=0.0, nu=1e6, moving=False, power=20.0) -> Calibration:
    """The calibration after trips with these errors, of two members that are `apart` either way with a noise in kW, where
    `known` trips told of it before."""
    error = np.concatenate(errors_kw)
    count, trips = len(error), np.repeat(np.arange(len(errors_kw)), [len(e) for e in errors_kw])
    none = np.zeros((count, 0))
    y = (power + error) / model.feature_map_.y_std
    rows = Evidence(none, none[None], y, trips, np.full(count, moving), none, none[:, :0])
    said = StudentMixture(power + np.outer([apart, -apart], np.ones(count)), np.full((2, count), noise), np.full(2, nu))
    before = copy(model)
    before.calibration_ = replace(model.calibration_, trips=known or model.calibration_.trips)
    return standing_after(before, rows, said)


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
    errors[0][7] = 300.0
    assert after(model, errors, nu=5.0).standing == pytest.approx(plain, rel=0.02)
    assert after(model, [np.full(300, 300.0)] * 50, nu=5.0).standing == MOST
    assert after(model, [np.zeros(300)] * 500).standing == LEAST


def test_what_does_not_stand_long_or_was_calibrated_says_nothing(model) -> None:
    error = np.full(int(LEAST_S) - 1, 3.0)
    assert after(model, [error, error]) == after(model, [np.full(900, 3.0)], moving=True) == model.calibration_
    given = copy(model)
    given.calibration_ = Calibration(moving=1.2, standing=1.1, how="given", trips=12)
    assert after(given, [np.full(900, 3.0)]) == given.calibration_
    assert after(model, [np.full(900, 0.1)], power=-7.0) == model.calibration_  # on a charger
    assert after(model, [np.full(900, 1e154)]) == model.calibration_  # of no car


def test_only_trips_that_stood_make_the_next_ones_count_less(model) -> None:
    stood, rolled = [np.full(300, 0.1)] * 3, [np.full(300, 0.1)] * 30
    assert after(model, stood).trips == 3
    assert after(model, rolled, moving=True).trips == 0


def standing_with(drive: Trip, kw: np.ndarray) -> Trip:
    """On a mild day, on which no heater is to be thought of."""
    power = pl.when(pl.col("speed_kmh") < 1.0).then(pl.Series(kw)).otherwise("power_kw")
    return replace(drive, table=drive.table.with_columns(power_kw=power, ambient_temp_c=pl.lit(19.0)))


def test_the_start_has_the_bases_stretch_and_a_base_has_one_that_a_model_can_have(model, tmp_path) -> None:
    assert model.calibration_.standing == Base.load().standing != 1.0
    for standing in (0.0, 1e-4, 1e4):
        replace(Base.load(), standing=standing).save(tmp_path / "base.evband")
        with pytest.raises(ArtifactError, match="not a base for new cars"):
            Base.load(tmp_path / "base.evband")


def test_all_members_are_perturbed_by_nothing_together(model) -> None:
    noise = noise_of(model, 0)
    np.testing.assert_allclose(noise.mean(0), 0.0, atol=1e-12)
    assert noise.std() == pytest.approx(1.0, rel=0.05)


def test_trip_by_trip_comes_to_nearly_what_all_say_at_once() -> None:
    drives, rng = [trip(seed) for seed in range(70, 76)], np.random.default_rng(4)
    log = [standing_with(d, 0.5 + 0.05 * rng.standard_normal(len(d))) for d in drives]
    car = evband.start(mass_kg=KG, cda_m2=CDA, crr=CRR)
    once = evband.adapt(car, Trips(log)).calibration_
    for one in log:
        car = evband.adapt(car, Trips([one]))
    assert 5 <= car.calibration_.trips == once.trips  # of one of them less than half a minute of halts is left
    assert car.calibration_.standing == pytest.approx(once.standing, rel=0.35)
    assert max(car.calibration_.standing, once.standing) < 0.6


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
