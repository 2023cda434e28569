"""Shape and weights of an ensemble as a tick reads them."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from evband.network.architecture import Architecture
from evband.network.ensemble import Ensemble
from evband.network.kernels import pack
from evband.network.kernels.vector import LANES


class Layout(NamedTuple):
    """How an ensemble's weights and a vehicle's state lie in memory."""

    shape: pack.Shape
    state: int  # numbers of one vehicle's state: h and c of every layer of every member
    pitch: int  # numbers from one vehicle's state to the next

    @classmethod
    def of(cls, arch: Architecture, members: int) -> Self:
        """The same layer of neighbours falls side by side in a cache's sets, where a multiple of the page size would make all
        vehicles evict each other."""
        shape, page = pack.Shape.of(arch.inputs, arch.hidden, arch.layers), 1024
        state = members * arch.layers * 2 * shape.units
        return cls(shape, state, state + (2 * shape.units - state) % page)


def zeros(*shape: int) -> NDArray[np.float32]:
    """Zeros that start at a cache line, so that no vector straddles two."""
    out = pack.aligned(*shape)
    out[:] = 0.0
    return out


def packed(ensemble: Ensemble, shape: pack.Shape, reduced: bool) -> tuple[NDArray, NDArray, NDArray]:
    """Flat weights [members, ``pack``'s layout], biases [members, layers, 4 units] and head [members, outputs, units].

    Reduced weights are float16, as bits in uint16: Numba has no such number on the CPU, and the kernel widens them.
    """
    params, members, layers = ensemble.params, ensemble.members, shape.layers
    weights, unused = zeros(members, shape.packed), np.empty(shape.packed_back, np.float32)
    biases, head = zeros(members, layers, shape.gates), zeros(members, ensemble.arch.outputs, shape.units)
    for m in range(members):
        for k in range(layers):
            own = (np.ascontiguousarray(params[f"{name}.{k}"][m], np.float32) for name in ("w_ih", "w_hh", "bias"))
            pack.pack(tuple(shape), k, *own, weights[m], unused)
            begin, end = (pack.forward_weights_at.py_func(shape, layer) for layer in (k, k + 1))
            biases[m, k] = weights[m, begin:end].reshape(shape.units // LANES, -1)[:, : 4 * LANES].ravel()
    head[:, :, : shape.hidden] = params["head_w"]
    if not reduced:
        return weights.ravel(), biases.ravel(), head.ravel()
    halves = pack.aligned(-(-weights.size // 2)).view(np.float16)[: weights.size]
    halves[:] = weights.ravel()
    return halves.view(np.uint16), biases.ravel(), head.ravel()
