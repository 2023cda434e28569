"""A fitted ensemble on arrays: the compiled LSTM kernel and the heads, without torch.

The same equations as ``forward`` and ``heads``, which train; equal to them but for rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.network.architecture import SCALE_FLOOR, Architecture
from evband.network.lstm import Masks, State

Floats = NDArray[np.float32]
Weights = dict[str, Floats]  # [members, ...] each


@dataclass(frozen=True)
class Answer:
    """Location and scale of each row (t, Gaussian), or its quantiles, in standardised units."""

    mu: Floats  # [members, time, batch]; of a distilled network [2 members, ...]
    scale: Floats | None  # as mu
    quantiles: Floats | None  # [members, time, batch, levels], unsorted


class Network:
    """All members, to be run over stretches of time with the state carried on."""

    def __init__(self, arch: Architecture, theta: Floats) -> None:
        self.arch, self.weights = arch, arch.unpack(theta)
        self.layers = arch.lstm_layers(self.weights)

    def __call__(
        self,
        x: Floats,  # [time, batch, inputs]
        r: Floats,  # [time, batch, road]
        state: State | None = None,
        masks: Masks | None = None,
    ) -> tuple[Answer, State]:
        """What members say at every step, and the state to carry on from."""
        from evband.network.kernels import cpu

        h, state = cpu.run(x[None], self.layers, state, masks)  # [members, time, batch, hidden]
        members, time, batch, hidden = h.shape
        rows = h.reshape(members, time * batch, hidden)
        raw = np.empty((members, self.arch.outputs, time * batch), np.float32)
        raw[:] = self.weights["head_b"][..., None]
        _in_threads(rows, self.weights["head_w"], raw)
        road = np.zeros((members, 1, time * batch), np.float32)
        if self.arch.road:
            shared = np.broadcast_to(r.reshape(1, time * batch, -1), (members, time * batch, r.shape[-1]))
            _in_threads(shared, self.weights["road_w"][:, None], road)
        return _answer(self.arch, raw, road, (time, batch)), state

    def degrees_of_freedom(self) -> NDArray[np.float64] | None:
        """[members]; None for a head without."""
        return degrees_of_freedom(self.arch, self.weights)


def _in_threads(a: Floats, w: Floats, out: Floats) -> None:
    """out[members, outputs, rows] += w a' of each member."""
    from evband.network.kernels import _cpu_head, cpu

    a = a if a.strides[0] == 0 else np.ascontiguousarray(a)
    w = np.ascontiguousarray(w)
    cpu.in_threads(len(a), lambda m, _: _cpu_head.add_product(a[m], w[m], out[m]))


def _answer(arch: Architecture, raw: Floats, road: Floats, shape: tuple[int, int]) -> Answer:
    """From raw outputs [members, outputs, rows] and the road-load path [members, 1, rows]."""

    def steps(rows: Floats) -> Floats:
        return rows.reshape(len(rows), *shape)

    if arch.head == "quantile":
        quantiles = (raw + road).transpose(0, 2, 1).reshape(len(raw), *shape, -1)
        return Answer(quantiles[..., len(arch.levels) // 2], None, quantiles)
    mu, scale = raw[:, 0] + road[:, 0], softplus(raw[:, 1]) + np.float32(SCALE_FLOOR)
    if arch.head == "distilled":
        mu, scale = np.concatenate([mu - raw[:, 2], mu + raw[:, 2]]), np.concatenate([scale, scale])
    return Answer(steps(mu), steps(scale), None)


def softplus(x: NDArray[Any]) -> NDArray[Any]:
    """log(1 + exp(x)), without overflow."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def degrees_of_freedom(arch: Architecture, weights: Weights) -> NDArray[np.float64] | None:
    """One scalar per member: ``nu_min + softplus(nu_raw)``, or the fixed value; None for a head without."""
    members = len(weights["head_b"]) * arch.components
    if arch.head not in ("t", "distilled"):
        return None
    if arch.nu is not None:
        return np.full(members, float(arch.nu))
    return np.asarray(arch.nu_min + softplus(weights["nu_raw"].astype(np.float64)))


def as_members(arch: Architecture, weights: Weights) -> Weights:
    """A distilled network as two members of the Student-t head, the same to the last digit but for rounding.

    Its epistemic part is linear in the hidden state, so ``mean -+ epistemic`` are two linear heads on the same LSTM;
    whatever runs a Student-t ensemble (ticks, ONNX) can then run it.
    """
    if arch.head != "distilled":
        return weights
    pair = {name: np.concatenate([value, value]) for name, value in weights.items()}
    for name in ("head_w", "head_b"):
        location, scale, epistemic = np.moveaxis(weights[name], 1, 0)
        pair[name] = np.concatenate([np.stack([location + side * epistemic, scale], 1) for side in (-1, 1)])
    return pair
