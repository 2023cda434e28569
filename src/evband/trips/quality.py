"""What was found wrong in a log and what was done about it: found, counted, shown, configurable, never silent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from evband.trips.grid import MAX_GAP_S

Kind = Literal["glitch", "spike", "jump", "fill", "stuck", "gap", "charging", "parked", "sign", "unit", "rate", "copy"]
Action = Literal["dropped", "kept", "new segment"]


@dataclass(frozen=True)
class Cleaning:
    """What counts as a fault in a log, and whether it is dropped (True) or only reported (False).

    >>> Cleaning(parked=False, limits={"power_kw": (-100.0, 150.0)}).parked
    False
    """

    glitches: bool = True  # values outside a channel's physical limits
    spikes: bool = True  # lone readings that neither their neighbours nor the motion explain (evband.logs.spikes)
    jumps: bool = True  # stretches of altitude that no road leads to, such as zeros in the mountains
    fills: bool = True  # stretches in which every channel runs straight: somebody interpolated over a hole
    stuck: bool = False  # a channel that never moves while the car does
    charging: bool = True  # standing and taking power in
    parked: bool = True  # standing for long: all but a margin on either side
    copies: bool = True  # recordings that lie inside another one
    limits: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # channel -> (low, high) instead of its own
    max_gap_s: float = MAX_GAP_S
    fill_s: float = 10.0  # shortest stretch of each kind that counts
    stuck_s: float = 60.0
    charging_s: float = 60.0
    parked_s: float = 600.0
    parked_margin_s: float = 60.0


@dataclass(frozen=True)
class Finding:
    """One thing found. `count` is how many readings (or stretches) it concerns, from `start_s` to `end_s`."""

    kind: Kind
    channel: str | None
    count: int
    start_s: float
    end_s: float
    action: Action
    text: str


@dataclass(frozen=True)
class Quality:
    """The report of one trip: where it came from, what the reader noted, and the findings of cleaning."""

    format: str
    source: str = ""
    notes: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(f for f in self.findings if f.kind == kind)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)
