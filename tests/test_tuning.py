"""Settings chosen on inner folds."""

import numpy as np
import pytest
from scipy import stats

from evband.errors import TripsError
from evband.model import PowerModel, prepare
from evband.network.predict import Prediction
from evband.settings import resolve
from evband.training.loop import Data
from evband.trips import Trips
from evband.tuning import BETAS, TEMPERATURES, member_crps, tune
from tiny_car import TINY, drive, drives

SMALL = {k: v for k, v in TINY.items() if k != "device"}


def test_every_candidate_is_tried_and_the_best_is_taken():
    trips, said = drives(4, seconds=150), []
    settings = resolve("default", **{**SMALL, "epochs": 2})
    variants = {h: prepare(trips, resolve("default", hinges=h, **SMALL))[1] for h in (True, False)}
    choice = tune(variants, settings, say=said.append)
    assert len(choice.tried) == 2 * len(BETAS) * len(TEMPERATURES)
    best = min(choice.tried, key=lambda row: row["crps"])
    assert (choice.settings.beta, choice.settings.temperature, choice.settings.hinges) == (best["beta"], best["temperature"], best["hinges"])  # fmt: skip
    assert len(said) == 2


def test_each_trip_is_scored_by_the_member_that_left_it_out():
    """The candidates' CRPS covers every known row once, and is finite."""
    job = prepare(drives(3, seconds=150), resolve("default", **SMALL))[1]
    assert isinstance(job.data, Data)
    choice = tune({True: job}, resolve("default", **SMALL))
    assert all(0 < row["crps"] < 10 for row in choice.tried)


def test_a_plain_ensemble_tunes_no_temperature():
    job = prepare(drives(3, seconds=150), resolve("default", **SMALL))[1]
    choice = tune({True: job}, resolve("default", method="t-ensemble", **SMALL))
    assert {row["temperature"] for row in choice.tried} == {0.0}


def test_one_trip_cannot_be_tuned_on():
    with pytest.raises(TripsError, match="at least two different trips"):
        PowerModel(**TINY, tune=True).fit(Trips([drive("alone", seconds=200)]))


def test_crps_of_a_member_is_the_integral_of_its_definition():
    grid = np.linspace(-400, 400, 800_001)
    mu, s, y = np.array([[0.3]]), np.array([[0.8]]), np.array([1.7])
    for nu, law in ((np.array([3.5]), stats.t(3.5, 0.3, 0.8)), (None, stats.norm(0.3, 0.8))):
        ours = member_crps(Prediction(mu, s, nu, None), 0, np.array([True]), y, ())
        integral = np.trapezoid((law.cdf(grid) - (grid >= 1.7)) ** 2, grid)
        assert ours[0] == pytest.approx(integral, rel=1e-3)
