"""Whole-trip prediction: equal to ticks with carried state, to any chunking, and to each trip alone."""

import numpy as np
import pytest
import torch

from evband.network import predict as module
from evband.network.anchors import draw, make_prior
from evband.network.architecture import Architecture
from evband.network.forward import forward
from evband.network.predict import predict
from evband.network.streams import DROPOUT, START, stream

LENGTHS = (40, 1, 77, 12)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    start = np.zeros(sum(LENGTHS), bool)
    start[np.cumsum([0, *LENGTHS[:-1]])] = True
    return rng.normal(size=(sum(LENGTHS), 3)).astype(np.float32), rng.normal(size=(sum(LENGTHS), 2)).astype(np.float32), start  # fmt: skip


def network(head="t"):
    arch = Architecture(inputs=3, road=2, layers=2, hidden=8, head=head)
    return arch, draw(make_prior(arch), [0, 1, 2], 0, START)


@pytest.mark.parametrize("weights", [torch.Tensor.numpy, torch.Tensor.detach], ids=["without torch", "torch"])
def test_a_whole_trip_equals_its_ticks(rows, weights):
    arch, theta = network()
    x, r, start = rows
    whole = predict(arch, weights(theta), x, r, start)
    state = None
    for t in range(len(x)):
        state = None if start[t] else state
        with torch.no_grad():
            out, state = forward(
                arch,
                theta,
                torch.from_numpy(x[None, t : t + 1, None]),
                torch.from_numpy(r[None, t : t + 1, None]),
                state,
            )
        np.testing.assert_allclose(whole.mu[:, t], out.mu[:, 0, 0], atol=1e-5)
        np.testing.assert_allclose(whole.scale[:, t], out.scale[:, 0, 0], atol=1e-5)


@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_chunks_change_nothing(rows, monkeypatch, dropout):
    arch, theta = network()

    def said():
        return predict(arch, theta, *rows, dropout, [stream(0, m, DROPOUT, 0) for m in range(3)])

    whole = said()
    monkeypatch.setattr(module, "CHUNK_ROWS", 17)
    np.testing.assert_allclose(said().mu, whole.mu, atol=1e-5)


def test_trips_do_not_touch_each_other(rows):
    arch, theta = network()
    x, r, start = rows
    together = predict(arch, theta, x, r, start)
    for begin, length in zip(np.flatnonzero(start), LENGTHS, strict=True):
        here = slice(begin, begin + length)
        alone = predict(arch, theta, x[here], r[here], start[here])
        np.testing.assert_allclose(together.mu[:, here], alone.mu, atol=1e-5)


@pytest.mark.parametrize("head", ["t", "gaussian", "quantile"])
def test_without_torch_it_is_the_same_but_for_rounding(rows, head):
    arch, theta = network(head)
    with_torch, without = predict(arch, theta, *rows), predict(arch, theta.numpy(), *rows)
    if head == "t":
        np.testing.assert_allclose(without.standard.nu, with_torch.standard.nu, rtol=1e-6)
    for name in ("mu", "scale", "quantiles"):
        a, b = getattr(with_torch, name), getattr(without, name)
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)


def test_quantiles_are_sorted_and_crossing_is_reported(rows):
    arch, theta = network("quantile")
    said = predict(arch, theta, *rows)
    assert said.quantiles.shape == (3, 19, sum(LENGTHS))
    assert (np.diff(said.quantiles, axis=1) >= 0).all()
    assert said.crossing > 0.9  # an untrained network's quantiles are in no order
    np.testing.assert_array_equal(said.mu, said.quantiles[:, 9])
