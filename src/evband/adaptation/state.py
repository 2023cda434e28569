"""What a started model carries beside its weights: the sheet it rests on, and what may still be learned."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.channels import DENSE
from evband.errors import ArtifactError

PREFIX = "adapt."  # before the names of its tensors in a .evband file
STEP = 0.25  # of readings per second: answers hardly differ within one, so that cars share what is asked at it


@dataclass(frozen=True, eq=False)
class Adaptation:
    """How a model began, how much it has learned from, and how sure it is of each weight."""

    sheet: dict[str, Any]  # `Sheet.to_dict`
    base: str  # digest of the base
    about: str  # what the base was learned from
    scale: tuple[float, float]  # mean and deviation of the log scale's offset, over the cars that this may be
    trip_effect: tuple[float, float, float]  # see `evband.adaptation.base.Base`
    precision: NDArray[np.float32] = field(repr=False)  # [members, Q, Q] of (road_w, head_w of the location)
    neutral: NDArray[np.float32] = field(repr=False)  # [members], the scale's bias without any offset
    pull: float  # of the base's mean car with this sheet: see `evband.adaptation.mass`
    minutes: float = 0.0  # of measured power that it has learned from
    trips: int = 0
    notes: tuple[str, ...] = ()  # what whoever adapted it should know
    readings: float | None = None  # of speed per second, 1 to `DENSE`, while moving in the logs it has learned from

    @property
    def asked_at(self) -> float:
        """Speed readings per second of the made-up drives on which it is asked about the car: as many as it learned from."""
        return DENSE if self.readings is None else STEP * round(self.readings / STEP)

    def with_readings(self, minutes: float, moving: NDArray[np.float64]) -> Adaptation:
        """After so many minutes more, with these speed readings per second in the rows on the move."""
        total, found = self.minutes + minutes, self.readings
        if len(moving):
            now = float(moving.mean())
            found = now if found is None else found + minutes / total * (now - found)
        return replace(self, minutes=total, readings=found)

    def meta(self) -> dict[str, Any]:
        """JSON-able; the arrays apart."""
        return {
            "sheet": self.sheet, "base": self.base, "about": self.about, "scale": list(self.scale),
            "trip_effect": list(self.trip_effect), "pull": self.pull, "minutes": self.minutes, "trips": self.trips, "notes": list(self.notes),
            "readings": self.readings,
        }  # fmt: skip

    def tensors(self) -> dict[str, NDArray[np.float32]]:
        return {f"{PREFIX}precision": self.precision, f"{PREFIX}neutral": self.neutral}

    @classmethod
    def read(cls, meta: dict[str, Any], tensors: dict[str, NDArray], members: int, weights: int) -> Adaptation:
        """Inverse of `meta` and `tensors`; a model file is not to be trusted."""
        precision, neutral = tensors[f"{PREFIX}precision"], tensors[f"{PREFIX}neutral"]
        numbers = [*map(float, (*meta["scale"], *meta["trip_effect"], meta["pull"], meta["minutes"], meta["trips"]))]
        right = precision.shape == (members, weights, weights) and neutral.shape == (members,) and len(numbers) == 8
        if not (
            right and all(map(math.isfinite, numbers)) and np.isfinite(precision).all() and np.isfinite(neutral).all()
        ):
            raise ArtifactError("what it has learned from the car is damaged; start and adapt it again.")
        mean, sd, *effect, pull, minutes, trips = numbers
        if (
            min(sd, pull) <= 0
            or min(effect) < 0
            or minutes < 0
            or trips < 0
            or abs(mean) > 10
            or np.abs(precision).max() > 1e12
        ):
            raise ArtifactError("what it has learned from the car is out of bounds; start and adapt it again.")
        return cls(
            dict(meta["sheet"]), str(meta["base"]), str(meta["about"]), (mean, sd), (effect[0], effect[1], effect[2]),
            precision.astype(np.float32), neutral.astype(np.float32), pull, minutes, int(trips), tuple(map(str, meta["notes"])),
            read_readings(meta),
        )  # fmt: skip


def read_readings(meta: dict[str, Any]) -> float | None:
    """Those of a file, None in one that was written before they were kept."""
    found = meta.get("readings")
    if found is not None and not 1.0 <= float(found) <= DENSE:
        raise ArtifactError("its count of speed readings is out of bounds; start and adapt it again.")
    return None if found is None else float(found)
