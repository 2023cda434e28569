"""Whole-trip prediction with carried state, in chunks, so that memory stays bounded however long the drive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.network.architecture import Architecture
from evband.network.dropout import draw_masks
from evband.network.inference import Network
from evband.network.lstm import Masks, State
from evband.network.standard import Standard

if TYPE_CHECKING:
    from torch import Tensor

CHUNK_ROWS = 4096  # steps x sequences in one pass


@dataclass(frozen=True)
class Prediction:
    """The answer of each member for each row, in standardised units."""

    mu: NDArray[np.float32]  # [members, rows]
    scale: NDArray[np.float32] | None  # [members, rows]
    standard: Standard | None  # of the members
    quantiles: NDArray[np.float32] | None  # [members, levels, rows], sorted
    crossing: float = 0.0  # share of rows whose quantiles crossed before sorting

    def part(self, members: list[int], rows: NDArray[np.bool_]) -> Prediction:
        """A copy of the answers of some members for some rows; a member may be taken twice."""
        return Prediction(
            self.mu[members][:, rows],
            None if self.scale is None else self.scale[members][:, rows],
            None if self.standard is None else self.standard[members],
            None if self.quantiles is None else self.quantiles[members][:, :, rows],
            self.crossing,
        )


def predict(
    arch: Architecture,
    theta: NDArray[np.float32] | Tensor,  # [members, parameters]; a tensor is run by torch, an array without it
    x: NDArray[np.float32],  # [rows, inputs]
    r: NDArray[np.float32],  # [rows, road]
    start: NDArray[np.bool_],  # [rows]: the state is reset before this row
    dropout: float = 0.0,
    generators: list[np.random.Generator] | None = None,  # one per member, for its locked masks
) -> Prediction:
    """Run all members over all rows. With dropout each sequence keeps its masks from its first step to its last."""
    network = _network(arch, theta)
    members, rows = len(theta) * arch.components, len(x)
    mu = np.empty((members, rows), np.float32)
    scale = np.empty((members, rows), np.float32) if arch.distribution.scaled else None
    quantiles = None if arch.distribution.scaled else np.empty((members, len(arch.levels), rows), np.float32)
    begin, length, groups = _sequences(start)
    crossed = 0
    for group in groups:
        masks = None
        if dropout:
            assert generators is not None
            masks = draw_masks(arch, dropout, len(group), generators)
        state: State | None = None
        at, longest = 0, int(length[group[0]])
        while at < longest:
            running = int((length[group] > at).sum())  # lengths fall within a group
            group, state, masks = group[:running], _first(state, running), _first_masks(masks, running)
            steps = min(longest - at, max(1, CHUNK_ROWS // running))
            index = begin[group] + at + np.arange(steps)[:, None]  # [time, batch]
            inside = np.arange(at, at + steps)[:, None] < length[group]
            safe = np.minimum(index, rows - 1)
            answer, state = network(x[safe], r[safe], state, masks)
            where = index[inside]
            if quantiles is not None:
                assert answer.quantiles is not None
                raw = answer.quantiles[:, inside]  # [members, n, levels]
                crossed += int((np.diff(raw, axis=-1) < 0).any(-1).sum())
                quantiles[:, :, where] = np.sort(raw, axis=-1).transpose(0, 2, 1)
                mu[:, where] = quantiles[:, len(arch.levels) // 2, where]
            else:
                assert scale is not None
                assert answer.scale is not None
                mu[:, where] = answer.mu[:, inside]
                scale[:, where] = answer.scale[:, inside]
            at += steps
    kind = arch.distribution
    standard = kind.standard(network.degrees_of_freedom(), members) if kind.scaled else None
    return Prediction(mu, scale, standard, quantiles, crossed / max(1, members * rows))


def hidden_states(
    arch: Architecture,
    theta: NDArray[np.float32],  # [members, parameters]
    x: NDArray[np.float32],  # [rows, inputs]
    start: NDArray[np.bool_],  # [rows]
) -> NDArray[np.float32]:
    """[members, rows, hidden]: what each member's head sees of each row."""
    from evband.network.kernels import cpu

    layers = arch.lstm_layers(arch.unpack(theta))
    states = np.empty((len(theta), len(x), arch.hidden), np.float32)
    begin, length, groups = _sequences(start)
    for group in groups:
        index = np.minimum(begin[group] + np.arange(int(length[group[0]]))[:, None], len(x) - 1)  # [time, batch]
        h, _ = cpu.run(np.ascontiguousarray(x[index])[None], layers, None, None)
        for k, first in enumerate(begin[group]):
            states[:, first : first + length[group[k]]] = h[:, : length[group[k]], k]
    return states


def _network(arch: Architecture, theta: Any) -> Any:
    """What runs the members: the compiled engine, or torch where the weights are a tensor."""
    if isinstance(theta, np.ndarray):
        return Network(arch, theta)
    from evband.network.forward import TorchNetwork

    return TorchNetwork(arch, theta)


def _sequences(start: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64], list[NDArray[np.int64]]]:
    """First row and length of each, and their numbers in groups of like length, longest first, at most 64 in a group."""
    begin = np.flatnonzero(start)
    length = np.diff(np.append(begin, len(start)))
    order = np.argsort(-length, kind="stable")
    return begin, length, [order[k : k + 64] for k in range(0, len(order), 64)]


def _first(state: State | None, count: int) -> State | None:
    """The state of the first sequences only."""
    return None if state is None else State(state.h[:, :, :count], state.c[:, :, :count])


def _first_masks(masks: Masks | None, count: int) -> Masks | None:
    return None if masks is None else masks.map(lambda mask: mask[:, :count])
