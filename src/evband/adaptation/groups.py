"""Which cars are of one kind: the same body, make or model; and how the mean car of a kind differs from that of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from evband.vehicles import Sheet

LEVELS = ("body", "make", "model")  # from the coarsest to the finest
MOST = 100_000

Floats = NDArray[np.float32]


def kinds_of(sheet: Sheet) -> tuple[str, ...]:
    """Names of the groups that a car belongs to, a name per level, empty where the sheet does not say."""
    model = f"{sheet.make} {sheet.model}" if sheet.make and sheet.model else ""
    named = zip(LEVELS, (sheet.body, sheet.make, model), strict=True)
    return tuple(f"{level} {name}" if name else "" for level, name in named)


@dataclass(frozen=True, eq=False)
class Groups:
    """Shifts of a group's mean from that of the level above, in a base's weights."""

    names: tuple[str, ...] = ()
    shifts: Floats | None = None  # [groups, members, Q]

    def shift_of(self, sheet: Sheet) -> Floats | float:
        """[members, Q]: of all groups that a car belongs to; 0 where none is known."""
        if self.shifts is None:
            return 0.0
        known = [k for k, name in enumerate(self.names) if name in kinds_of(sheet)]
        return np.asarray(self.shifts[known].sum(0), np.float32)

    @property
    def bytes(self) -> bytes:
        """All that it holds, for a digest."""
        return b"" if self.shifts is None else "\n".join(self.names).encode() + self.shifts.tobytes()

    @classmethod
    def checked(cls, names: list[str], shifts: Floats | None, members: int, weights: int) -> Groups:
        """What a file holds, which is not to be trusted."""
        if shifts is None:
            return cls()
        right = shifts.shape == (len(names), members, weights) and len(names) <= MOST
        if not (right and np.isfinite(shifts).all()):
            raise ValueError("its groups of cars do not fit its weights")
        return cls(tuple(map(str, names)), shifts.astype(np.float32))
