"""The CPU kernel behind PyTorch's autograd: tensors in, tensors out, the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evband.network.kernels.cpu import Plan
from evband.network.kernels.reference import zero_state
from evband.network.lstm import LayerWeights, Masks, State


def run(
    x: Tensor, layers: list[LayerWeights], state: State | None, masks: Masks | None, carry: Tensor | None = None
) -> tuple[Tensor, State]:
    """As ``reference.run``, for float32 on the CPU."""
    state = state or zero_state(x, layers)
    weights = [tensor for layer in layers for tensor in (layer.w_ih, layer.w_hh, layer.bias)]
    tensors = (x, state.h, state.c, *weights)
    if any(tensor.dtype != torch.float32 or tensor.device.type != "cpu" for tensor in tensors):
        raise ValueError("the CPU kernel takes float32 tensors on the CPU; choose backend 'reference' for others")
    held = None if masks is None else masks.map(_array)
    resets = None if carry is None else _array(carry.expand(len(weights[1]), -1, -1))
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        y, h, c = _EnsembleLSTM.apply(held, resets, *tensors)  # type: ignore[no-untyped-call]
    else:
        arrays = [_array(tensor) for tensor in tensors]
        out, _ = Plan(arrays[0], arrays[3:], held, keep=False, x_gradient=False, carry=resets).forward(*arrays)
        y, h, c = map(torch.from_numpy, out)
    return y, State(h, c)


class _EnsembleLSTM(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, masks: Masks | None, carry: NDArray[np.float32] | None, *tensors: Tensor) -> Any:
        x, h0, c0, *weights = map(_array, tensors)
        ctx.plan = Plan(x, weights, masks, keep=True, x_gradient=ctx.needs_input_grad[2], carry=carry)
        out, block = ctx.plan.forward(x, h0, c0, *weights)
        ctx.save_for_backward(tensors[0], torch.from_numpy(block))
        return tuple(map(torch.from_numpy, out))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *d: Tensor) -> Any:
        x, block = ctx.saved_tensors
        dx, dh0, dc0, weights = ctx.plan.backward(block.numpy(), _array(x), *map(_array, d))
        gradients = (dx, dh0, dc0, *weights)
        return None, None, *(None if array is None else torch.from_numpy(array) for array in gradients)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().contiguous().numpy()
    return array
