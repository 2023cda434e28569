"""`model.stream()`: a band for every tick of a drive, by the tick engine, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.bands import check_level
from evband.channels import CHANNELS, EDGES
from evband.errors import ChannelError, SettingsError
from evband.network.tick import engine_of

if TYPE_CHECKING:
    from evband.model import PowerModel


@dataclass(frozen=True, slots=True)
class Band:
    """The predictive distribution of one grid step, as `evband predict` has it."""

    mean_kw: float
    lower_kw: float
    upper_kw: float
    aleatoric_kw: float
    epistemic_kw: float
    warmup: bool
    outside: bool

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class Stream:
    """One vehicle's drive, tick by tick; one tick is one step of the model's grid."""

    def __init__(self, model: PowerModel, level: float = 0.9) -> None:
        from evband.features import WARMUP_S

        check_level(level)
        self.level, self.hz = level, float(model.settings_.hz)
        self.engine = engine_of(model, level)
        self._features = model.feature_map_.stream()
        self._standstill = model.feature_map_.standstill
        self._stretches = model.calibration_.moving, model.calibration_.standing
        self.stretch = self._stretches[0]  # of the last step
        self.road: NDArray[np.float32] = np.zeros(0, np.float32)  # [K], its road-load features
        self._warmup = WARMUP_S * self.hz
        self.reset()

    def tick(self, **values: float | None) -> Band:
        """The band of the next grid step from its channels; acceleration, if not given, is the change of speed."""
        unknown = [name for name in values if name not in CHANNELS and name not in EDGES]
        if unknown:
            raise ChannelError(f"{unknown[0]} is not a channel; a tick takes channels such as speed_kmh=88.0.")
        return self.step(values)

    def step(self, values: Mapping[str, float | None]) -> Band:
        """`tick` for values whose names are known to be channels."""
        x, r, outside = self._features.tick(values)
        self.road = r
        mean, lower, upper, aleatoric, epistemic = self.engine.tick(x, r).tolist()
        if self._standstill is not None:
            column, limit = self._standstill
            self.stretch = self._stretches[bool(np.float32(x[column]) < limit)]
        warmup = self.since < self._warmup
        self.since += 1
        return Band(mean, lower, upper, aleatoric, epistemic, warmup, outside)

    def gap(self) -> None:
        """Go on after a gap: the state starts anew, the weather stays."""
        self._features.gap()
        self.engine.reset(0)
        self.since = 0

    def reset(self) -> None:
        """Begin another trip."""
        self._features.reset()
        self.gap()

    def to_dict(self) -> dict[str, Any]:
        """All that is needed to go on later, JSON-able."""
        h, c = self.engine.state(0)
        return {
            "h": h.ravel().tolist(),
            "c": c.ravel().tolist(),
            "since": self.since,
            "features": self._features.to_dict(),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from what `to_dict` gave."""
        shape = self.engine.state(0)[0].shape
        try:
            h, c = (np.asarray(saved[name], np.float32).reshape(shape) for name in ("h", "c"))
            if not (np.isfinite(h).all() and np.isfinite(c).all()):
                raise ValueError("not finite")
            self._features.restore(saved["features"])
            self.since = int(saved["since"])
        except (KeyError, TypeError, ValueError, OverflowError) as problem:
            raise SettingsError(
                f"The saved state of the stream does not fit this model ({problem}); start without it."
            ) from None
        self.engine.set_state(0, h, c)
