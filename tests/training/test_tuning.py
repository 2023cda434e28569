"""Settings chosen on inner folds."""

import numpy as np
import pytest

from evband.bands.mixtures import StudentMixture
from evband.errors import TripsError
from evband.model import PowerModel
from evband.preparing import prepare
from evband.settings import resolve
from evband.training.tuning import RATES, SEARCHED, best_of, chosen_in, of_many, tune
from evband.trips import Trips
from tiny_car import TINY, drive, drives

SMALL = {k: v for k, v in TINY.items() if k != "device"} | {"epochs": 2}


def tuned(method: str = "t-anchor", say=None):
    settings = resolve("default", method=method, **SMALL)
    return tune(prepare(drives(3, seconds=150), settings).job, settings, say=say)


def test_every_candidate_is_tried_and_the_best_is_taken():
    said: list[str] = []
    choice = tuned(say=said.append)
    at = {name: values[0] for name, values in SEARCHED.items()}
    tried = list(choice.tried)
    for name, values in SEARCHED.items():  # one after the other, each with the best so far
        for value in values if name == "beta" else values[1:]:
            row = tried.pop(0)
            assert chosen_in(row) == at | {name: value}
        at = chosen_in(best_of(choice.tried[: len(choice.tried) - len(tried)]))
    assert not tried
    for name, value in at.items():
        assert getattr(choice.settings, name) == value
    assert "8 candidates" in said[-1]


def test_each_trip_is_scored_by_the_members_that_left_it_out():
    """For an ensemble of four the score of a candidate is its four members' CRPS a fold, over every known row once."""
    settings = resolve("default", **{**SMALL, "members": 4})
    trips = drives(3, seconds=150)
    first = tune(prepare(trips, settings).job, settings).tried[0]
    chosen = {name: first[name] for name in ("beta", "trip_effect", "temperature")}
    model = PowerModel(**{**TINY, **SMALL, "members": 12}, **chosen)
    model = model.fit(trips)
    bands = model.out_of_bag(prepare(trips.on_grid(settings.hz), model.settings_))
    crps = bands.crps(bands.power_kw).mean() / model.feature_map_.y_std
    assert first["score"] == pytest.approx(crps, rel=1e-4)
    error = bands.mean - bands.power_kw
    means = [error[(bands.trip_id == t) & np.isfinite(error)].mean() for t in np.unique(bands.trip_id)]
    assert first["trips"] == pytest.approx(np.abs(means).mean() / model.feature_map_.y_std, rel=1e-3)


def test_trips_decide_among_candidates_that_are_as_good_on_seconds():
    tried = [
        {"beta": 0.5, "score": 1.0, "trips": 0.30},
        {"beta": 0.0, "score": 1.004, "trips": 0.20},
        {"beta": 1.0, "score": 1.02, "trips": 0.10},
    ]
    assert chosen_in(best_of(tried)) == {"beta": 0.0}


def test_the_crps_of_many_members_follows_from_one_and_four():
    """Members drawn alike: the mean CRPS of M of them is a + b / M. Over 4,000 draws the error is under 1 % (5 sigma)."""
    rng = np.random.default_rng(0)
    mu, y = rng.normal(size=(30, 4000)), rng.normal(size=4000)

    def crps(members):
        some = mu[:members]
        return StudentMixture(some, np.full_like(some, 0.7), np.full(members, 4.0)).crps(y).mean()

    one = np.mean([StudentMixture(m[None], np.full((1, 4000), 0.7), np.array([4.0])).crps(y).mean() for m in mu])
    fours = [StudentMixture(mu[i : i + 4], np.full((4, 4000), 0.7), np.full(4, 4.0)).crps(y).mean() for i in range(27)]
    assert of_many(one, np.mean(fours), 30) == pytest.approx(crps(30), rel=0.01)


def test_a_plain_ensemble_tunes_no_temperature_and_quantiles_no_weighting():
    assert {row["temperature"] for row in tuned("t-ensemble").tried} == {0.0}
    of_quantiles = tuned("quantile-anchor").tried
    assert {row["beta"] for row in of_quantiles} == {resolve("default").beta}
    assert len(of_quantiles) == len(SEARCHED["temperature"])


@pytest.mark.parametrize("method", ["t-dropout", "quantile-dropout"])
def test_a_dropout_method_tunes_its_rate(method):
    choice = tuned(method)
    assert [row["dropout"] for row in choice.tried] == list(RATES)
    assert choice.settings.dropout == min(choice.tried, key=lambda row: row["score"])["dropout"]


def test_one_trip_cannot_be_tuned_on():
    with pytest.raises(TripsError, match="at least two different trips"):
        PowerModel(**TINY, tune=True).fit(Trips([drive("alone", seconds=200)]))
