"""A pass of all members: LSTM, head and road-load path together."""

from __future__ import annotations

from torch import Tensor

from evband.network.architecture import Architecture
from evband.network.heads import Output, apply_head
from evband.network.lstm import Masks, State, ensemble_lstm


def forward(
    arch: Architecture,
    theta: Tensor,  # [members, parameters]
    x: Tensor,  # [members | 1, time, batch, inputs]
    r: Tensor,  # [members | 1, time, batch, road]
    state: State | None = None,
    masks: Masks | None = None,
    backend: str = "auto",
) -> tuple[Output, State]:
    """Location and scale (or quantiles) at every step, and the state to carry on from."""
    weights = arch.unpack(theta)
    h, state = ensemble_lstm(x, arch.lstm_layers(weights), state, masks, backend)
    return apply_head(arch, weights, h, r), state
