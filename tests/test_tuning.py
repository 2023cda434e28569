"""Settings chosen on inner folds."""

import numpy as np
import pytest

from evband.errors import TripsError
from evband.mixtures import StudentMixture
from evband.model import PowerModel, prepare
from evband.settings import resolve
from evband.trips import Trips
from evband.tuning import RATES, STEPS, Candidate, choose, of_many, tune
from tiny_car import TINY, drive, drives

SMALL = {k: v for k, v in TINY.items() if k != "device"} | {"epochs": 2}


def tuned(method: str = "t-anchor", say=None):
    settings = resolve("default", method=method, **SMALL)
    return tune(prepare(drives(3, seconds=150), settings)[1], settings, say=say)


def test_settings_are_chosen_one_after_the_other():
    said: list[str] = []
    choice = tuned(say=said.append)
    effects, betas, temperatures = STEPS.values()
    first, second, third = choice.tried[:3], choice.tried[3:5], choice.tried[5:]
    assert [row["trip_effect"] for row in first] == list(effects)
    assert {(row["beta"], row["temperature"]) for row in first} == {(betas[0], temperatures[0])}
    assert [row["beta"] for row in second] == list(betas[1:])
    assert [row["temperature"] for row in third] == list(temperatures[1:])
    chosen = {name: getattr(choice.settings, name) for name in STEPS}
    assert {row["trip_effect"] for row in second + third} == {chosen["trip_effect"]}
    assert {row["beta"] for row in third} == {chosen["beta"]}
    assert any(all(row[name] == chosen[name] for name in STEPS) for row in choice.tried)
    assert "7 candidates" in said[0]


def test_among_candidates_that_crps_cannot_tell_apart_the_log_score_decides():
    """One standard error over trips, paired: a noisy lead gives way to a better log score, a clear one does not."""
    noise = np.random.default_rng(0).normal(size=20)
    lead = Candidate({"beta": 0.5}, 10 + noise, log_score=1.0)
    close = Candidate({"beta": 0.0}, 10.1 + noise[::-1], log_score=0.5)
    clearly_worse = Candidate({"beta": 1.0}, 10.1 + noise, log_score=0.0)
    assert choose([lead, clearly_worse]) is lead
    assert choose([lead, clearly_worse, close]) is close


def test_each_trip_is_scored_by_the_members_that_left_it_out():
    """For an ensemble of two the score of a candidate is its two members' CRPS a fold, over every known row once."""
    settings = resolve("default", **{**SMALL, "members": 2})
    trips = drives(3, seconds=150)
    first = tune(prepare(trips, settings)[1], settings).tried[0]
    chosen = {name: first[name] for name in STEPS}
    model = PowerModel(**{**TINY, **SMALL, "members": 6}, **chosen)
    model = model.fit(trips)
    bands = model.out_of_bag(trips.on_grid(settings.hz), prepare(trips, model.settings_)[1])
    crps = bands.crps(bands.power_kw).mean() / model.feature_map_.y_std
    assert first["crps"] == pytest.approx(crps, rel=1e-4)
    log_score = -(bands.logpdf(bands.power_kw) + np.log(model.feature_map_.y_std)).mean()  # of standardised power
    assert first["log_score"] == pytest.approx(log_score, rel=1e-3)


def test_the_crps_of_many_members_follows_from_one_and_two():
    """Members drawn alike: the mean CRPS of M of them is a + b / M. Over 4,000 draws the error is under 1 % (5 sigma)."""
    rng = np.random.default_rng(0)
    mu, y = rng.normal(size=(30, 4000)), rng.normal(size=4000)

    def crps(members):
        some = mu[:members]
        return StudentMixture(some, np.full_like(some, 0.7), np.full(members, 4.0)).crps(y).mean()

    one = np.mean([StudentMixture(m[None], np.full((1, 4000), 0.7), np.array([4.0])).crps(y).mean() for m in mu])
    pairs = [StudentMixture(mu[[i, i + 1]], np.full((2, 4000), 0.7), np.full(2, 4.0)).crps(y).mean() for i in range(29)]
    assert of_many(one, np.mean(pairs), 30) == pytest.approx(crps(30), rel=0.01)


def test_a_plain_ensemble_tunes_no_temperature_and_quantiles_nothing_else():
    assert set(tuned("t-ensemble").tried[0]) == {"trip_effect", "beta", "crps", "log_score"}
    of_quantiles = tuned("quantile-anchor").tried
    assert [row["temperature"] for row in of_quantiles] == list(STEPS["temperature"])
    assert set(of_quantiles[0]) == {"temperature", "crps", "log_score"}


@pytest.mark.parametrize("method", ["t-dropout", "quantile-dropout"])
def test_a_dropout_method_tunes_its_rate(method):
    choice = tuned(method)
    assert [row["dropout"] for row in choice.tried] == list(RATES)
    assert choice.settings.dropout == min(choice.tried, key=lambda row: row["score"])["dropout"]


def test_one_trip_cannot_be_tuned_on():
    with pytest.raises(TripsError, match="at least two different trips"):
        PowerModel(**TINY, tune=True).fit(Trips([drive("alone", seconds=200)]))
