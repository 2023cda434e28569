"""Online calibration of a stream whose car measures its own power: a slow offset, then adaptive conformal inference.

A new season's error is mostly a bias (the heater), so the mean is corrected first, and the width only for what is left.
Every step is a few operations on numbers, O(1) per tick, and the whole state is a small dict.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from evband.bands import check_level
from evband.errors import SettingsError


class Learned(NamedTuple):
    """What was learned of a drive, or of columns of drives."""

    offset_kw: Any = 0.0
    log_stretch: Any = 0.0
    ticks: Any = 0

    @property
    def stretch(self) -> Any:
        return np.exp(self.log_stretch)

    def band(self, mean: Any, lower: Any, upper: Any) -> tuple[Any, Any, Any]:
        """The corrected (mean, lower, upper) of the model's band, stretched about its mean."""
        k, centre = self.stretch, mean + self.offset_kw
        return centre, centre + k * (lower - mean), centre + k * (upper - mean)


class OnlineCalibration:
    """Correct each band before its power is known, then learn from that power.

    Offset: o <- o + g (power - mean), g = step/offset_s, and larger at the start, 1/(ticks so far + start_s/step), so that the
    first minutes average instead of crawl. `offset_s=None` leaves the mean alone.

    Stretch, adaptive conformal inference (Gibbs & Candes 2021): a_{t+1} = a_t + g (a - err_t), err_t = 1 if the power fell
    outside the band, a = 1 - level, and the band is stretched by k_t = exp(a - a_t). So each miss widens it by g level and each
    hit narrows it by g (1 - level) in log width, and over T ticks coverage is within |log k_T|/(g T) of `level` whatever
    the errors do. An exponential has no infinite and no empty band; k is kept in [1/limit, limit], and coverage is promised
    only while it stays inside. g = gamma/hz, so that `gamma` is a rate per second; 0 leaves the width alone.

    Defaults from summer trips of a BMW i3 alone, each predicted by members that never saw it: interval score 2.08 at gamma 0.05,
    1.80 at 0.2, 1.77 at 0.4, where a single miss widens a band by 43 %. A faster offset scores better still (1.63 at 15 s), but
    it guesses the next second from the last ones and no longer a bias. Carrying what was learned into the next trip, instead of
    `reset`, changes 1 %. On the way from summer into winter: benchmarks/measured/season.py.

    >>> OnlineCalibration(level=0.9, gamma=0.2).level
    0.9
    """

    def __init__(
        self,
        level: float = 0.9,
        *,
        hz: float = 1.0,
        offset_s: float | None = 60.0,
        start_s: float = 5.0,
        gamma: float = 0.2,
        limit: float = 100.0,
    ) -> None:
        check_level(level)
        if not (hz > 0 and (offset_s is None or offset_s > 0) and start_s >= 0 and gamma >= 0 and limit > 1):
            raise SettingsError(
                "Online calibration needs hz and offset_s over 0, start_s and gamma from 0 on, and a limit over 1."
            )
        self.level, self.hz, self.offset_s, self.start_s, self.gamma, self.limit = level, hz, offset_s, start_s, gamma, limit  # fmt: skip
        self.reset()

    def reset(self) -> None:
        """Forget what was learned: a new trip starts with a cold cabin, not with the last trip's end."""
        self.learned = Learned()
        self._waiting: tuple[float, float, float] | None = None  # the model's mean and the band that was given out

    @property
    def stretch(self) -> float:
        return float(self.learned.stretch)

    def band(self, mean: float, lower: float, upper: float) -> tuple[float, float, float]:
        """The corrected (mean, lower, upper) of the model's band, stretched about its mean."""
        centre, low, high = map(float, self.learned.band(mean, lower, upper))
        self._waiting = (mean, low, high)
        return centre, low, high

    def observe(self, power_kw: float | None) -> None:
        """Learn from the power measured for the last band; without one (None, NaN) nothing changes."""
        if self._waiting is None or power_kw is None or not math.isfinite(power_kw):
            return
        self.learned, self._waiting = self.after(self.learned, *self._waiting, power_kw), None

    def after(self, learned: Learned, mean: Any, low: Any, high: Any, power_kw: Any, trust: Any = 1.0) -> Learned:
        """What is known once power was measured for bands (`low`, `high`) given out; `mean` is the model's. Where less than
        all of a deviation is to be trusted to be the model's, it says little of the offset, and no band narrows."""
        missed = (power_kw < low) | (power_kw > high)
        stretch = self._bounded(learned.log_stretch + self.gamma / self.hz * (missed - (1 - self.level)))
        stretch = np.maximum(stretch, np.where(trust < 1.0, 0.0, -np.inf))
        offset, ticks = learned.offset_kw, learned.ticks + 1
        if self.offset_s is not None:
            gain = np.maximum(1 / (self.offset_s * self.hz), 1 / (ticks + self.start_s * self.hz))
            offset = offset + trust * np.minimum(gain, 1.0) * (power_kw - mean - offset)
        return Learned(offset, stretch, ticks)

    def follow(self, shift_kw: float, widening: float) -> None:
        """The model was replaced by one whose mean is `shift_kw` higher and whose band is `widening` times as wide: what was
        given out goes on, and is learned on from."""
        self.learned, self._waiting = self.moved(self.learned, shift_kw, widening), None

    def moved(self, learned: Learned, shift_kw: float, widening: float) -> Learned:
        """See `follow`."""
        stretch = self._bounded(learned.log_stretch - math.log(widening))
        return learned._replace(offset_kw=learned.offset_kw - shift_kw, log_stretch=stretch)

    def _bounded(self, log_stretch: Any) -> Any:
        bound = math.log(self.limit)
        return np.minimum(np.maximum(log_stretch, -bound), bound)

    def to_dict(self) -> dict[str, Any]:
        """Everything, so that a stream can be stopped and continued to the same bands."""
        settings = {name: getattr(self, name) for name in _SETTINGS}
        offset_kw, log_stretch, ticks = self.learned
        learned = {"offset_kw": float(offset_kw), "log_stretch": float(log_stretch), "ticks": int(ticks)}
        return settings | learned | {"waiting": self._waiting}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> OnlineCalibration:
        try:
            self = cls(**{name: saved[name] for name in _SETTINGS})
            self.learned = Learned(float(saved["offset_kw"]), float(saved["log_stretch"]), int(saved["ticks"]))
            waiting = saved["waiting"]
            self._waiting = None if waiting is None else (float(waiting[0]), float(waiting[1]), float(waiting[2]))
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise SettingsError(
                f"The saved state of online calibration is damaged ({error}); start the stream without it."
            ) from error
        return self


_SETTINGS = ("level", "hz", "offset_s", "start_s", "gamma", "limit")
