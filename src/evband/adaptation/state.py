"""What a started model carries beside its weights: the sheet it rests on, and what may still be learned."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import ArtifactError

PREFIX = "adapt."  # before the names of its tensors in a .evband file


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

    def meta(self) -> dict[str, Any]:
        """JSON-able; the arrays apart."""
        return {
            "sheet": self.sheet, "base": self.base, "about": self.about, "scale": list(self.scale),
            "trip_effect": list(self.trip_effect), "pull": self.pull, "minutes": self.minutes, "trips": self.trips, "notes": list(self.notes),
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
        )  # fmt: skip
