"""Fits that start from the base: its networks in a log's own terms, and what that is worth."""

import numpy as np
import pytest

from drives import made_up_trips
from evband.adaptation import Base
from evband.adaptation.transfer import _carry_over, _in_terms_of
from evband.features.wheel import INPUTS
from evband.model import PowerModel
from evband.network.predict import hidden_states
from evband.settings import FROM_BASE, Settings

SMALL = {"members": 5, "hidden": Base.load().hidden, "device": "cpu", "calibrate": False}


def test_networks_of_the_base_run_on_other_inputs_as_on_their_own() -> None:
    """Where their inputs are linear in the others, the states are the same; two of them stand side by side."""
    ground, rng, inputs, hidden = Base.load(), np.random.default_rng(0), 20, 2 * Base.load().hidden
    x = rng.standard_normal((40, inputs)).astype(np.float32)
    theirs = (x @ rng.standard_normal((inputs, len(INPUTS))) / 4 + rng.standard_normal(len(INPUTS))).astype(np.float32)
    found = _in_terms_of(x, theirs)
    assert found is not None
    arch = Settings(hidden=hidden).architecture(inputs, 3)
    theta = np.zeros((ground.members, arch.size), np.float32)
    _carry_over(ground, hidden, *found, arch.unpack(theta))
    start = np.arange(40) == 0
    ours = hidden_states(arch, theta, x, start)
    base = hidden_states(ground.architecture, ground.theta, theirs, start)
    np.testing.assert_allclose(ours[:, :, : ground.hidden], base, atol=2e-3)
    other = (ground.members // 2 + 1) % ground.members
    np.testing.assert_allclose(ours[0, :, ground.hidden :], base[other], atol=2e-3)


def test_inputs_that_do_not_tell_the_power_at_the_wheels_are_not_taken() -> None:
    rng = np.random.default_rng(1)
    assert _in_terms_of(*(rng.standard_normal((500, n)).astype(np.float32) for n in (4, len(INPUTS)))) is None


def test_a_fit_from_the_base_is_better_after_few_epochs() -> None:
    trips = made_up_trips(10)
    scores = {}
    for from_base in (True, False):
        model = PowerModel(**SMALL, epochs=3, from_base=from_base).fit(trips)
        assert model.settings_.from_base == from_base
        assert model.settings_.epochs == 3  # as given
        assert model.settings_.rise == (FROM_BASE["rise"] if from_base else Settings().rise)
        scores[from_base] = model.summary_["held_out_log_score"]
    assert scores[True] < scores[False] - 0.1


@pytest.mark.parametrize(
    "why", [{"hidden": 8}, {"hidden": 40}, {"method": "quantile-anchor"}, {"hz": 0.25}, {"road_load": False}]
)
def test_where_the_base_does_not_suit_a_fit_is_from_scratch_to_the_bit(why: dict) -> None:
    trips = made_up_trips(6, 300)
    chosen = SMALL | {"members": 2, "epochs": 1} | why
    one, other = (PowerModel(**chosen, from_base=flag).fit(trips) for flag in (True, False))
    assert not one.settings_.from_base
    assert one.settings_ == other.settings_
    np.testing.assert_array_equal(one.theta_, other.theta_)
