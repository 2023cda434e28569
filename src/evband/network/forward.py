"""A pass of all members: LSTM, head and road-load path together."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evband.network.apply import Tensors, apply_head
from evband.network.architecture import Architecture
from evband.network.heads import Output
from evband.network.lstm import Masks, State, ensemble_lstm
from evband.network.threads import cores_for_kernels


def forward(
    arch: Architecture,
    theta: Tensor,  # [members, parameters]
    x: Tensor,  # [members | 1, time, batch, inputs]
    r: Tensor,  # [members | 1, time, batch, road]
    state: State | None = None,
    masks: Masks | None = None,
    backend: str = "auto",
    carry: Tensor | None = None,  # [members, time, batch]: 0 where the state is reset before a step, else 1
) -> tuple[Output, State]:
    """Location and scale (or quantiles) at every step, and the state to carry on from."""
    weights = arch.unpack(theta)
    h, state = ensemble_lstm(x, arch.lstm_layers(weights), state, masks, backend, carry)
    return apply_head(arch, weights, h, r), state


class TorchNetwork:
    """As ``inference.Network``, with what training computes, on the weights' device."""

    def __init__(self, arch: Architecture, theta: Tensor) -> None:
        self.arch, self.theta = arch, theta.detach()

    @torch.no_grad()
    def __call__(
        self, x: NDArray[np.float32], r: NDArray[np.float32], state: State | None, masks: Masks | None
    ) -> tuple[Output, State]:
        held = None if masks is None else masks.map(self._tensor)
        state = None if state is None else State(state.h.contiguous(), state.c.contiguous())
        with cores_for_kernels():
            out, state = forward(self.arch, self.theta, self._tensor(x)[None], self._tensor(r)[None], state, held)
        scale, quantiles = (None if a is None else a.cpu().numpy() for a in (out.scale, out.quantiles))
        return Output(out.mu.cpu().numpy(), scale, None, quantiles), state

    def degrees_of_freedom(self) -> NDArray[np.float64] | None:
        nu = self.arch.degrees_of_freedom(self.arch.unpack(self.theta), Tensors)
        return None if nu is None else nu.double().cpu().numpy()

    def _tensor(self, array: Any) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self.theta.device)
