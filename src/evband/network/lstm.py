"""The ensemble LSTM: every member in one set of stacked parameters and one program.

    i, f, g, o = split(x W_ih' + h W_hh' + b);  c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)

Tensors in training, NumPy arrays where a fitted model predicts (``kernels.cpu``). Gate order is PyTorch's (input, forget, cell, output), with one bias per gate. Member m equals ``torch.nn.LSTM`` with
the same weights. ``ensemble_lstm`` is the one door: kernels for CPU and GPU stand behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class LayerWeights:
    """One LSTM layer of all members."""

    w_ih: Any  # [members, 4 hidden, inputs]
    w_hh: Any  # [members, 4 hidden, hidden]
    bias: Any  # [members, 4 hidden]


@dataclass(frozen=True)
class Masks:
    """Locked (variational) dropout masks, already divided by the keep rate, held over all steps of a window."""

    inputs: tuple[Any, ...]  # a layer each: [members, batch, inputs of that layer], on what enters the layer
    recurrent: tuple[Any, ...]  # a layer each: [members, batch, hidden], on h before it meets w_hh
    output: Any  # [members, batch, hidden], on what leaves the last layer

    def map(self, change: Callable[[Any], Any]) -> Masks:
        """The same masks as other arrays, or on another device."""
        return Masks(tuple(map(change, self.inputs)), tuple(map(change, self.recurrent)), change(self.output))


@dataclass(frozen=True)
class State:
    """Hidden and cell state of every layer."""

    h: Any  # [layers, members, batch, hidden]
    c: Any  # [layers, members, batch, hidden]


def ensemble_lstm(
    x: Tensor,  # [members, time, batch, inputs], or [1, time, batch, inputs] shared by all members
    layers: list[LayerWeights],
    state: State | None = None,  # zeros by default
    masks: Masks | None = None,
    backend: str = "auto",  # auto | reference | cpu | cuda
    carry: Tensor | None = None,  # [members, time, batch]: 0 where the state is reset before a step, else 1
) -> tuple[Tensor, State]:  # ([members, time, batch, hidden], final state)
    """Run all members over all windows; differentiable in x, the weights and the initial state."""
    from evband.network.kernels import choose

    return choose(backend, x, layers)(x, layers, state, masks, carry)
