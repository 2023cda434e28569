"""The drive so far: what its measured power says about the error of the rest (Gaussian conditioning, one block at a time)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evband.energy.drives import Drive
from evband.energy.errors import ErrorModel, phi
from evband.energy.student import surprise
from evband.errors import SettingsError

Array = NDArray[np.float64]
BLOCK_S = 10.0
START_S = 120.0  # errors of a start (cold cabin, cold battery) hardly predict those of the rest
LASTING = (0.0, 0.25, 0.5, 0.75, 1.0)
CUTS = (0.25, 0.5, 0.75)  # where calibration trips go on


class Belief(NamedTuple):
    """Posterior of the trip effect b and the slow error u, of one drive or of columns of them: a Kalman filter with two states.

    Each block's mean error, without the bias and divided by sqrt(g), is b + u + w with Var w = R / seconds; between blocks u fades by
    exp(-seconds/L) and regains s^2 (1 - fade^2). Before any measurement: b ~ (0, tau^2), u ~ (0, s^2).
    """

    b: Any
    u: Any
    bb: Any  # variance of b
    bu: Any
    uu: Any

    @classmethod
    def at_start(cls, errors: ErrorModel) -> Belief:
        return cls(0.0, 0.0, errors.trip_effect, 0.0, errors.slow)

    def after(self, seconds: Any, errors: ErrorModel) -> Belief:
        """Time without a measurement: the slow error fades, the trip effect stays."""
        fade = np.exp(-seconds / errors.slow_s)
        uu = self.uu * fade * fade + errors.slow * (1.0 - fade * fade)
        return Belief(self.b, self.u * fade, self.bb, self.bu * fade, uu)

    def given(self, error_kw: Any, size: Any, seconds: Any, errors: ErrorModel) -> Belief:
        """With the mean error of a block that ends now, and its g."""
        b, u, bb, bu, uu = self.after(seconds, errors)
        surprise = (error_kw - errors.bias) / np.sqrt(np.maximum(size, 1e-6)) - b - u
        total = bb + 2.0 * bu + uu + errors.fast / seconds
        total = np.where(total > 0.0, total, np.inf)
        by_b, by_u = (bb + bu) / total, (bu + uu) / total  # gains
        return Belief(
            b + by_b * surprise,
            u + by_u * surprise,
            bb - by_b * (bb + bu),
            bu - by_b * (bu + uu),
            uu - by_u * (bu + uu),
        )


class SoFar:
    """`Belief` of one drive, O(1) per block; the first `START_S` of a drive are left out."""

    def __init__(self, errors: ErrorModel) -> None:
        self.errors = errors
        self.reset()

    def reset(self) -> None:
        """A new trip."""
        self.now = Belief.at_start(self.errors)
        self._error = self._size = self._age = 0.0
        self._rows = 0

    def add(self, error_kw: float, size: float, seconds: float) -> None:
        """One grid row's measured minus predicted power, and its g; NaN passes time only."""
        self._age += seconds
        if not math.isfinite(error_kw) or self._age <= START_S:
            self.now = self.now.after(seconds, self.errors)
            return
        self._error += error_kw
        self._size += size
        self._rows += 1
        if self._rows * seconds >= BLOCK_S - 1e-9:
            block = self._error / self._rows, self._size / self._rows, self._rows * seconds
            self.now = self.now.given(*block, self.errors)
            self._error = self._size = 0.0
            self._rows = 0

    def ahead(self, seconds: ArrayLike, size: ArrayLike = 1.0) -> tuple[Array, Array]:
        """(expected mean error in kW, its variance in kW^2 without EU) over the next `seconds`.

        Of the trip effect so far only a share l (`lasting`) goes on: l b is expected, with variance l^2 Var b + (1 - l^2) tau^2.
        """
        t, e = np.maximum(np.asarray(seconds, float), 1e-9), self.errors
        x = t / e.slow_s
        psi = -np.expm1(-x) / x  # how much of the slow error now is left on average
        lasting, now = e.lasting, self.now
        effect = lasting**2 * now.bb + (1.0 - lasting**2) * e.trip_effect
        shift = e.bias + np.sqrt(size) * (lasting * now.b + psi * now.u)
        slow = np.maximum(e.slow * (phi(x) - psi**2), 0.0) + psi**2 * now.uu
        return shift, np.asarray(size) * (effect + 2.0 * lasting * psi * now.bu + slow + e.fast / t)

    def drive(self, drive: Drive) -> SoFar:
        """Take a whole drive's measured power."""
        sizes = self.errors.sizes(drive)
        for error, size in zip((drive.power_kw - drive.mean).tolist(), sizes.tolist(), strict=True):
            self.add(error, size, 1.0 / drive.hz)
        return self

    def to_dict(self) -> dict[str, Any]:
        counted = {name: getattr(self, name) for name in _COUNTED}
        return {name: float(value) for name, value in self.now._asdict().items()} | counted

    def restore(self, saved: dict[str, Any]) -> None:
        try:
            values = {name: float(saved[name]) for name in _COUNTED}
            now = Belief(*(float(saved[name]) for name in Belief._fields))
        except (KeyError, TypeError, ValueError) as problem:
            raise SettingsError(f"The saved drive so far is damaged ({problem}); start without it.") from None
        self.now = now
        for name, value in values.items():
            setattr(self, name, int(value) if name == "_rows" else value)


def surprises(errors: ErrorModel, drive: Drive, dof: float, cuts: tuple[float, ...] = CUTS) -> Array:
    """[cuts, ...]: how surprising the mean error of the rest of a drive is, given its beginning, cut at these shares of it;
    0 where nothing of the rest was measured. `errors` may have columns, which are all tried at once."""
    past, at, found = SoFar(errors), 0, []
    for share in cuts:
        cut = int(share * len(drive))
        past.drive(drive.rows(slice(at, cut)))
        at, rest = cut, drive.rows(slice(cut, None))
        error, variance = rest.power_kw - rest.mean, errors.epistemic(rest.members.mean(axis=1))
        shift, own = past.ahead(rest.seconds, float(errors.sizes(rest).mean()))
        known = np.isfinite(error).any()
        found.append(surprise(np.nanmean(error) - shift, own + variance, dof) if known else 0.0 * shift)
    return np.array(found)


def how_lasting(errors: ErrorModel, drives: list[Drive]) -> float:
    """The share at which the rest of each calibration trip is likeliest given its beginning."""
    every: Any = replace(errors, lasting=np.array(LASTING))  # type: ignore[arg-type]
    return LASTING[int(np.argmin(sum(surprises(every, drive, errors.dof).sum(axis=0) for drive in drives)))]


_COUNTED = ("_error", "_size", "_rows", "_age")
