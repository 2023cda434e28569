"""What is dear in adapting a car, as questions: a car's steps go on with the answer.

Steps are generators that yield such questions. One car's are answered one by one on the CPU; those of many cars wait for
each other, so that a GPU answers them side by side (`evband.adaptation.side_by_side`). The steps are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.members import Evidence
from evband.adaptation.update import updated
from evband.network.predict import hidden_states

if TYPE_CHECKING:
    from evband.model import PowerModel

T = TypeVar("T")


@dataclass(frozen=True)
class States:
    """Hidden states [members, rows, hidden] of the rows of a car."""

    model: PowerModel
    x: NDArray[np.float32]  # [rows, inputs]
    start: NDArray[np.bool_]

    def alone(self) -> NDArray[np.float32]:
        return hidden_states(self.model.architecture_, self.model.theta_, self.x, self.start)


@dataclass(frozen=True)
class Update:
    """The model after these rows."""

    model: PowerModel
    rows: Evidence
    trips: int
    traces: Sequence[str]
    seed: int

    def alone(self) -> PowerModel:
        return updated(self.model, self.rows, self.trips, self.traces, self.seed)


Ask = States | Update
Steps = Generator[Ask, Any, T]
Answer = Callable[[list[Ask]], list[Any]]


def one_by_one(asks: list[Ask]) -> list[Any]:
    """Answers on the CPU, or what went wrong with each."""
    return [alone(ask) for ask in asks]


def alone(ask: Ask) -> Any:
    try:
        return ask.alone()
    except Exception as problem:  # of this car, whose steps it is raised in
        return problem


def done_together(many: Sequence[Steps[T]], answer: Answer = one_by_one) -> list[T]:
    """What steps return, all of which ask at the same time; an answer that is an exception is raised in them."""
    found: dict[int, T] = {}
    waiting: dict[int, Any] = dict.fromkeys(range(len(many)))  # number -> its answer
    while waiting:
        asks: dict[int, Ask] = {}
        for k, given in waiting.items():
            try:
                asks[k] = many[k].throw(given) if isinstance(given, Exception) else many[k].send(given)
            except StopIteration as end:
                found[k] = end.value
        waiting = dict(zip(asks, answer([*asks.values()]), strict=True))
    return [found[k] for k in range(len(many))]
