"""What a head is: one object owns the outputs, extra parameters, loss and distribution of a kind of network.

Heads are importable without torch or numpy. `apply` and `degrees_of_freedom` are written once for tensors (training) and
arrays (a fitted model): what differs comes in as `Numbers`. Everything is in standardised target units.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

SCALE_FLOOR = 1e-4  # of a scale, in standardised units


@dataclass(frozen=True)
class Output:
    """Location and scale of each row (t, Gaussian), or its quantiles: tensors in training, arrays of a fitted model."""

    mu: Any  # [members, ...]: the location; of a quantile head, the median; of a distilled one [2 members, ...]
    scale: Any  # [members, ...]; None for quantiles
    nu: Any  # [members]; None without, and where nobody asks
    quantiles: Any  # [members, ..., levels], unsorted as trained; None otherwise


class Numbers(Protocol):
    """The raw outputs of the last layer and the road-load path, as tensors or arrays, and what can be done with them."""

    @property
    def road(self) -> Any: ...
    def output(self, k: int) -> Any:
        """The k-th output, [members, ...]."""

    def with_road(self) -> Any:
        """All outputs, each with the road-load path added, [members, ..., outputs]."""

    def softplus(self, x: Any) -> Any: ...
    def full(self, like: Any, value: float) -> Any: ...
    def join(self, parts: list[Any]) -> Any:
        """One after the other, along the members."""


class Head(ABC):
    """A kind of predictive distribution. The degrees of freedom and levels that it is used with come from outside."""

    name: ClassVar[str]
    label: ClassVar[str]  # on the model card
    kinds: ClassVar[tuple[str, ...]] = ("anchor",)  # how members of it may come about; none: it is never fitted
    components: ClassVar[int] = 1  # that one network adds to the mixture
    scaled: ClassVar[bool] = True  # has a scale, by which the loss can be weighted
    fixed_nu: ClassVar[bool] = False  # has no degrees of freedom but those it is given
    runs_as: ClassVar[str]  # the head whose ticks and graph run the weights of `as_members`
    extra: ClassVar[tuple[str, ...]] = ()  # parameters beside the last layer's, one number per member each

    def __init_subclass__(cls) -> None:
        cls.runs_as = getattr(cls, "runs_as", cls.name)

    def outputs(self, levels: tuple[float, ...]) -> int:
        """Of the last layer."""
        return 2

    def apply(self, numbers: Numbers) -> Output:
        """Location and scale: the first output and the road-load path, and softplus of the second over a floor."""
        scale = numbers.softplus(numbers.output(1)) + SCALE_FLOOR
        return Output(numbers.output(0) + numbers.road, scale, None, None)

    def degrees_of_freedom(self, weights: dict[str, Any], nu_min: float, nu: float | None, numbers: Any) -> Any:
        """[members]; None for a head without. `numbers`: `Numbers`, of which softplus and full are used."""
        return None

    def standard(self, nu: Any, members: int) -> Any:
        """`network.standard.Standard` of the members of a head with a scale: Student-t's, or Gaussians without nu."""
        from evband.network.standard import Student

        return Student.gaussian(members) if nu is None else Student(nu)

    @abstractmethod
    def loss(self, out: Output, y: Any, levels: tuple[float, ...]) -> Any:
        """Of every row, a tensor like y."""

    def as_members(self, weights: dict[str, Any]) -> dict[str, Any]:
        """The weights [members, ...] as those of plain members, which `runs_as` runs."""
        return weights
