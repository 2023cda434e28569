"""A started model learns while its car drives: `evband stream --adapt`, `model.stream(adapt=True)`.

The rows of the drive so far are what `evband adapt` would take from its log, and the same update is made of them, from
the model as it was before the drive: after `FIRST_S`, then whenever there are a quarter more of them, so that a drive
costs about five updates of its length. When the drive ends, what it taught stays. A drive over `MOST_S` is kept in
pieces, each of which begins with some rows of the last, without their power, that warm the state.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from evband.adaptation.checks import another_car, check_evidence, check_learns
from evband.adaptation.update import evidence_of, updated
from evband.channels import CHARGING_KW, STANDING_KMH
from evband.errors import EvbandError, SettingsError, TripsError
from evband.features import WARMUP_S
from evband.trips.identity import ENOUGH, marks

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.network.tick.engine import Engine

FIRST_S, GROWTH, MOST_S = 60.0, 1.25, 1800.0
PARKED_S = 300.0  # standing longer ends a drive
EXTRA = 3  # numbers of a row beside its features: whether the state starts there, speed, power
LARGEST = 1e6  # no feature of a row is beyond it
COMPARED_S = 60.0  # over which a model that has learned is compared with the one before

Rows = NDArray[np.float64]


class Learner:
    """One car's model, and what the drive under way teaches it: give it every grid row, use its `model`."""

    def __init__(self, model: PowerModel, seed: int = 0) -> None:
        check_learns(model)
        self.model = self.before = self._given = model  # `before`: without the drive under way
        self.notes: list[str] = []  # what whoever drives should know; whoever shows them empties the list
        self._hz, self._seed = float(model.settings_.hz), seed
        self._inputs = len(model.feature_map_.input_names)
        self._columns = self._inputs + len(model.feature_map_.road_names) + EXTRA
        self._begin()

    def _begin(self) -> None:
        """A new drive."""
        self.rows: list[Rows] = []  # of the drive so far
        self._known = 0  # rows with power
        self._due = FIRST_S * self._hz  # rows with power at which to learn next
        self._learned = 0  # rows that the model has learned from
        self._pieces = 0  # of this drive that were kept already
        self._stood = 0.0  # s
        self._refused = False

    def take(
        self, x: NDArray[np.float32], r: NDArray[np.float32], start: bool, speed_kmh: float, power_kw: float | None
    ) -> bool:
        """One grid row of the drive, `start` where the network's state began; True where `model` is a new one."""
        standing = speed_kmh < STANDING_KMH
        self._stood = min(self._stood + 1.0 / self._hz, PARKED_S + 1.0) if standing else 0.0
        if (stood := self._stood) > PARKED_S:
            changed = self.end() if self.rows else False
            self._stood = stood  # still parked: what it draws now is no drive
            return changed
        power = math.nan if power_kw is None or (standing and power_kw < CHARGING_KW) else power_kw
        row = np.concatenate([x, r, [start or not self.rows, speed_kmh, power]])
        self.rows.append(row)
        self._known += math.isfinite(power)
        if len(self.rows) >= MOST_S * self._hz:
            return self._next_piece()
        if self._known >= self._due:
            return self._learn(len(self.rows))
        return False

    def end(self) -> bool:
        """The drive is over; True where `model` is a new one."""
        changed = self._keep()
        self._begin()
        return changed

    def compared(self, before: Engine, after: Engine) -> tuple[float, float] | None:
        """By how much the mean of `after` is higher on the last rows of the drive, in kW, and how many times as wide its band is;
        None without rows. Both engines are left in a state of their own."""
        rows = self.rows[-int(COMPARED_S * self._hz) :]
        if not rows:
            return None
        found = []
        for engine in (before, after):
            engine.reset(0)
            found.append([engine.tick(row[: self._inputs], row[self._inputs : -EXTRA]).tolist() for row in rows])
        moving = np.array([row[-2] >= STANDING_KMH for row in rows])
        some = moving if moving.any() else ~moving  # at a standstill width has a factor of its own
        old, new = (np.array(bands)[some].mean(0) for bands in found)  # mean, lower, upper, ...
        return float(new[0] - old[0]), float((new[2] - new[1]) / (old[2] - old[1]))

    def _next_piece(self) -> bool:
        changed, last, pieces = self._keep(), self.rows[-int(WARMUP_S * self._hz) :], self._pieces + 1
        self._begin()
        self.rows, self._pieces = [row.copy() for row in last], pieces
        self.rows[0][-EXTRA] = 1.0
        for row in self.rows:
            row[-1] = math.nan
        return changed

    def _keep(self) -> bool:
        """Learn from all rows, for good."""
        changed = self._known >= FIRST_S * self._hz and self._learn(len(self.rows))
        if self.model is not self.before:
            self.notes += another_car(self.model)
        self.before = self.model
        return changed

    def _learn(self, count: int) -> bool:
        """`evband adapt` of the first rows of the drive; a drive that cannot be this car's teaches nothing."""
        rows = np.stack(self.rows[:count])
        x, r, (start, speed, power) = rows[:, : self._inputs], rows[:, self._inputs : -EXTRA], rows[:, -EXTRA:].T
        self._learned, self._due = count, max(self._due, GROWTH * float(np.isfinite(power).sum()))
        try:
            traces = marks(speed, power)
            if len(set(traces).intersection(self.before.fingerprints_)) >= ENOUGH:
                raise TripsError("the model has learned from this drive already.")
            one = np.zeros(count, np.int64)
            found = evidence_of(self.before, x.astype(np.float32), r.astype(np.float32), start > 0, power, one, speed)
            notes = check_evidence(self.before, found.y, found.r)
            self.model = updated(self.before, found, int(not self._pieces), traces, self._seed)
        except EvbandError as problem:
            notes, self.model = [f"nothing is learned from this drive: {problem}".rstrip(".")], self.before
        except np.linalg.LinAlgError:
            notes, self.model = ["nothing is learned from this drive: its rows are all alike"], self.before
        self.notes += [] if self._refused else notes
        self._refused |= bool(notes)
        return True

    def to_dict(self) -> dict[str, Any]:
        """All that is needed to go on later, JSON-able."""
        from evband.artifact import to_bytes

        kept = None if self.before is self._given else _text(to_bytes(self.before))
        rows = np.stack(self.rows).tobytes() if self.rows else b""
        return self.progress() | {"kept": kept, "rows": _text(rows)}

    def progress(self) -> dict[str, Any]:
        """Where the drive stands, but for its rows."""
        return {"learned": self._learned, "pieces": self._pieces, "stood": self._stood, "refused": self._refused}

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave, with the same model; a damaged state is one sentence."""
        try:
            self._restore(saved)
        except (
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
            ArithmeticError,
            SafetensorError,
            EvbandError,
        ) as problem:
            raise SettingsError(f"What the stream has learned is damaged ({problem}); start without it.") from None

    def _restore(self, saved: Mapping[str, Any]) -> None:
        from evband.artifact import from_bytes

        rows = np.frombuffer(base64.b64decode(saved["rows"], validate=True)).reshape(-1, self._columns)
        learned, pieces, stood = int(saved["learned"]), int(saved["pieces"]), float(saved["stood"])
        sound = np.isfinite(rows[:, :-1]).all() and (np.abs(np.nan_to_num(rows)) <= LARGEST).all()
        if not (sound and len(rows) <= MOST_S * self._hz and 0 <= learned <= len(rows)):
            raise ValueError("its rows cannot be")
        if not (0 <= pieces < 1e9 and 0.0 <= stood <= PARKED_S + 1.0):
            raise ValueError("its counters cannot be")
        before = self._given if saved["kept"] is None else from_bytes(base64.b64decode(saved["kept"], validate=True))
        if before.adaptation_ is None or before.feature_map_.to_dict() != self._given.feature_map_.to_dict():
            raise ValueError("it is another car's")
        self.model = self.before = before
        self._begin()
        self.rows, self._pieces, self._stood = [row.copy() for row in rows], pieces, stood
        self._known = int(np.isfinite(rows[:, -1]).sum())
        self._refused = True  # as told before the stream ended
        if learned:
            self._learn(learned)
        self._refused = bool(saved["refused"])


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
