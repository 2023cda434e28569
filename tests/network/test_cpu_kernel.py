"""The CPU kernel against the reference in float64, and its promises: same bits on any threads and beside any members."""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from evband.network import kernels
from evband.network.kernels import cpu, cpu_autograd, reference
from evband.network.lstm import LayerWeights, Masks, State, ensemble_lstm


@dataclass(frozen=True)
class Case:
    members: int = 2
    steps: int = 7
    batch: int = 5
    features: int = 3
    hidden: int = 16
    layers: int = 2
    masked: bool = False
    shared: bool = True
    resets: bool = False

    def tensors(self, seed: int = 0) -> "Tensors":
        torch.manual_seed(seed)
        m, b, h, n = self.members, self.batch, self.hidden, self.layers
        widths = [self.features] + [h] * (n - 1)

        def normal(*shape: int, scale: float = 1.0) -> Tensor:
            return scale * torch.randn(shape, dtype=torch.float64)

        def mask(width: int) -> Tensor:
            return (torch.rand(m, b, width, dtype=torch.float64) < 0.7) / 0.7

        layers = [
            (normal(m, 4 * h, w, scale=w**-0.5), normal(m, 4 * h, h, scale=h**-0.5), normal(m, 4 * h, scale=0.3))
            for w in widths
        ]
        masks = None
        if self.masked:
            masks = (tuple(mask(w) for w in widths), tuple(mask(h) for _ in widths), mask(h))
        return Tensors(
            x=normal(1 if self.shared else m, self.steps, b, self.features),
            layers=layers,
            state=(normal(n, m, b, h), normal(n, m, b, h)),
            masks=masks,
            weights=(normal(m, self.steps, b, h), normal(n, m, b, h), normal(n, m, b, h)),
            carry=(torch.rand(m, self.steps, b) < 0.8).double() if self.resets else None,
        )


@dataclass(frozen=True)
class Tensors:
    x: Tensor
    layers: list[tuple[Tensor, Tensor, Tensor]]
    state: tuple[Tensor, Tensor]
    masks: tuple[tuple[Tensor, ...], tuple[Tensor, ...], Tensor] | None
    weights: tuple[Tensor, Tensor, Tensor]  # of y, h and c in the loss
    carry: Tensor | None = None

    def member(self, m: int) -> "Tensors":
        """The same numbers with member m alone."""
        masks = self.masks and tuple([a[m : m + 1] for a in part] for part in self.masks[:2])
        return Tensors(
            self.x if len(self.x) == 1 else self.x[m : m + 1],
            [tuple(w[m : m + 1] for w in layer) for layer in self.layers],
            tuple(s[:, m : m + 1] for s in self.state),
            masks and (*masks, self.masks[2][m : m + 1]),
            (self.weights[0][m : m + 1], self.weights[1][:, m : m + 1], self.weights[2][:, m : m + 1]),
            None if self.carry is None else self.carry[m : m + 1],
        )


def outputs_and_gradients(run: Callable, given: Tensors, dtype: torch.dtype) -> dict[str, Tensor]:
    def leaf(tensor: Tensor) -> Tensor:
        return tensor.to(dtype).clone().requires_grad_()

    x, state = leaf(given.x), State(*map(leaf, given.state))
    layers = [LayerWeights(*map(leaf, layer)) for layer in given.layers]
    masks = None
    if given.masks is not None:
        inputs, recurrent, output = given.masks
        masks = Masks(tuple(a.to(dtype) for a in inputs), tuple(a.to(dtype) for a in recurrent), output.to(dtype))
    y, end = run(x, layers, state, masks, None if given.carry is None else given.carry.to(dtype))
    loss = sum((a * b.to(dtype)).sum() for a, b in zip((y, end.h, end.c), given.weights, strict=True))
    loss.backward()
    found = {"y": y, "h": end.h, "c": end.c, "d x": x.grad, "d h": state.h.grad, "d c": state.c.grad}
    for k, layer in enumerate(layers):
        found |= {f"d w_ih {k}": layer.w_ih.grad, f"d w_hh {k}": layer.w_hh.grad, f"d bias {k}": layer.bias.grad}
    return {name: tensor.detach() for name, tensor in found.items()}


def worst_error(found: dict[str, Tensor], truth: dict[str, Tensor]) -> float:
    """Largest absolute error over the largest absolute value, tensor by tensor."""
    return max(float((found[name] - truth[name]).abs().max() / truth[name].abs().max()) for name in truth)


shapes = st.builds(
    Case,
    members=st.integers(1, 3),
    steps=st.integers(1, 20),
    batch=st.integers(1, 40),
    features=st.integers(1, 20),
    hidden=st.integers(8, 128),
    layers=st.integers(1, 3),
    masked=st.booleans(),
    shared=st.booleans(),
    resets=st.booleans(),
)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(shapes)
@example(Case(members=1, steps=64, batch=64, features=5, hidden=32, layers=4))
@example(Case(members=1, steps=3, batch=33, features=40, hidden=8, layers=8, masked=True, shared=False))
@example(Case(members=2, steps=30, batch=35, features=5, hidden=20, layers=2, resets=True))
@example(Case(members=1, steps=9, batch=9, features=5, hidden=16, layers=2, masked=True, resets=True))
@example(Case(members=1, steps=200, batch=1, features=1, hidden=20, layers=1, masked=True))
def test_agrees_with_the_reference_in_float64(case: Case):
    tensors = case.tensors()
    truth = outputs_and_gradients(reference.run, tensors, torch.float64)
    assert worst_error(outputs_and_gradients(cpu_autograd.run, tensors, torch.float32), truth) < 1e-5


@pytest.mark.parametrize("masked", [False, True])
def test_same_bits_on_any_number_of_threads(masked: bool):
    tensors = Case(members=3, batch=45, hidden=20, masked=masked).tensors()
    threads = torch.get_num_threads()
    found = []
    try:
        for count in (1, 2, 5):
            torch.set_num_threads(count)
            found.append(outputs_and_gradients(cpu_autograd.run, tensors, torch.float32))
    finally:
        torch.set_num_threads(threads)
    for other in found[1:]:
        assert all(torch.equal(found[0][name], other[name]) for name in other)


@pytest.mark.parametrize("masked", [False, True])
def test_a_member_does_not_feel_the_others(masked: bool):
    tensors = Case(members=4, batch=37, masked=masked, shared=False).tensors()
    together = outputs_and_gradients(cpu_autograd.run, tensors, torch.float32)
    for m in range(4):
        alone = outputs_and_gradients(cpu_autograd.run, tensors.member(m), torch.float32)
        for name, tensor in alone.items():
            axis = 1 if name in {"h", "c", "d h", "d c"} else 0
            assert torch.equal(tensor, together[name].narrow(axis, m, 1)), name


def float_layers(case: Case, requires_grad: bool = True) -> list[LayerWeights]:
    return [LayerWeights(*(w.float().requires_grad_(requires_grad) for w in la)) for la in case.tensors().layers]


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_reset_inside_a_window_begins_a_drive_anew(backend: str):
    """Two drives end to end in one window are the two alone: outputs, final state, and gradients of the weights."""
    case = Case(members=2, steps=2 * cpu.CHUNK + 9, batch=3)
    x, cut = case.tensors().x.float(), cpu.CHUNK + 3
    carry = torch.ones(2, case.steps, case.batch)
    carry[:, [0, cut]] = 0.0
    found = []
    for parts in ([x], [x[:, :cut], x[:, cut:]]):
        layers = float_layers(case)
        runs = [ensemble_lstm(part, layers, backend=backend, carry=carry if part is x else None) for part in parts]
        y = torch.cat([run[0] for run in runs], dim=1)
        gradients = torch.autograd.grad(y.square().sum(), [layers[0].w_hh, layers[1].w_ih, layers[0].bias])
        found.append([y, runs[-1][1].h, runs[-1][1].c, *gradients])
        with torch.no_grad():
            found[-1].append(ensemble_lstm(x, layers, backend=backend, carry=carry)[0])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4 if one.ndim < 4 else 1e-6)


def test_without_gradients_long_sequences_need_little_memory(monkeypatch: pytest.MonkeyPatch):
    case = Case(steps=3 * cpu.CHUNK + 5, batch=3)
    x, layers = case.tensors().x.float(), float_layers(case)
    kept, end = cpu_autograd.run(x, layers, None, None)
    sizes = []
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)  # every thread has working memory of its own
    aligned = cpu.aligned
    monkeypatch.setattr(cpu, "_scratch", cpu._Scratch())
    monkeypatch.setattr(cpu, "aligned", lambda *shape: sizes.append(shape) or aligned(*shape))
    monkeypatch.setattr(cpu, "_free", [])
    with torch.no_grad():
        y, last = cpu_autograd.run(x, layers, None, None)
        first = sum(size for (size,) in sizes)
        monkeypatch.setattr(cpu, "_scratch", cpu._Scratch())
        sizes.clear()
        cpu_autograd.run(x.repeat(1, 10, 1, 1), layers, None, None)
    assert sum(size for (size,) in sizes) <= first
    torch.testing.assert_close(y, kept, rtol=0, atol=1e-6)
    torch.testing.assert_close(last.c, end.c, rtol=0, atol=1e-6)


def test_graphs_may_overlap_and_be_walked_twice():
    case = Case()
    x, layers = case.tensors().x.float(), float_layers(case)
    weight = layers[0].w_ih
    first, _ = cpu_autograd.run(x, layers, None, None)
    second, _ = cpu_autograd.run(2 * x, layers, None, None)
    (later,) = torch.autograd.grad(second.sum(), weight)
    (once,) = torch.autograd.grad(first.sum(), weight, retain_graph=True)
    (twice,) = torch.autograd.grad(first.sum(), weight)
    assert torch.equal(once, twice)
    assert not torch.equal(once, later)


def test_memory_goes_on_to_the_next_step_once_backward_is_through(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(cpu, "_free", [])
    case = Case()
    y, _ = cpu_autograd.run(case.tensors().x.float(), float_layers(case), None, None)
    assert not cpu._free
    y.sum().backward()  # y, and with it the graph, still lives
    assert len(cpu._free) == 1


def test_may_be_called_from_many_threads_at_once():
    case = Case(steps=20, batch=40)
    x, layers = case.tensors().x.float(), float_layers(case, requires_grad=False)
    truth, _ = cpu_autograd.run(x, layers, None, None)
    with ThreadPoolExecutor(4) as pool:
        for y, _ in pool.map(lambda _: cpu_autograd.run(x, layers, None, None), range(20)):
            assert torch.equal(y, truth)


def test_other_dtypes_are_refused_by_name_and_left_to_the_reference():
    given = Case().tensors()
    layers = [LayerWeights(*layer) for layer in given.layers]
    with pytest.raises(ValueError, match="float32"):
        ensemble_lstm(given.x, layers, backend="cpu")
    assert ensemble_lstm(given.x, layers)[0].dtype == torch.float64


def test_chosen_where_numba_is_installed(monkeypatch: pytest.MonkeyPatch):
    x = torch.zeros(1, 2, 1, 1)
    assert kernels.choose("auto", x, []) is cpu_autograd.run
    monkeypatch.setattr(kernels, "installed", lambda name: False)
    assert kernels.choose("auto", x, []) is reference.run


def test_a_second_process_compiles_nothing():
    case = Case(members=1, steps=2, batch=1, hidden=8, layers=1)
    outputs_and_gradients(cpu_autograd.run, case.tensors(), torch.float32)
    script = """
import torch
from evband.network.lstm import LayerWeights, ensemble_lstm
layer = LayerWeights(torch.zeros(1, 32, 3, requires_grad=True), torch.zeros(1, 32, 8), torch.zeros(1, 32))
ensemble_lstm(torch.zeros(1, 2, 1, 3), [layer], backend="cpu")[0].sum().backward()
from evband.network.kernels import _cpu_tiles
for tile in (_cpu_tiles.forward_tile, _cpu_tiles.backward_tile):
    assert tile.stats.cache_hits and not tile.stats.cache_misses
"""
    subprocess.run([sys.executable, "-c", script], check=True)
