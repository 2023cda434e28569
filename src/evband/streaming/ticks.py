"""`model.stream()`: a band for every tick of a drive, by the tick engine, without torch.

With `adapt` measured power is learned from: today's offset and width (`evband.calibration.online`), and, where the model
began with `evband start`, the car itself (`evband.adaptation.driving`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.bands import check_level
from evband.calibration.online import OnlineCalibration
from evband.channels import CHANNELS, ON_GRID
from evband.errors import ChannelError, SettingsError
from evband.features.rows import warming
from evband.network.tick import engine_of

if TYPE_CHECKING:
    from evband.adaptation.driving import Learner
    from evband.model import PowerModel


NUMBERS = ("mean_kw", "lower_kw", "upper_kw", "aleatoric_kw", "epistemic_kw")


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

    def __init__(self, model: PowerModel, level: float = 0.9, adapt: bool = False) -> None:
        check_level(level)
        self.level, self.hz = level, float(model.settings_.hz)
        self._features = model.feature_map_.stream()
        self.road: NDArray[np.float32] = np.zeros(0, np.float32)  # [K], road-load features of the last step
        self._inputs = self.road
        self.online = OnlineCalibration(level, hz=self.hz) if adapt else None
        self.learner: Learner | None = None
        if adapt and model.adaptation_ is not None:
            from evband.adaptation.driving import Learner

            self.learner = Learner(model)
        self._use(model)
        self.reset()

    def _use(self, model: PowerModel) -> None:
        self.model, self.engine = model, engine_of(model, self.level)
        self._steps = model.calibration_.steps(model.feature_map_.scaled_input)
        self.stretch = self._steps.factors[-1]  # of the last step

    def tick(self, **values: float | None) -> Band:
        """The band of the next grid step from its channels; acceleration, if not given, is the change of speed.

        Measured power, `power_kw`, changes bands with `adapt` only, and only those of later ticks.
        """
        unknown = [name for name in values if name not in CHANNELS and name not in ON_GRID]
        if unknown:
            raise ChannelError(f"{unknown[0]} is not a channel; a tick takes channels such as speed_kmh=88.0.")
        return self.learned(self.step(values), values)

    def learned(self, band: Band, values: Mapping[str, float | None]) -> Band:
        """The band of `step` with what earlier steps taught; then this step's power is learned from."""
        if self.online is None:
            return band
        stretch, power = self.online.stretch, values.get("power_kw")
        mean, lower, upper = self.online.band(band.mean_kw, band.lower_kw, band.upper_kw)
        self.online.observe(power)
        if self.learner is not None:
            speed = values.get("speed_kmh") or 0.0
            if self.learner.take(self._inputs, self.road, self.since == 1, speed, power):
                self._follow()
        return replace(
            band, mean_kw=mean, lower_kw=lower, upper_kw=upper,
            aleatoric_kw=stretch * band.aleatoric_kw, epistemic_kw=stretch * band.epistemic_kw,
        )  # fmt: skip

    def _follow(self) -> None:
        """Go on with the learner's model. Its network's state is that of the one before; offset and width are carried over
        by how the two differ on the last rows."""
        assert self.learner is not None
        assert self.online is not None
        before, state = self.engine, self.engine.state(0)
        self._use(self.learner.model)
        if (differ := self.learner.compared(before, self.engine)) is not None:
            self.online.follow(*differ)
        self.engine.set_state(0, *state)

    def step(self, values: Mapping[str, float | None]) -> Band:
        """What the model gives for the next grid step, without `learned`; names must be those of channels."""
        x, r, outside = self._features.tick(values)
        self._inputs, self.road = x, r
        mean, lower, upper, aleatoric, epistemic = self.engine.tick(x, r).tolist()
        self.stretch = self._steps.at(x)
        warmup = warming(self.since, self.hz)
        self.since += 1
        return Band(mean, lower, upper, aleatoric, epistemic, warmup, outside)

    def gap(self) -> None:
        """Go on after a gap: the state starts anew, the weather stays."""
        self._features.gap()
        self.engine.reset(0)
        self.since = 0

    def reset(self) -> None:
        """Begin another trip."""
        if self.learner is not None and self.learner.end():
            self._use(self.learner.model)
        if self.online is not None:
            self.online.reset()
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
            "online": None if self.online is None else self.online.to_dict(),
            "learner": None if self.learner is None else self.learner.to_dict(),
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
        if self.online is not None and saved["online"] is not None:
            before = OnlineCalibration.from_dict(saved["online"])
            if before.level != self.level:
                raise SettingsError(
                    f"The saved state adapted {before.level:g} bands, not {self.level:g}; use that level or start without it."
                )
            self.online = before
        if self.learner is not None and saved["learner"] is not None:
            self.learner.restore(saved["learner"])
            self._use(self.learner.model)
        self.engine.set_state(0, h, c)
