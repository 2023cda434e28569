"""A started model learns its car from the feed, as `evband stream --adapt` has it (`evband.adaptation.driving`), and is kept.

What whole drives taught is a model in the store; of the drive under way its rows are kept as they come, and the model is made of
them again after a restart.
"""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.driving import Learner
from evband.artifact import to_bytes
from evband.errors import EvbandError
from evband.network.tick import engine_of

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.network.tick.engine import Engine

SURE = 0.9  # a row whose motion is less certain (readings far apart) teaches nothing
MOST_NOTES = 5


class Lesson(NamedTuple):
    """What is to be written: rows of the drive from the `first` on (from 0: those before belong to another), and what is known
    for good, where that changed."""

    first: int
    rows: list[bytes]
    model: tuple[str, bytes] | None  # of which model it was learned, and what it has become


class Learning:
    """One car's."""

    def __init__(self, model: PowerModel, level: float) -> None:
        self._given, self._level = model, level
        self.digest = hashlib.sha256(model.theta_.tobytes()).hexdigest()[:16]
        self.forget()

    def forget(self) -> None:
        """Begin anew with the model that was given."""
        self._learner = Learner(self._given)
        self._written, self._count, self._kept = self._learner.rows, 0, self._learner.before
        self._notes: list[str] = []
        self.wider_pct: float | None = None  # today's band against that of the model that was given

    @property
    def model(self) -> PowerModel:
        return self._learner.model

    def take(
        self, x: NDArray[np.float32], r: NDArray[np.float32], start: bool, speed_kmh: float, power_kw: float, sure: float
    ) -> bool:  # fmt: skip
        """One grid row; True where `model` is a new one."""
        return self._learner.take(x, r, start, speed_kmh, power_kw if sure >= SURE else None)

    def end(self) -> bool:
        """The drive is over; True where `model` is a new one."""
        return self._learner.end()

    def compared(self, before: Engine, after: Engine) -> tuple[float, float] | None:
        """How the new model differs from the one before it on the last minute."""
        first = self._learner.compared(engine_of(self._given, self._level), after)
        self.wider_pct = self.wider_pct if first is None else 100.0 * (first[1] - 1.0)
        return self._learner.compared(before, after)

    def details(self) -> dict[str, Any]:
        """For people: from how much driving it has learned, and what that did."""
        fresh, self._learner.notes = self._learner.notes, []
        self._notes = [*self._notes, *(note for note in fresh if note not in self._notes)][-MOST_NOTES:]
        known = self.model.adaptation_
        return {
            "minutes": round(known.minutes, 2), "trips": known.trips, "band_wider_pct": self.wider_pct, "notes": list(self._notes),
        }  # fmt: skip

    def lesson(self) -> Lesson:
        """What came since the last time."""
        rows, before = self._learner.rows, self._learner.before
        first = self._count if rows is self._written else 0
        found = Lesson(
            first,
            [row.tobytes() for row in rows[first:]],
            None if before is self._kept else (self.digest, to_bytes(before)),
        )
        self._written, self._count, self._kept = rows, len(rows), before
        return found

    def to_dict(self) -> dict[str, Any]:
        return self._learner.progress() | {
            "rows": len(self._learner.rows),
            "given": self.digest,
            "wider": self.wider_pct,
        }

    def restore(self, saved: dict[str, Any] | None, rows: list[bytes], model: tuple[str, bytes] | None) -> None:
        """Go on from what was written; what does not fit is left out."""
        kept = None if model is None or model[0] != self.digest else base64.b64encode(model[1]).decode("ascii")
        fits = saved is not None and saved.get("given") == self.digest and saved.get("rows") == len(rows)
        if saved is None or not fits or not self._go_on(saved, rows, kept):
            self._go_on(self._learner.progress(), [], kept)

    def _go_on(self, saved: dict[str, Any], rows: list[bytes], kept: str | None) -> bool:
        try:
            self._learner.restore(saved | {"kept": kept, "rows": base64.b64encode(b"".join(rows)).decode("ascii")})
        except EvbandError:
            self.forget()
            return False
        self._written, self._count, self._kept = self._learner.rows, len(rows), self._learner.before
        self.wider_pct = saved.get("wider")
        return True
