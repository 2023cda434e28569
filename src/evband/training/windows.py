"""Windows over drives: every row is a target once an epoch, after a burn-in that warms the state.

A window that begins where a segment begins has no burn-in, since the zero state is what a drive begins with.
The first window of a segment is cut at a random length, so that windows fall elsewhere in each epoch and member.
In a log full of gaps it is random only as far as its segment needs no window more (`Segments.few`): most of its segments
are two or three windows long, and one more for each would be a third of the cost.

Short segments of one trip share windows, the state being reset inside: a window each would be mostly padding, so that a
log cut up by gaps would cost several times its rows. What a window's rows have in common stays their trip's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]

WORTH_SHARING = 0.9  # of the windows, at most, that must be left for segments to share them


@dataclass(frozen=True)
class Segments:
    """Stretches of rows that windows are cut from: begin row and length of each, and its trip."""

    begin: Ints
    length: Ints
    trip: Ints
    copy: Ints | None = None  # which copy of its trip with fewer readings it is of: 1, 2 ...; 0: of the trip itself
    few: bool = False  # cut into as few windows as hold them

    def of_trips(self, trips: NDArray[np.integer]) -> Segments:
        return self._where(np.isin(self.trip, trips))

    def drawn(self, share: float, rng: np.random.Generator) -> Segments:
        """Of each trip itself and, in a ``share`` of them (`copied`), one of its copies, too."""
        if self.copy is None:
            return self
        trips = self.trip.max(initial=0) + 1
        lot, which = rng.random(trips), rng.integers(1, self.copy.max(initial=0) + 1, trips)
        present = np.unique(self.trip)
        without = present[np.argsort(lot[present])][self.copied(share) :]
        which[without] = 0
        return self._where((self.copy == 0) | (self.copy == which[self.trip]))

    def copied(self, share: float) -> int:
        """In how many trips a copy joins: the same number in every epoch, so that none keeps room for copies it has not."""
        return math.ceil(share * len(np.unique(self.trip)))

    def with_first(self) -> Segments:
        """Of each trip itself and its first copy."""
        return self if self.copy is None else self._where(self.copy <= 1)

    def _where(self, keep: NDArray[np.bool_]) -> Segments:
        copy = None if self.copy is None else self.copy[keep]
        return Segments(self.begin[keep], self.length[keep], self.trip[keep], copy, self.few)

    def leads(self, window: int, burn_in: int) -> Ints:
        """The shortest first window of each."""
        least = np.full(len(self.length), max(burn_in, 1))
        if not self.few:
            return least
        stride = window - burn_in
        blocks = -(-np.maximum(0, self.length - window) // stride)
        return np.asarray(np.minimum(np.maximum(least, self.length - blocks * stride), window))


@dataclass(frozen=True)
class Windows:
    """Row where each window starts; its targets are the steps ``first <= t < stop``."""

    start: Ints
    first: Ints
    stop: Ints

    def __len__(self) -> int:
        return len(self.start)


def find_segments(
    start: NDArray[np.bool_], trip: NDArray[np.integer], copy: NDArray[np.integer] | None = None
) -> Segments:
    """From the rows where the state is reset, each row's trip, and which copy of it the row is of."""
    begin = np.flatnonzero(start).astype(np.int64)
    length = np.diff(np.append(begin, len(start)))
    return Segments(begin, length, trip[begin].astype(np.int64), None if copy is None else copy[begin].astype(np.int64))


def share_windows(segments: Segments, window: int, burn_in: int) -> Segments:
    """Neighbours in a trip as one stretch where either is shorter than a window; the state is reset inside it.

    As they are, where that saves few windows: a kernel that resets inside takes a little longer. What is shared, or has
    copies, is of a log full of gaps and cut into few windows.
    """
    short = segments.length < window
    same = segments.trip if segments.copy is None else segments.trip + segments.copy * (segments.trip.max() + 1)
    follows = (same[1:] == same[:-1]) & (segments.begin[1:] == (segments.begin + segments.length)[:-1])
    first = np.flatnonzero(np.append(True, ~(follows & (short[1:] | short[:-1]))))
    copy = None if segments.copy is None else segments.copy[first]
    shared = Segments(segments.begin[first], np.add.reduceat(segments.length, first), segments.trip[first], copy)
    fewer = most_windows(shared, window, burn_in) < WORTH_SHARING * most_windows(segments, window, burn_in)
    if fewer or copy is not None:
        return replace(shared if fewer else segments, few=True)
    return segments


def cut(segments: Segments, window: int, burn_in: int, rng: np.random.Generator | None = None) -> Windows:
    """Cut segments into windows; without ``rng`` at fixed places."""
    stride = window - burn_in
    lead = np.full(len(segments.begin), window)
    if rng is not None:
        lead = rng.integers(segments.leads(window, burn_in), window + 1)
    rest = np.maximum(0, segments.length - lead)
    blocks = -(-rest // stride)
    which = np.repeat(np.arange(len(lead)), blocks)
    nth = np.arange(len(which)) - np.repeat(np.cumsum(blocks) - blocks, blocks)
    offset = lead[which] + nth * stride  # the block's first target, within its segment
    return Windows(
        np.concatenate([segments.begin, segments.begin[which] + offset - burn_in]),
        np.concatenate([np.zeros(len(lead), np.int64), np.full(len(which), burn_in)]),
        np.concatenate(
            [np.minimum(lead, segments.length), burn_in + np.minimum(stride, segments.length[which] - offset)]
        ),
    )


def most_windows(segments: Segments, window: int, burn_in: int, share: float = 1.0) -> int:
    """The most windows that any random cut of these segments gives, and any choice of copies in a ``share`` of trips."""
    rest = np.maximum(0, segments.length - segments.leads(window, burn_in))
    each = 1 + -(-rest // (window - burn_in))
    if segments.copy is None:
        return int(each.sum())
    copies = range(int(segments.copy.max(initial=0)) + 1)
    own, *others = (np.bincount(segments.trip, np.where(segments.copy == number, each, 0)) for number in copies)
    longest = np.sort(np.max(others, axis=0))[::-1]
    return int(own.sum() + longest[: segments.copied(share)].sum())


def epoch_shape(
    choices: list[Segments], window: int, burn_in: int, batch: int, share: float = 1.0
) -> tuple[int, int, int]:
    """Window, steps of an epoch and windows per step that suit any of these choices of segments, drawn with that ``share``.

    Kernels work on windows in eights, so those of a step are rounded up; or down, where windows an eighth longer at most
    then hold all rows: a single run in two steps of 41 windows would otherwise pay for 96.
    """

    def most(length: int) -> int:
        return max(most_windows(segments, length, burn_in, share) for segments in choices)

    steps = -(-most(window) // batch)
    each = -(-most(window) // steps)
    fewer = each // 8 * 8
    if fewer and each > fewer:
        for longer in range(window + 1, window + window // 8 + 1):
            if most(longer) <= steps * fewer:
                return longer, steps, fewer
    return window, steps, min(batch, -(-each // 8) * 8)


def epoch_batches(windows: Windows, steps: int, batch: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """``[3, steps, batch]``: start, first, stop, shuffled; what is left over is filled with empty windows, spread evenly."""
    order = rng.permutation(steps * batch)
    out = np.zeros((3, steps * batch), np.int64)
    for row, values in zip(out, (windows.start, windows.first, windows.stop), strict=True):
        row[order[: len(windows)]] = values
    return out.reshape(3, steps, batch)
