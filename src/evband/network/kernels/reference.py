"""The plain reference: a loop over layers and steps, as the equations read. Any dtype, any device."""

from __future__ import annotations

import torch
from torch import Tensor

from evband.network.lstm import LayerWeights, Masks, State


def zero_state(x: Tensor, layers: list[LayerWeights]) -> State:
    """The state a drive begins with."""
    members, _, hidden = layers[0].w_hh.shape
    zeros = x.new_zeros(len(layers), members, x.shape[2], hidden)
    return State(zeros, zeros)


def run(
    x: Tensor, layers: list[LayerWeights], state: State | None, masks: Masks | None, carry: Tensor | None = None
) -> tuple[Tensor, State]:
    state = state or zero_state(x, layers)
    members = layers[0].w_hh.shape[0]
    y = x.expand(members, -1, -1, -1)  # [members, time, batch, inputs]
    hs, cs = [], []
    for k, layer in enumerate(layers):
        if masks is not None:
            y = y * masks.inputs[k].unsqueeze(1)
        recurrent = None if masks is None else masks.recurrent[k]
        y, h, c = _layer(y, layer, state.h[k], state.c[k], recurrent, carry)
        hs.append(h)
        cs.append(c)
    if masks is not None:
        y = y * masks.output.unsqueeze(1)
    return y, State(torch.stack(hs), torch.stack(cs))


def _layer(
    x: Tensor, layer: LayerWeights, h: Tensor, c: Tensor, recurrent: Tensor | None, carry: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    members, time, batch, inputs = x.shape
    flat = x.reshape(members, time * batch, inputs)
    drive = torch.baddbmm(layer.bias.unsqueeze(1), flat, layer.w_ih.transpose(1, 2)).view(members, time, batch, -1)
    w_hh = layer.w_hh.transpose(1, 2)
    steps = []
    for t, now in enumerate(
        drive.unbind(1)
    ):  # at once: the gradient of drive[:, t] would be as large as drive, for every t
        if carry is not None:
            h, c = (s * carry[:, t].unsqueeze(-1) for s in (h, c))
        past = h if recurrent is None else h * recurrent
        i, f, g, o = torch.baddbmm(now, past, w_hh).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        steps.append(h)
    return torch.stack(steps, dim=1), h, c
