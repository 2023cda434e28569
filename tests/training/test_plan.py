"""Folds of trips, least squares as prior mean, and which member leaves out what."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from evband.errors import SettingsError, TripsError
from evband.settings import resolve
from evband.training.plan import (
    Job,
    assign_folds,
    check_rows,
    choices_of,
    least_squares,
    members_of,
    repeats,
    resolve_device,
    train,
)
from tiny_car import arrays

TINY = {"hidden": 8, "epochs": 2, "window": 32, "burn_in": 8, "batch": 4}


def job(trips=6, folds=3):
    data = arrays(np.random.default_rng(0), lengths=(60,) * trips)
    return Job(data, np.arange(trips) % folds)


def test_folds_are_balanced_and_keep_groups_together():
    rows, group = np.array([100, 90, 80, 70, 60, 50, 40, 30]), np.array([0, 0, 1, 2, 3, 4, 5, 6])
    fold = assign_folds(rows, group, 3)
    assert fold[0] == fold[1]
    assert set(fold.tolist()) == {0, 1, 2}
    assert np.ptp(np.bincount(fold, weights=rows)) <= 70


def test_fewer_groups_than_folds_give_fewer_folds():
    assert assign_folds(np.array([5, 5]), np.array([0, 0]), 5).tolist() == [0, 0]
    assert sorted(assign_folds(np.array([5, 5]), np.array([0, 1]), 5).tolist()) == [0, 1]


def test_repeats_of_one_drive_are_found():
    rng = np.random.default_rng(0)
    cycle, other = 40 + 20 * np.sin(np.arange(600) / 30), 80 + 10 * np.sin(np.arange(600) / 50)
    group = repeats([cycle, other, cycle + rng.normal(0, 0.5, 600), cycle[:300]])
    assert group[0] == group[2]
    assert len({group[0], group[1], group[3]}) == 3


@pytest.mark.parametrize(("trips", "ridge"), [(1, 1e-2), (2, 1e-2 / 4), (8, 1e-2 / 64), (9, 1e-5)])
def test_least_squares_is_a_ridge_that_few_trips_make_stronger(trips, ridge):
    data = job().data
    data = replace(data, trip=np.arange(len(data.y)) % 10)
    rows = np.isfinite(data.y) & (data.trip < trips)
    r, z = data.r[rows].astype(float), data.y[rows]
    stacked = np.concatenate([r, np.sqrt(ridge * len(z)) * np.eye(r.shape[1])])
    expected = np.linalg.lstsq(stacked, np.append(z, np.zeros(r.shape[1])), rcond=None)[0]
    np.testing.assert_allclose(least_squares(data, np.arange(trips)), expected, atol=1e-6)


def test_member_m_leaves_out_fold_m_and_its_prior_never_saw_it():
    j, s = job(), resolve("default", members=7, **TINY)
    plan = members_of(j, s)
    arch = j.architecture(s)
    for m, member in enumerate(plan):
        held = np.flatnonzero(j.fold == m % 3)
        assert member.held_out.tolist() == held.tolist()
        assert not np.isin(held, member.train).any()
        np.testing.assert_allclose(
            member.prior.mean[arch.slices["road_w"]], least_squares(j.data, member.train), rtol=1e-5
        )


def test_a_plain_ensemble_has_no_anchor_and_dropout_trains_one_network_on_all():
    assert {m.temperature for m in members_of(job(), resolve("default", method="t-ensemble", **TINY))} == {0.0}
    plan = members_of(job(), resolve("default", method="t-dropout", **TINY))
    assert len(plan) == 4
    assert plan[0].train.tolist() == list(range(6))
    assert len(plan[0].held_out) == 0


def test_a_member_is_the_same_in_any_crowd():
    thetas = [train(job(), resolve("default", members=m, **TINY))[0] for m in (1, 4)]
    assert torch.equal(thetas[0][0], thetas[1][0])
    one, many = (choices_of(job(), resolve("default", members=m, **TINY)) for m in (1, 30))
    assert [trips.tolist() for trips in one] == [trips.tolist() for trips in many]


def test_a_job_travels(tmp_path):
    j = job()
    j.save(tmp_path / "job.npz")
    back = Job.load(tmp_path / "job.npz")
    s = resolve("default", members=2, **TINY)
    assert torch.equal(train(j, s)[0], train(back, s)[0])


def test_members_take_the_networks_of_a_trained_prior_in_turn():
    j, s = job(), resolve("default", members=3, **TINY)
    trained = torch.randn(2, j.architecture(s).size)
    plan = members_of(j, s, trained)
    for m, member in enumerate(plan):
        assert torch.equal(member.prior.mean, trained[m % 2])
    assert float((plan[0].prior.variance / members_of(j, s)[0].prior.variance).min()) == pytest.approx(0.01)


def test_rows_that_cannot_be_trained_on():
    j, s = job(), resolve("default", **TINY)
    j.data.y[40:] = np.nan
    with pytest.raises(TripsError, match="less than one window"):
        check_rows(j, resolve("default", **{**TINY, "window": 64}))
    j = job()
    j.data.x[3, 0] = np.inf
    with pytest.raises(TripsError, match="inputs hold values that are not finite"):
        check_rows(j, s)


def test_cuda_asked_for_and_absent(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SettingsError, match="no CUDA GPU"):
        resolve_device("cuda")
    assert resolve_device("auto") == "cpu"
    with pytest.raises(SettingsError, match="not one of auto, cpu, cuda"):
        resolve_device("tpu")
