"""The Triton kernels, run by Triton's interpreter on the CPU, against the reference in float64."""

import os

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is first imported

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from evband.network.lstm import LayerWeights, Masks, State, ensemble_lstm

REQUIRED = 1e-5


def worst_error(members, time, batch, inputs, hidden, depth, masked, shared, seed, resets=False):
    """Largest absolute error over largest absolute value, the worst of all outputs and gradients."""
    rng = torch.Generator().manual_seed(seed)

    def normal(*shape, scale=1.0):
        return scale * torch.randn(*shape, generator=rng)

    def mask(*shape):
        return (torch.rand(*shape, generator=rng) < 0.8) / 0.8

    widths = [inputs] + [hidden] * (depth - 1)
    leaves = [normal(1 if shared else members, time, batch, inputs)]
    leaves += [normal(depth, members, batch, hidden, scale=0.5) for _ in "hc"]
    for width in widths:
        leaves += [normal(members, 4 * hidden, n, scale=n**-0.5) for n in (width, hidden)]
        leaves += [normal(members, 4 * hidden, scale=0.3)]
    masks = [mask(members, batch, n) for n in [*widths, *[hidden] * (depth + 1)]] if masked else []
    carry = (torch.rand(members, time, batch, generator=rng) < 0.7).double() if resets else None
    tilts = [normal(members, time, batch, hidden), *[normal(depth, members, batch, hidden) for _ in "hc"]]

    def run(dtype, backend):
        own = [leaf.to(dtype, copy=True).requires_grad_() for leaf in leaves]
        kept = [m.to(dtype) for m in masks]
        layers = [LayerWeights(*own[3 + 3 * k : 6 + 3 * k]) for k in range(depth)]
        dropout = Masks(tuple(kept[:depth]), tuple(kept[depth:-1]), kept[-1]) if masked else None
        y, state = ensemble_lstm(
            own[0], layers, State(own[1], own[2]), dropout, backend, None if carry is None else carry.to(dtype)
        )
        outputs = [y, state.h, state.c]
        loss = sum((o * tilt.to(dtype)).sum() for o, tilt in zip(outputs, tilts, strict=True))
        return [o.detach() for o in outputs] + list(torch.autograd.grad(loss, own))

    pairs = zip(run(torch.float32, "cuda"), run(torch.float64, "reference"), strict=True)
    return max(float((a - e).abs().max() / e.abs().max()) for a, e in pairs)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(
    members=st.integers(1, 2),
    time=st.integers(1, 5),
    batch=st.integers(1, 18),
    inputs=st.sampled_from([1, 3, 20, 40]),
    hidden=st.sampled_from([8, 13, 16, 32, 40]),
    depth=st.integers(1, 2),
    masked=st.booleans(),
    shared=st.booleans(),
    resets=st.booleans(),
    seed=st.integers(0, 99),
)
def test_agrees_with_float64_on_random_shapes(**case):
    assert worst_error(**case) < REQUIRED


@pytest.mark.parametrize("masked", [False, True])
def test_states_are_reset_inside_windows(masked):
    assert worst_error(2, 19, 17, 3, 8, 2, masked=masked, shared=False, seed=5, resets=True) < REQUIRED


def test_weights_too_large_for_the_chip_are_streamed():
    assert worst_error(1, 3, 3, 5, 128, 2, masked=True, shared=True, seed=0) < REQUIRED


def test_default_state_is_zero_and_nothing_is_saved_without_gradients():
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(1, 4, 3, 2, generator=rng)
    layers = [LayerWeights(*(torch.randn(2, 32, *s, generator=rng) for s in ((2,), (8,), ())))]
    with torch.no_grad():
        y, state = ensemble_lstm(x, layers, backend="cuda")
        expected, expected_state = ensemble_lstm(x, layers, backend="reference")
    torch.testing.assert_close(y, expected)
    torch.testing.assert_close(state.c, expected_state.c)


def test_long_sequences_run_in_chunks_and_give_the_same_bits_twice():
    first, second = (worst_error(1, 35, 3, 3, 8, 2, masked=False, shared=False, seed=7) for _ in "ab")
    assert first == second < REQUIRED


def test_chunks_cover_time_once():
    from evband.network.kernels._wavefront import cut

    for time in (1, 7, 8, 17, 64, 1000):
        chunks = cut(time, 4)
        assert [t for first, stop in chunks for t in range(first, stop)] == list(range(time))
        assert len(chunks) <= 4


def test_student_t_kernel_agrees_with_torch_in_float64():
    from evband.network.kernels.student_t import student_t_nll

    rng = torch.Generator().manual_seed(3)
    mu, y = (torch.randn(4, 7, 190, generator=rng) for _ in "ab")
    scale = 0.05 + torch.rand(4, 7, 190, generator=rng)
    nu = torch.tensor([2.1, 3.0, 9.0, 300.0])
    tilt = torch.randn(4, 7, 190, generator=rng)

    def run(nll, dtype):
        leaves = [t.to(dtype, copy=True).requires_grad_() for t in (mu, scale, nu)]
        out = nll(*leaves, y.to(dtype))
        return [out.detach(), *torch.autograd.grad((out * tilt.to(dtype)).sum(), leaves)]

    def exact(mu, scale, nu, y):
        return -torch.distributions.StudentT(nu.view(-1, 1, 1), mu, scale).log_prob(y)

    for a, e in zip(run(student_t_nll, torch.float32), run(exact, torch.float64), strict=True):
        assert float((a - e).abs().max() / e.abs().max()) < 3e-6
