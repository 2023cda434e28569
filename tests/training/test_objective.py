"""The loss of one member on one batch, written out in NumPy and SciPy."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from evband.network.apply import negative_log_likelihood
from evband.network.architecture import Architecture
from evband.network.forward import forward
from evband.network.heads import Output
from evband.settings import Settings
from evband.training.loop import Trainer
from evband.training.objective import Batch, nll_apart_from_trip, objective
from tiny_car import arrays, members

WINDOW, BURN_IN = 16, 4
WINDOWS = [(0, 0, 16), (30, 4, 16), (150, 4, 9), (0, 0, 0)]  # the last is empty: it fills a batch


def written_out(trainer, batch, beta, temperature, literal=False, trip_weight=None):
    """J of each member from the definition, row by row."""
    arch, data = trainer.arch, trainer.data_for_test
    known_in_training = np.isfinite(data.y) & np.isin(data.trip, trainer.members[0].train)
    n = 1 if literal else known_in_training.sum()
    totals = []
    for m in range(len(trainer.members)):
        theta = trainer.theta[m : m + 1].detach()
        nll, weight, extra = [], [], []
        for start, first, stop in batch:
            rows = slice(start, start + WINDOW)
            x, r = (torch.from_numpy(a[rows])[None, :, None] for a in (data.x, data.r))
            out, _ = forward(arch, theta, x, r, backend="reference")
            for t in range(first, stop):
                y = data.y[start + t]
                if np.isfinite(y):
                    s = float(out.scale[0, t, 0])
                    nll.append(-stats.t.logpdf(y, float(out.nu), float(out.mu[0, t, 0]), s))
                    weight.append(s ** (2 * beta))
                    extra.append(1.0 if trip_weight is None else trip_weight[m][data.trip[start + t]])
        weight = np.array(weight) / np.mean(weight)
        anchor = ((trainer.theta[m] - trainer.anchor[m]).square() / (2 * trainer.variance[m])).sum().detach()
        totals.append(np.sum(weight * extra * nll) / len(nll) + temperature / n * float(anchor))
    return totals


@pytest.mark.parametrize(
    ("beta", "temperature", "how"),
    [(0.0, 1.0, {}), (0.5, 10.0, {}), (1.0, 0.0, {}), (0.0, 1.0, {"prior_scale": "literal"}), (0.5, 1.0, {"resample": "trips"})],
)  # fmt: skip
def test_the_loss_is_the_printed_formula(beta, temperature, how):
    arch = Architecture(inputs=2, road=2, hidden=8)
    data = arrays(np.random.default_rng(0))
    plan = members(arch, 2, train=(0, 1), held_out=(2,), beta=beta, temperature=temperature)
    trainer = Trainer(arch, data, plan, Settings(window=WINDOW, burn_in=BURN_IN, **how))
    trainer.data_for_test = data
    batch = Batch(*(torch.tensor([[w[k] for w in WINDOWS]] * 2) for k in range(3)))
    ours = objective(
        arch, trainer.theta, trainer.anchor, trainer.variance, trainer.rows, batch, WINDOW, trainer.terms
    )  # fmt: skip
    trip_weight = None if trainer.terms.trip_weight is None else trainer.terms.trip_weight.numpy()
    theirs = written_out(trainer, WINDOWS, beta, temperature, how.get("prior_scale") == "literal", trip_weight)
    np.testing.assert_allclose(ours.detach(), theirs, rtol=2e-5)


def test_n_counts_each_training_target_once_however_windows_overlap():
    arch = Architecture(inputs=2, road=2, hidden=8)
    data = arrays(np.random.default_rng(0))
    settings = Settings(window=WINDOW, burn_in=12)  # every row lies in four windows
    trainer = Trainer(arch, data, members(arch, 2, train=(0, 2)), settings)
    n = np.isfinite(data.y[np.isin(data.trip, (0, 2))]).sum()
    np.testing.assert_allclose(trainer.terms.prior_weight, 1 / n, rtol=1e-6)


def test_the_weights_of_scale_stop_the_gradient():
    """With beta, the location's gradient is the plain one times a constant of each row: no path through the weights."""
    arch = Architecture(inputs=2, road=2, hidden=8)
    trainer = Trainer(arch, arrays(np.random.default_rng(0)), members(arch, 1, temperature=0.0), Settings(window=WINDOW, burn_in=BURN_IN))  # fmt: skip
    one_row = Batch(torch.tensor([[30]]), torch.tensor([[5]]), torch.tensor([[6]]))

    def gradient(beta):
        terms = type(trainer.terms)(torch.tensor([beta]), trainer.terms.prior_weight, None)
        loss = objective(arch, trainer.theta, trainer.anchor, trainer.variance, trainer.rows, one_row, WINDOW, terms)
        return torch.autograd.grad(loss.sum(), trainer.theta)[0]

    torch.testing.assert_close(gradient(1.0), gradient(0.0))  # a single row: its normalised weight is 1


def test_bootstrap_weights_average_to_one_over_training_rows():
    arch = Architecture(inputs=2, road=2, hidden=8)
    data = arrays(np.random.default_rng(0))
    trainer = Trainer(arch, data, members(arch, 3, train=(0, 1, 2), held_out=()), Settings(window=WINDOW, burn_in=BURN_IN, resample="trips"))  # fmt: skip
    weight = trainer.terms.trip_weight.numpy()
    known = np.isfinite(data.y)
    np.testing.assert_allclose(weight[:, data.trip[known]].mean(1), 1.0, rtol=1e-5)
    assert not np.allclose(weight[0], weight[1])


@pytest.mark.parametrize("head", ["t", "gaussian"])
def test_the_trip_effect_leaves_the_loss_and_moves_the_locations_gradient_as_written_out(head):
    """Location: d/dmu of sum log t((y - mu - effect * m) / s) with m the window's precision-weighted mean error."""
    rng = np.random.default_rng(3)
    arch = Architecture(inputs=2, road=2, hidden=8, head=head)
    y, target = torch.from_numpy(rng.normal(size=(2, 6, 3))), torch.from_numpy(rng.random((2, 6, 3)) < 0.7)
    target[0, :, 0] = False  # a window without targets
    mu = torch.from_numpy(rng.normal(size=(2, 6, 3))).requires_grad_()
    scale = torch.from_numpy(rng.uniform(0.3, 2, size=(2, 6, 3))).requires_grad_()
    nu = torch.tensor([3.5, 6.0], dtype=torch.float64, requires_grad=True)
    effect = torch.tensor([0.5, 0.8], dtype=torch.float64)
    out = Output(mu, scale, nu if head == "t" else None, None)
    plain = torch.where(target, negative_log_likelihood(arch, out, y), 0.0).sum()
    ours = torch.where(target, nll_apart_from_trip(arch, out, y, target, effect.view(-1, 1, 1)), 0.0).sum()
    assert float(ours.detach()) == pytest.approx(float(plain.detach()), rel=1e-12)
    others = (scale, nu) if head == "t" else (scale,)
    to_mu, *rest = torch.autograd.grad(ours, (mu, *others))
    for one, other in zip(rest, torch.autograd.grad(plain, others), strict=True):
        torch.testing.assert_close(one, other)

    def left(at):
        """Of each window the t's of what is left of the errors, from the definition."""
        s, total = scale.detach().numpy(), 0.0
        for m in range(2):
            for w in range(3):
                rows = target[m, :, w].numpy()
                error = (y.numpy() - at)[m, rows, w]
                mean = np.average(error, weights=s[m, rows, w] ** -2.0) if rows.any() else 0.0
                family = stats.t(float(nu[m].detach())) if head == "t" else stats.norm()
                z = (error - float(effect[m]) * mean) / s[m, rows, w]
                total -= (family.logpdf(z) - np.log(s[m, rows, w])).sum()
        return total

    at, step = mu.detach().numpy(), 1e-6
    for index in np.ndindex(at.shape):
        bump = np.zeros_like(at)
        bump[index] = step
        assert float(to_mu[index]) == pytest.approx((left(at + bump) - left(at - bump)) / (2 * step), abs=1e-6)


def test_without_a_trip_effect_nothing_changes():
    arch = Architecture(inputs=2, road=2, hidden=8)
    data, settings = arrays(np.random.default_rng(0)), Settings(window=WINDOW, burn_in=BURN_IN)
    assert Trainer(arch, data, members(arch, 2), settings).terms.trip_effect is None
    plan = [replace(m, trip_effect=effect) for m, effect in zip(members(arch, 2), (0.0, 0.5), strict=True)]
    mixed = Trainer(arch, data, plan, settings)
    plain = Trainer(arch, data, members(arch, 2), settings)
    mixed.epoch(), plain.epoch()
    torch.testing.assert_close(mixed.theta[0], plain.theta[0])
    assert not torch.allclose(mixed.theta[1], plain.theta[1])
