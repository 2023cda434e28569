"""A fitted ensemble on arrays: the compiled LSTM kernel and the heads, without torch.

The same equations as ``forward`` and ``heads``, which train; equal to them but for rounding.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.network.architecture import Architecture
from evband.network.heads import Output
from evband.network.lstm import Masks, State
from evband.network.standard import Standard

Floats = NDArray[np.float32]
Weights = dict[str, Floats]  # [members, ...] each


@dataclass(frozen=True)
class Arrays:
    """`heads.base.Numbers` of arrays."""

    raw: Floats  # [members, outputs, rows]
    path: Floats  # [members, 1, rows]
    shape: tuple[int, int]  # time, batch: how many rows

    @property
    def road(self) -> Floats:
        return self._steps(self.path[:, 0])

    def output(self, k: int) -> Floats:
        return self._steps(self.raw[:, k])

    def with_road(self) -> Floats:
        return (self.raw + self.path).transpose(0, 2, 1).reshape(len(self.raw), *self.shape, -1)

    def _steps(self, rows: Floats) -> Floats:
        return rows.reshape(len(rows), *self.shape)

    @staticmethod
    def softplus(x: NDArray[Any]) -> NDArray[Any]:
        return softplus(x)

    @staticmethod
    def full(like: NDArray[Any], value: float) -> NDArray[np.float64]:
        return np.full(like.shape, value)

    @staticmethod
    def join(parts: list[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(parts)


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
    ) -> tuple[Output, State]:
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
        return self.arch.distribution.apply(Arrays(raw, road, (time, batch))), state

    def degrees_of_freedom(self) -> NDArray[np.float64] | None:
        """[members]; None for a head without."""
        return degrees_of_freedom(self.arch, self.weights)


def _in_threads(a: Floats, w: Floats, out: Floats) -> None:
    """out[members, outputs, rows] += w a' of each member."""
    from evband.network.kernels import _cpu_head, cpu

    a = a if a.strides[0] == 0 else np.ascontiguousarray(a)
    w = np.ascontiguousarray(w)
    cpu.in_threads(len(a), lambda m, _: _cpu_head.add_product(a[m], w[m], out[m]))


def softplus(x: NDArray[Any]) -> NDArray[Any]:
    """log(1 + exp(x)), without overflow."""
    return np.asarray(np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))))


def degrees_of_freedom(arch: Architecture, weights: Mapping[str, NDArray[Any]]) -> NDArray[np.float64] | None:
    """One number per component, in float64; None for a head without."""
    wide = {name: np.asarray(weights[name], np.float64) for name in (*arch.distribution.extra, "head_b")}
    found: NDArray[np.float64] | None = arch.degrees_of_freedom(wide, Arrays)
    return found


def standard_of(arch: Architecture, weights: Mapping[str, NDArray[Any]]) -> Standard:
    """What the head makes of its extra parameters: the standard distribution of each member."""
    found: Standard = arch.distribution.standard(degrees_of_freedom(arch, weights), len(weights["head_b"]))
    return found
