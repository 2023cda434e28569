"""What a member is made of, and where each of its weights lies in one flat row of parameters.

All members are one tensor ``theta [members, parameters]``: the optimiser, the per-member gradient norm, the anchors
and the checkpoint each see that one tensor, while the network sees named views of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from math import prod
from typing import TYPE_CHECKING, Any, overload

from evband.network.heads import HEADS, Head
from evband.network.heads.quantile import LEVELS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

    from evband.network.lstm import LayerWeights


LAYERS, HIDDEN = (1, 8), (8, 128)  # fewest and most, units per layer


@dataclass(frozen=True)
class Architecture:
    """Shape of one member: an LSTM stack, a head per time step, and a linear road-load path to the location."""

    inputs: int
    road: int  # road-load features; 0 = no such path
    layers: int = 1
    hidden: int = 32
    head: str = "t"
    nu_min: float = 3.0
    nu: float | None = None  # fixed degrees of freedom; None = learned
    levels: tuple[float, ...] = LEVELS

    def __post_init__(self) -> None:
        if self.head not in HEADS:
            raise ValueError(f"head {self.head!r} is not one of {', '.join(HEADS)}")
        for name, number, (least, most) in (("layers", self.layers, LAYERS), ("hidden", self.hidden, HIDDEN)):
            if not least <= number <= most:
                raise ValueError(f"{name} is {number}; choose {least} to {most}")
        if self.nu_min <= 2 or (self.nu is not None and self.nu <= 2):
            raise ValueError("degrees of freedom at or under 2 have no variance; choose nu_min and nu above 2")
        if self.distribution.fixed_nu and self.nu is None:
            raise ValueError(f"a {self.head} network has the degrees of freedom that it was given; set nu")

    @property
    def distribution(self) -> Head:
        """The object of its head."""
        return HEADS[self.head]

    @property
    def outputs(self) -> int:
        return self.distribution.outputs(self.levels)

    @property
    def components(self) -> int:
        """That one network adds to the mixture."""
        return self.distribution.components

    @cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Name and shape of each block of weights of one member, in the order they lie in theta."""
        shapes: dict[str, tuple[int, ...]] = {}
        for k in range(self.layers):
            shapes[f"w_ih.{k}"] = (4 * self.hidden, self.inputs if k == 0 else self.hidden)
            shapes[f"w_hh.{k}"] = (4 * self.hidden, self.hidden)
            shapes[f"bias.{k}"] = (4 * self.hidden,)
        shapes["head_w"] = (self.outputs, self.hidden)
        shapes["head_b"] = (self.outputs,)
        shapes |= dict.fromkeys(self.distribution.extra, ())
        if self.road:
            shapes["road_w"] = (self.road,)
        return shapes

    @cached_property
    def slices(self) -> dict[str, slice]:
        slices, at = {}, 0
        for name, shape in self.shapes.items():
            slices[name] = slice(at, at + prod(shape))
            at += prod(shape)
        return slices

    @property
    def size(self) -> int:
        """Parameters of one member."""
        return sum(prod(shape) for shape in self.shapes.values())

    @overload
    def unpack(self, theta: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]: ...
    @overload
    def unpack(self, theta: Tensor) -> dict[str, Tensor]: ...
    def unpack(self, theta: Any) -> dict[str, Any]:
        """Named views ``[members, ...]`` of ``theta [members, parameters]``; one split, so that its backward is one join."""
        sizes = [prod(shape) for shape in self.shapes.values()]
        if hasattr(theta, "split"):
            parts = theta.split(sizes, dim=1)
        else:
            from numpy import split

            parts = split(theta, list(accumulate(sizes))[:-1], axis=1)
        return {
            name: part.reshape(theta.shape[0], *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def degrees_of_freedom(self, weights: dict[str, Any], numbers: Any) -> Any:
        """One per component, of tensors or arrays (`heads.base.Numbers`); None for a head without."""
        return self.distribution.degrees_of_freedom(weights, self.nu_min, self.nu, numbers)

    def lstm_layers(self, weights: dict[str, Any]) -> list[LayerWeights]:
        from evband.network.lstm import LayerWeights

        return [
            LayerWeights(weights[f"w_ih.{k}"], weights[f"w_hh.{k}"], weights[f"bias.{k}"]) for k in range(self.layers)
        ]
