"""Priors, anchors, and what anchoring does to a linear-Gaussian ensemble."""

import numpy as np
import pytest
import torch

from evband.network.anchors import draw, make_prior, penalty
from evband.network.architecture import Architecture
from evband.network.streams import ANCHOR, START
from evband.settings import Settings
from evband.training.loop import Data, Trainer
from evband.training.objective import Batch, objective
from evband.training.windows import cut, find_segments
from tiny_car import members


def test_fan_in_prior_is_gate_wise():
    arch = Architecture(inputs=5, road=4, layers=2, hidden=16)
    prior = make_prior(arch, "fan_in", road_mean=np.arange(4.0))
    variance, mean = arch.unpack(prior.variance[None]), arch.unpack(prior.mean[None])
    for name, value in (("w_ih.0", 1 / 5), ("w_hh.0", 1 / 16), ("w_ih.1", 1 / 16), ("head_w", 1 / 16), ("road_w", 0.1 / 4),
                        ("bias.0", 0.1), ("head_b", 0.1), ("nu_raw", 0.1)):  # fmt: skip
        assert torch.allclose(variance[name], torch.tensor(value)), name
    assert mean["bias.1"][0].view(4, 16).mean(1).tolist() == [0, 1, 0, 0]  # input, forget, cell, output
    assert mean["road_w"][0].tolist() == [0, 1, 2, 3]


def test_the_papers_prior_is_flat_with_zero_mean():
    arch = Architecture(inputs=5, road=0, hidden=8)
    prior = make_prior(arch, "paper", 0.01)
    assert torch.equal(prior.mean, torch.zeros(arch.size))
    assert torch.allclose(prior.variance, torch.tensor(0.01))


def test_draws_depend_on_seed_member_and_purpose_only():
    prior = make_prior(Architecture(2, 0, hidden=8))
    together = draw(prior, [0, 1, 2], seed=5, purpose=ANCHOR)
    assert torch.equal(together[2:], draw(prior, [2], seed=5, purpose=ANCHOR))
    assert not torch.equal(together, draw(prior, [0, 1, 2], seed=5, purpose=START))
    assert not torch.equal(together, draw(prior, [0, 1, 2], seed=6, purpose=ANCHOR))


def test_penalty_is_the_printed_formula():
    rng = np.random.default_rng(0)
    theta, anchor, variance = rng.normal(size=(3, 7)), rng.normal(size=(3, 7)), rng.uniform(0.1, 2, (3, 7))
    expected = [sum((t - a) ** 2 / (2 * v) for t, a, v in zip(*rows, strict=True)) for rows in zip(theta, anchor, variance, strict=True)]  # fmt: skip
    np.testing.assert_allclose(penalty(*map(torch.from_numpy, (theta, anchor, variance))), expected)


@pytest.mark.parametrize("temperature", [1.0, 20.0])
def test_members_of_a_linear_model_spread_as_the_formula_says(temperature):
    """Covariance of anchored minimisers: T^2 S_post S_prior^-1 S_post, S_post = (X'X/s^2 + T S_prior^-1)^-1.

    The network is made linear: its LSTM weights are zero, so only the road-load path speaks, with a fixed Gaussian scale;
    the loss is the one that training minimises, with its N and temperature.
    """
    rng = np.random.default_rng(1)
    n, k, count = 60, 3, 500
    arch = Architecture(inputs=1, road=k, hidden=8, head="gaussian")
    r = (rng.normal(size=(n, k)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 0.3]])).astype(np.float32)
    start = np.zeros(n, bool)
    start[[0, 25]] = True
    data = Data(np.zeros((n, 1), np.float32), r, r @ np.ones(k) + rng.normal(size=n), start, np.zeros(n, np.int64))
    trainer = Trainer(arch, data, members(arch, count, train=(0,), held_out=(), beta=0.0, temperature=temperature),
                      Settings(window=32, burn_in=8, batch=4))  # fmt: skip
    linear = torch.zeros_like(trainer.theta)
    linear[:, arch.slices["head_b"]][:, 1] = float(np.log(np.expm1(1.0 - 1e-4)))  # softplus(.) + floor = 1

    def gradient(road):
        theta = linear.clone()
        theta[:, arch.slices["road_w"]] = road
        theta.requires_grad_()
        windows = cut(find_segments(start, data.trip), 32, 8)
        batch = Batch(*(torch.from_numpy(v).expand(count, -1) for v in (windows.start, windows.first, windows.stop)))
        loss = objective(arch, theta, trainer.anchor, trainer.variance, trainer.rows, batch, 32, trainer.terms)
        return torch.autograd.grad(loss.sum(), theta)[0][:, arch.slices["road_w"]].double()

    at_zero = gradient(torch.zeros(count, k))
    hessian = torch.stack([(gradient(torch.eye(k)[j].expand(count, k)) - at_zero)[0] for j in range(k)], 1)
    minimisers = -torch.linalg.solve(hessian, at_zero.T).T.numpy()  # quadratic: one Newton step is exact

    precision = np.eye(k) * k  # the road path's prior variance is 1/fan_in = 1/k
    posterior = np.linalg.inv(r.T.astype(float) @ r + temperature * precision)
    expected = temperature**2 * posterior @ precision @ posterior
    np.testing.assert_allclose(np.cov(minimisers.T), expected, rtol=0.2, atol=0.08 * np.abs(expected).max())
