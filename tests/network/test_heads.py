"""Heads against SciPy and scikit-learn."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import mean_pinball_loss

from evband.network.apply import Tensors, apply_head, negative_log_likelihood
from evband.network.architecture import Architecture
from evband.network.heads import HEADS, Head, Output
from tiny_car import TINY, drives


@pytest.fixture
def rng():
    return np.random.default_rng(3)


def output(rng, members=4, n=50):
    mu, s = torch.from_numpy(rng.normal(size=(members, n, 1))), torch.from_numpy(rng.uniform(0.01, 3, (members, n, 1)))
    return Output(mu, s, torch.from_numpy(rng.uniform(2.1, 40, members)), None)


def test_student_t_likelihood_is_scipys(rng):
    out, y = output(rng), torch.from_numpy(5 * rng.normal(size=(4, 50, 1)))
    ours = negative_log_likelihood(Architecture(1, 0), out, y)
    theirs = -stats.t.logpdf(y, out.nu.view(-1, 1, 1), loc=out.mu, scale=out.scale)
    np.testing.assert_allclose(ours, theirs, rtol=1e-10)


def test_gaussian_likelihood_is_scipys(rng):
    out, y = output(rng), torch.from_numpy(rng.normal(size=(4, 50, 1)))
    ours = negative_log_likelihood(Architecture(1, 0, head="gaussian"), Output(out.mu, out.scale, None, None), y)
    np.testing.assert_allclose(ours, -stats.norm.logpdf(y, out.mu, out.scale), rtol=1e-10)


def test_pinball_loss_is_scikit_learns(rng):
    arch = Architecture(1, 0, head="quantile")
    q, y = torch.from_numpy(rng.normal(size=(1, 60, 1, 19))), torch.from_numpy(rng.normal(size=(1, 60, 1)))
    ours = negative_log_likelihood(arch, Output(q[..., 9], None, None, q), y).mean()
    theirs = sum(mean_pinball_loss(y.flatten(), q[0, :, 0, k], alpha=p) for k, p in enumerate(arch.levels))
    assert float(ours) == pytest.approx(theirs, rel=1e-10)


def weights_of(arch, rng, members=2):
    theta = torch.from_numpy(rng.normal(size=(members, arch.size)).astype(np.float32))
    return arch.unpack(theta)


@pytest.mark.parametrize("head", ["t", "gaussian", "quantile"])
def test_the_road_load_path_moves_the_location_and_nothing_else(rng, head):
    arch = Architecture(2, 3, hidden=8, head=head)
    weights = weights_of(arch, rng)
    h, r = torch.randn(2, 5, 4, 8), torch.randn(1, 5, 4, 3)
    with_road, without = apply_head(arch, weights, h, r), apply_head(arch, weights, h, torch.zeros_like(r))
    road = torch.einsum("otbk,mk->mtb", r, weights["road_w"])
    torch.testing.assert_close(with_road.mu - without.mu, road, rtol=1e-4, atol=1e-5)
    if head == "quantile":
        torch.testing.assert_close(
            with_road.quantiles - without.quantiles, road.unsqueeze(-1).expand(2, 5, 4, 19), rtol=1e-4, atol=1e-5
        )
    else:
        assert torch.equal(with_road.scale, without.scale)
        assert bool((with_road.scale > 0).all())


def test_nu_never_falls_under_its_floor_and_can_be_fixed():
    arch = Architecture(1, 0, hidden=8, nu_min=3.0)
    weights = arch.unpack(torch.full((2, arch.size), -200.0))
    assert arch.degrees_of_freedom(weights, Tensors).tolist() == [3.0, 3.0]
    fixed = Architecture(1, 0, hidden=8, nu=4.5)
    assert fixed.degrees_of_freedom(weights, Tensors).tolist() == [4.5, 4.5]


def test_a_distilled_network_is_two_members_around_its_mean(rng):
    arch = Architecture(2, 3, hidden=8, head="distilled", nu=5.0)
    weights = weights_of(arch, rng, members=1)
    h, r = torch.randn(1, 6, 2, 8), torch.randn(1, 6, 2, 3)
    out = apply_head(arch, weights, h, r)
    raw = torch.einsum("mtbh,moh->mtbo", h, weights["head_w"]) + weights["head_b"]
    mean = raw[0, ..., 0] + r[0] @ weights["road_w"][0]
    torch.testing.assert_close(out.mu.mean(0), mean, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(out.mu.std(0, unbiased=False), raw[0, ..., 2].abs(), rtol=1e-4, atol=1e-5)
    assert out.nu.tolist() == [5.0, 5.0]
    two = arch.distribution.as_members({name: value.numpy() for name, value in weights.items()})
    members = {name: torch.from_numpy(value) for name, value in two.items()}
    pair = apply_head(Architecture(2, 3, hidden=8, nu=5.0), members, h.expand(2, -1, -1, -1), r)
    torch.testing.assert_close(pair.mu, out.mu, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(pair.scale, out.scale, rtol=1e-4, atol=1e-5)


def test_heads_need_neither_torch_nor_numpy():
    code = "import evband.network.heads, sys; print([m for m in ('torch', 'numpy') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


class ByCrps(Head):
    """A head as a reader of CONTRIBUTING.md would add it: a Gaussian that is fitted by its CRPS."""

    name = "crps"
    label = "a Gaussian"

    def loss(self, out, y, levels):
        z = (y - out.mu) / out.scale
        normal = torch.distributions.Normal(0.0, 1.0)
        return out.scale * (z * (2 * normal.cdf(z) - 1) + 2 * normal.log_prob(z).exp() - math.pi**-0.5)


def test_a_new_head_is_one_class_and_one_line(monkeypatch):
    from evband import settings
    from evband.model import PowerModel

    monkeypatch.setitem(HEADS, "crps", ByCrps())
    monkeypatch.setitem(settings.METHODS, "crps-anchor", ("crps", "anchor"))
    known = settings.ABOUT["method"].choices
    monkeypatch.setitem(vars(settings.ABOUT["method"]), "choices", (*known, "crps-anchor"))
    model = PowerModel("crps-anchor", **{**TINY, "members": 2, "epochs": 1}).fit(drives(2, seconds=120))
    band = model.stream().tick(speed_kmh=50.0, acceleration_ms2=0.1)
    assert band.lower_kw < band.mean_kw < band.upper_kw
    assert np.isfinite(model.predict(drives(1, seconds=120)).interval(0.9)).all()
