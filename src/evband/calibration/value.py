"""What calibration found: the factors that stretch a model's bands, and what they rest on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from evband.channels import STANDING_KMH
from evband.errors import ArtifactError
from evband.network.steps import Steps

LEAST, MOST = 1e-3, 1e3  # a factor beyond these is damage, not calibration
LEVEL = 0.9  # of the bands that are calibrated
TEXT = 1000  # characters of a reason

How = Literal["none", "left out", "given", "taught", "averaged", "earlier"]


@dataclass(frozen=True)
class Calibration:
    """Factors by which predictive distributions are stretched about their mean; 1 where there are none.

    ``how``: ``left out``, fitted on training trips by members that never saw them; ``given``, on trips for that alone;
    ``taught`` to a distilled network, or ``averaged`` with the weights, both ``of`` an ensemble; ``earlier``, of a file
    that kept a sentence (in ``why``); ``none``, for the reason ``why``.

    >>> Calibration(moving=1.2, standing=1.0, how="given", trips=12).none
    False
    """

    moving: float = 1.0
    standing: float = 1.0  # where the car stands
    level: float = LEVEL
    how: How = "none"
    trips: int = 0
    members: int = 0  # that the factors are for
    why: str = "not asked for"
    of: Calibration | None = None

    def __post_init__(self) -> None:
        for name in ("moving", "standing"):
            if not LEAST <= getattr(self, name) <= MOST:
                raise ValueError(f"a stretch of {getattr(self, name):g} is not in [{LEAST:g}, {MOST:g}]")
        if not 0 < self.level < 1 or min(self.trips, self.members) < 0 or self.how not in get_args(How):
            raise ValueError("its level, number of trips or members, or kind is damaged")

    @property
    def none(self) -> bool:
        """Whether nothing is stretched."""
        return self.moving == self.standing == 1.0

    @property
    def factors(self) -> tuple[float, ...]:
        """In the order of `steps`."""
        return self.standing, self.moving

    def steps(self, scaled_input: Callable[[str, float], tuple[int, float] | None]) -> Steps:
        """Which factor a row gets; `FeatureMap.scaled_input` finds the input that tells, and scales its limits."""
        standstill = scaled_input("speed_kmh", STANDING_KMH)
        if standstill is None:
            return Steps((self.moving,))
        column, limit = standstill
        return Steps(self.factors, (limit,), column)

    def after(self, how: Literal["taught", "averaged"]) -> Calibration:
        """That of one network in place of the ensemble that has this one. What is taught is as wide as on the move throughout."""
        moving = self.moving if how == "averaged" else 1.0
        standing = min(max(self.standing * moving / self.moving, LEAST), MOST)
        return replace(self, moving=moving, standing=standing, how=how, members=1, of=self.of or self)

    def describe(self) -> str:
        """One sentence for people, without a full stop."""
        at_rest = "" if self.moving == self.standing else f" ({self.standing:.3f} at a standstill)"
        factors = f"stretched by {self.moving:.3f}{at_rest} on {self.trips} trips"
        return {
            "none": self.why,
            "earlier": self.why,
            "left out": f"{factors}, each predicted by members that never saw it",
            "given": f"{factors} given for it",
            "taught": f"taught the ensemble's calibrated bands ({self.of})",
            "averaged": f"of the ensemble, not of this average ({self.of})",
        }[self.how]

    def __str__(self) -> str:
        return self.describe()

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` gives back an equal value."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], depth: int = 1) -> Calibration:
        """Inverse of `to_dict`; a model file is not to be trusted. Parts that an earlier version lacked have their default."""
        kinds: dict[str, Any] = {"moving": float, "standing": float, "level": float, "how": str, "why": str}
        try:
            if not {"moving", "standing", "how"} <= set(saved) <= {f.name for f in fields(cls)}:
                raise ValueError("its parts are not those of a calibration")
            values = {name: kinds.get(name, int)(saved[name]) for name in saved if name != "of"}
            inner = saved.get("of")
            if inner is not None and not depth:
                raise ValueError("it is nested")
            return cls(**values, of=None if inner is None else cls.from_dict(inner, depth - 1))
        except (TypeError, ValueError, KeyError, OverflowError) as problem:
            raise ArtifactError(f"its calibration is damaged ({problem}); fit or calibrate it again.") from None

    @classmethod
    def of_version_1(cls, saved: Mapping[str, Any]) -> Calibration:
        """Of a file that kept factors and a sentence; the first ones had but one factor."""
        try:
            moving = float(saved["stretch"])
            standing = float(saved.get("standing_stretch", moving))
            why = str(saved["calibration"])[:TEXT]
            return cls(moving, standing, how="none" if why.startswith("not") else "earlier", why=why)
        except (TypeError, ValueError) as problem:
            raise ArtifactError(f"its calibration is damaged ({problem}); fit or calibrate it again.") from None
