"""Weights in the order in which a tick reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evband.errors import SettingsError
from evband.network.tick.simd import LANES

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
        return -(-self.hidden // LANES) * LANES

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


def aligned(count: int, dtype: type[np.generic]) -> NDArray:
    """Zeros that start at a cache line, so that no vector straddles two."""
    size = np.dtype(dtype).itemsize
    room = np.zeros(count + 64 // size, dtype)
    start = -room.ctypes.data % 64 // size
    return room[start : start + count]


def pack(params: Params, sizes: Sizes, dtype: type[np.floating]) -> tuple[NDArray, NDArray, NDArray]:
    """Flat weights [members, layer, block, hidden + inputs, 4, LANES], biases [members, layer, block, 4, LANES] and head
    [members, outputs, padded]; rows of the gates i, f, o halved, hidden units padded with zeros.
    """
    m, blocks = sizes.members, sizes.padded // LANES
    half = np.array([0.5, 0.5, 1.0, 0.5], np.float32)[None, :, None, None]
    weights, biases = [], []
    for k in range(sizes.layers):
        columns = np.concatenate([params[f"w_hh.{k}"], params[f"w_ih.{k}"], params[f"bias.{k}"][..., None]], axis=2)
        gates = np.zeros((m, 4, sizes.padded, columns.shape[2]), np.float32)
        gates[:, :, : sizes.hidden] = columns.reshape(m, 4, sizes.hidden, -1) * half
        gates = gates.reshape(m, 4, blocks, LANES, -1).transpose(0, 2, 4, 1, 3)  # [members, block, column, 4, LANES]
        weights.append(gates[:, :, :-1].reshape(m, -1))
        biases.append(gates[:, :, -1].reshape(m, -1))
    head = np.zeros((m, sizes.outputs, sizes.padded), np.float32)
    head[:, :, : sizes.hidden] = params["head_w"]
    return _flat(np.concatenate(weights, 1).astype(dtype)), _flat(np.concatenate(biases, 1)), _flat(head)


def _flat(array: NDArray) -> NDArray:
    out = aligned(array.size, array.dtype.type)
    out[:] = array.ravel()
    return out


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
