"""Training: seeded to the bit, members independent of each other, and one member's ruin its own."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from evband.errors import SettingsError
from evband.network.architecture import Architecture
from evband.settings import Settings
from evband.training import loop
from evband.training.loop import Trainer, run
from evband.training.schedule import learning_rate
from tiny_car import arrays, dropping, members

ARCH = Architecture(inputs=2, road=2, hidden=8)
SETTINGS = Settings(epochs=4, window=32, burn_in=8, batch=4)
DATA = arrays(np.random.default_rng(0))


def trainer(count=3, settings=SETTINGS, arch=ARCH, **how):
    return Trainer(arch, DATA, members(arch, count, **how), settings)


def test_the_same_seed_gives_the_same_weights_to_the_bit():
    assert torch.equal(run(trainer()), run(trainer()))
    other = Settings(epochs=4, window=32, burn_in=8, batch=4, seed=1)
    assert not torch.equal(run(trainer()), run(trainer(settings=other)))


@pytest.mark.parametrize("dropout", [0.0, 0.2])
def test_a_member_does_not_depend_on_how_many_train_beside_it(dropout):
    settings = Settings(epochs=3, window=32, burn_in=8, batch=4, **dropping(dropout), resample="trips")
    assert torch.equal(run(trainer(1, settings))[0], run(trainer(4, settings))[0])


def test_training_lowers_the_loss():
    t = trainer(settings=Settings(epochs=15, window=32, burn_in=8, batch=4))
    run(t)
    assert t.state.history[-1][1] < t.state.history[0][1] - 0.3


@pytest.mark.parametrize("optimiser", ["sgd", "adagrad", "rmsprop"])
def test_other_optimisers_train_too(optimiser):
    t = trainer(settings=Settings(epochs=2, window=32, burn_in=8, batch=4, optimiser=optimiser))
    assert torch.isfinite(run(t)).all()


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_a_broken_member_restarts_from_its_anchor_and_touches_no_other(monkeypatch, poison):
    healthy = run(trainer())
    plain, sick, epochs = loop.objective, trainer(), []

    def poisoned(*args):
        loss = plain(*args)
        if len(epochs) < 1 + sick.steps:  # the first epoch, and one step of the second
            epochs.append(0)
            return loss * torch.tensor([1.0, poison, 1.0])
        return loss

    monkeypatch.setattr(loop, "objective", poisoned)
    theta = run(sick)
    assert sick.state.restarts == {1: 2}
    assert torch.isfinite(theta).all()
    assert np.isfinite([h[1] for h in sick.state.history]).all()
    for m in (0, 2):
        assert torch.equal(theta[m], healthy[m])


def test_a_restart_begins_at_the_anchor_with_empty_moments():
    t = trainer()
    t.epoch()
    t.broken[1] = True
    before = t.theta.detach().clone()
    t._restart_broken()
    assert torch.equal(t.theta[1], t.anchor[1])
    assert torch.equal(t.theta[0], before[0])
    for moment in t._moments():
        if moment.shape == t.theta.shape:
            assert moment[1].abs().sum() == 0
            assert moment[0].abs().sum() > 0
    assert not t.broken.any()


def test_gradients_are_clipped_for_each_member_alone(monkeypatch):
    t = trainer(settings=Settings(epochs=1, window=32, burn_in=8, batch=4, optimiser="sgd", clip=0.5, nu_pace=1.0, rate=1.0, schedule="constant"))  # fmt: skip
    plain = loop.objective
    monkeypatch.setattr(loop, "objective", lambda *args: plain(*args) * torch.tensor([1e6, 1e-3, 1.0]))
    t.set_batch(t.epoch_batches(0)[:, 0], 0)
    before = t.theta.detach().clone()
    t.step_once()
    step = (t.theta.detach() - before).norm(dim=1)
    assert float(step[0]) == pytest.approx(0.5, rel=1e-3)
    assert float(step[1]) < 0.1


def test_early_stopping_keeps_the_weights_of_the_best_look():
    t = trainer(settings=Settings(epochs=8, window=32, burn_in=8, batch=4, rate=0.1))
    seen = []
    plain = t.check
    t.check = lambda: (plain(), seen.append((t.held_out_scores(), t.theta.detach().clone())))[0]
    theta = run(t)
    scores = torch.stack([s for s, _ in seen])
    for m in range(3):
        best = int(scores[:, m].argmin())
        assert torch.equal(theta[m], seen[best][1][m])


def test_a_long_spell_without_gain_does_not_end_the_run():
    """One cycle: scores wander while the rate is high and fall when it does."""
    t = trainer(settings=Settings(epochs=30, window=32, burn_in=8, batch=4, rate=0.1))
    scores = torch.tensor([5.0, 1.0] + [3.0] * 27 + [0.5])
    seen = iter(scores)
    t.held_out_scores = lambda: next(seen).expand(3)
    assert torch.equal(run(t), t.theta.detach())
    assert float(t.state.best_score[0]) == 0.5


def test_without_held_out_trips_the_last_weights_count():
    t = trainer(held_out=())
    theta = run(t)
    assert torch.equal(theta, t.theta.detach())
    assert t.held_out_scores() is None


def test_progress_tells_epoch_loss_score_and_time_left():
    told = []
    run(trainer(), told.append)
    assert [p.epoch for p in told] == [1, 2, 3, 4]
    assert told[-1].seconds_left == 0
    assert all(np.isfinite([p.loss, p.log_score]).all() for p in told)


def test_one_cycle_climbs_to_the_rate_and_falls_to_nothing():
    rates = [learning_rate(SETTINGS, k, 100) for k in range(101)]
    assert np.argmax(rates) == 30
    assert max(rates) == pytest.approx(SETTINGS.rate)
    assert rates[0] == pytest.approx(SETTINGS.rate / 25)
    assert rates[100] == pytest.approx(SETTINGS.rate / 1e4)
    constant = Settings(schedule="constant", rate=1e-3)
    assert {learning_rate(constant, k, 100) for k in range(100)} == {1e-3}


@pytest.mark.parametrize(
    "wrong",
    [{"schedule": "steps"}, {"optimiser": "lion"}, {"prior_scale": "both"}, {"resample": "rows"}, {"burn_in": 128},
     {"dropout": 1.0}, {"epochs": 0}, {"batch": 0}],
)  # fmt: skip
def test_settings_outside_what_they_may_be(wrong):
    with pytest.raises(SettingsError):
        Settings(**wrong)


def test_nu_moves_at_a_pace_of_its_own_and_nothing_else_does():
    slow, fast = (trainer(settings=replace(SETTINGS, nu_pace=pace)) for pace in (1.0, 10.0))
    nu, start = ARCH.slices["nu_raw"], slow.theta.detach().clone()
    for one in (slow, fast):
        one.set_batch(one.epoch_batches(0)[:, 0], 0)
        one.step_once()
    moved, ten_times = (one.theta.detach() - start for one in (slow, fast))
    torch.testing.assert_close(ten_times[:, nu], 10 * moved[:, nu], rtol=1e-3, atol=1e-6)
    moved[:, nu] = ten_times[:, nu] = 0
    torch.testing.assert_close(moved, ten_times)


def test_short_segments_share_windows_and_are_scored_as_if_alone():
    """A reset inside a window is a drive's start: the packed windows' score is that of each segment run by itself."""
    data = arrays(np.random.default_rng(1), lengths=(7, 12, 20, 5, 9, 15, 11, 6, 13))
    start = data.start.copy()
    data = replace(data, trip=np.repeat([0, 1, 2], [44, 35, 19]))  # trips of 4, 3 and 2 segments
    settings = replace(SETTINGS, window=64)
    packed = Trainer(ARCH, data, members(ARCH, held_out=(1,)), settings)
    assert packed.held_windows is not None
    assert int((packed.held_windows[2] > 0).sum()) == 3, "one window a member"
    each = replace(data, trip=np.cumsum(start) - 1)  # every segment a trip: nothing is shared
    alone = Trainer(ARCH, each, members(ARCH, train=(0, 1, 2, 3, 7, 8), held_out=(4, 5, 6)), settings)
    torch.testing.assert_close(packed.held_out_scores(), alone.held_out_scores())
    assert packed.rows.carry is not None
    assert alone.rows.carry is None
    assert torch.isfinite(run(packed)).all()
