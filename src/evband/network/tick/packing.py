"""Shape and weights of an ensemble as a tick reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evband.errors import SettingsError
from evband.network.kernels import pack
from evband.network.kernels.vector import LANES

Params = Mapping[str, NDArray]


@dataclass(frozen=True)
class Sizes:
    """Shape of the ensemble, read off its parameters."""

    members: int
    layers: int
    features: int
    hidden: int
    outputs: int
    road: int

    @property
    def padded(self) -> int:
        """Hidden units up to whole vectors; the extra ones have no weights and stay at zero."""
        return pack.up(self.hidden, LANES)

    @property
    def state(self) -> int:
        """Numbers of one vehicle's state: h and c of every layer of every member."""
        return self.members * self.layers * 2 * self.padded

    @property
    def pitch(self) -> int:
        """Numbers from one vehicle's state to the next: the same layer of neighbours falls side by side in a cache's
        sets, where a multiple of the page size would make all vehicles evict each other.
        """
        page = 1024
        return self.state + (2 * self.padded - self.state) % page

    @classmethod
    def of(cls, params: Params) -> Sizes:
        layers = sum(name.startswith("w_hh.") for name in params)
        if not layers or "head_w" not in params:
            raise SettingsError("The parameters hold no LSTM layer or no head; give those of a fitted model.")
        members, outputs, hidden = params["head_w"].shape
        road = params["road_w"].shape[1] if "road_w" in params else 0
        sizes = cls(members, layers, params["w_ih.0"].shape[2], hidden, outputs, road)
        for name, shape in sizes.shapes().items():
            if name not in params or params[name].shape != shape:
                found = params[name].shape if name in params else "missing"
                raise SettingsError(
                    f"Parameter {name} should have shape {shape} but is {found}; give those of one model."
                )
        return sizes

    def shapes(self) -> dict[str, tuple[int, ...]]:
        m, h = self.members, self.hidden
        shapes: dict[str, tuple[int, ...]] = {"head_w": (m, self.outputs, h), "head_b": (m, self.outputs)}
        for k in range(self.layers):
            shapes[f"w_ih.{k}"] = (m, 4 * h, h if k else self.features)
            shapes[f"w_hh.{k}"] = (m, 4 * h, h)
            shapes[f"bias.{k}"] = (m, 4 * h)
        return shapes


def zeros(*shape: int) -> NDArray[np.float32]:
    """Zeros that start at a cache line, so that no vector straddles two."""
    out = pack.aligned(*shape)
    out[:] = 0.0
    return out


def packed(params: Params, sizes: Sizes, reduced: bool) -> tuple[NDArray, NDArray, NDArray]:
    """Flat weights [members, ``pack``'s layout], biases [members, layers, 4 padded] and head [members, outputs, padded].

    Reduced weights are float16, as bits in uint16: Numba has no such number on the CPU, and the kernel widens them.
    """
    shape = pack.Shape.of(sizes.features, sizes.hidden, sizes.layers)
    weights, unused = zeros(sizes.members, shape.packed), np.empty(shape.packed_back, np.float32)
    biases, head = zeros(sizes.members, sizes.layers, shape.gates), zeros(sizes.members, sizes.outputs, shape.units)
    for m in range(sizes.members):
        for k in range(sizes.layers):
            own = (np.ascontiguousarray(params[f"{name}.{k}"][m], np.float32) for name in ("w_ih", "w_hh", "bias"))
            pack.pack(tuple(shape), k, *own, weights[m], unused)
            layer = weights[
                m, pack.forward_weights_at.py_func(shape, k) : pack.forward_weights_at.py_func(shape, k + 1)
            ]
            biases[m, k] = layer.reshape(shape.units // LANES, -1)[:, : 4 * LANES].ravel()
    head[:, :, : sizes.hidden] = params["head_w"]
    if not reduced:
        return weights.ravel(), biases.ravel(), head.ravel()
    halves = pack.aligned(-(-weights.size // 2)).view(np.float16)[: weights.size]
    halves[:] = weights.ravel()
    return halves.view(np.uint16), biases.ravel(), head.ravel()


def fold_masks(
    params: Params,
    inputs: Sequence[NDArray],  # a layer each: [members, inputs of that layer]
    recurrent: Sequence[NDArray],  # a layer each: [members, hidden]
    output: NDArray,  # [members, hidden]
) -> dict[str, NDArray]:
    """Parameters with locked dropout masks multiplied in: a mask held for a whole trip is a scaling of columns."""
    folded = dict(params)
    for k, (enter, past) in enumerate(zip(inputs, recurrent, strict=True)):
        folded[f"w_ih.{k}"] = params[f"w_ih.{k}"] * enter[:, None, :]
        folded[f"w_hh.{k}"] = params[f"w_hh.{k}"] * past[:, None, :]
    folded["head_w"] = params["head_w"] * output[:, None, :]
    return folded
