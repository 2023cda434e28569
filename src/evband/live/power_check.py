"""Whether a car's measured power is what it says: its sign and unit, found by comparing it with the model's mean.

Feeds disagree on the sign of current, and some write W where kW is meant. Moments of the reported power p against the
model's mean m over rows in motion, both forgotten over minutes, give the cosine ``S_pm / sqrt(S_pp S_mm)`` and the slope
``S_pm / S_mm``: a cosine near -1 is an inverted sign, a slope near 1000 is a power in W. Power is used only while it agrees.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.trips.kept import kept, restore

Array = NDArray[np.float64]
Cars = NDArray[np.int64]

FORGET = 0.995  # per row
ROWS = 60.0  # in motion, before anything is decided
LEAST_KW2 = 4.0  # mean square of the model's power that it takes
AGREES, CONTRADICTS = 0.6, 0.3  # cosine
UNITS = ((1.0, 0.2, 5.0), (1e-3, 200.0, 5000.0))  # scale to kW, slopes it explains


class PowerCheck:
    """Scale (with sign) and trust of each vehicle's power; `fixed` ones were configured and are not questioned."""

    def __init__(self, scale: Array, trusted: NDArray[np.bool_], fixed: NDArray[np.bool_]) -> None:
        self.scale, self.trusted, self.fixed = scale, trusted, fixed
        self._n, self._pp, self._mm, self._pm = (np.zeros(len(scale)) for _ in range(4))
        self.notes: dict[int, str] = {}

    def see(self, cars: Cars, power: Array, mean: Array, moving: NDArray[np.bool_]) -> None:
        """Rows of these vehicles; `power` is already scaled as `scale` has it."""
        use = moving & np.isfinite(power) & np.isfinite(mean) & ~self.fixed[cars]
        cars, p, m = cars[use], power[use] / self.scale[cars[use]], mean[use]
        for column, value in ((self._n, 1.0), (self._pp, p * p), (self._mm, m * m), (self._pm, p * m)):
            column[cars] = FORGET * column[cars] + value
        n, mm = self._n[cars], self._mm[cars]
        ready = cars[(n >= ROWS) & (mm >= LEAST_KW2 * n) & (self._pp[cars] > 0.0)]
        cosine = self._pm[ready] / np.sqrt(self._pp[ready] * self._mm[ready])
        slope = self._pm[ready] / self._mm[ready]
        for car, c, s in zip(ready.tolist(), cosine.tolist(), slope.tolist(), strict=True):
            self._decide(car, c, s)

    def _decide(self, car: int, cosine: float, slope: float) -> None:
        sign = 1.0 if cosine > 0 else -1.0
        scale = next((sign * unit for unit, low, high in UNITS if low <= abs(slope) <= high), None)
        if abs(cosine) >= AGREES and scale is not None:
            if scale != self.scale[car] or not self.trusted[car]:
                self.scale[car], self.trusted[car] = scale, True
                changes = [word for word, is_so in (("inverted", scale < 0), ("taken as W", abs(scale) < 1)) if is_so]
                self.notes[car] = f"power is {' and '.join(changes)}: so it agrees with motion" if changes else ""
        elif cosine < CONTRADICTS and self.trusted[car]:
            self.trusted[car] = False
            self.notes[car] = "power does not agree with motion and is not used"

    def distrust(self, cars: Cars) -> None:
        """Begin anew: the feed changed its units."""
        for car in cars.tolist():
            if not self.fixed[car] and self.trusted[car]:
                self.trusted[car], self.scale[car] = False, 1.0
                self._n[car] = self._pp[car] = self._mm[car] = self._pm[car] = 0.0
                self.notes[car] = "power left its limits; its unit is being found out"

    def to_dict(self, car: int) -> dict[str, Any]:
        return kept(self._memory, car) | {"note": self.notes.get(car)}

    def restore(self, car: int, saved: dict[str, Any]) -> None:
        if not self.fixed[car]:
            restore(self._memory, car, saved, finite=True)
            if saved["note"]:
                self.notes[car] = str(saved["note"])

    @property
    def _memory(self) -> dict[str, NDArray]:
        return {name: getattr(self, name) for name in ("_n", "_pp", "_mm", "_pm", "scale", "trusted")}
