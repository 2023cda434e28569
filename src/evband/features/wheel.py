"""Terms of a car that is known by its data sheet: power at its wheels, per kilogram, and the parts it is made of.

    p = 1.05 k + c_rr g v + rho CdA v^3 / (2 m) + g v grade        W/kg, k = (v_end^2 - v_start^2) / (2 D)

Per kilogram of the car all cars are alike enough to share weights; what a cabin draws does not grow with the car, so
its terms are divided by the mass in units of `USUAL_KG` (by their scale). Elevation and temperature may be unknown (NaN): their terms
are then zero, and inputs say that they are unknown. Speed readings per second tell the network how noisy the log
may be, and `SENSED` that acceleration is a sensor's: what it shows beside the change of speed (`felt`, slope above all) has
a weight of its own. Floats (a tick) and arrays (a trip) alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from evband.channels import DENSE, READINGS, SENSED
from evband.errors import ArtifactError
from evband.features.map import FeatureMap, _columns
from evband.features.road_load import CHANGE, FADE, KINETIC, air_density, ambient_hinges, positive
from evband.vehicles.physics import GRAVITY, ROTATING

Wheel = tuple[float, float, float]  # mass in kg with driver and load, CdA in m2, c_rr

OPTIONAL = ("elevation_m", "ambient_temp_c")  # may be missing in a log
KNOTS_W_KG = (-25.0, -12.0, -5.0, 5.0, 12.0, 25.0)  # efficiency and regeneration bend there
USUAL: Wheel = (1500.0, 0.65, 0.009)
USUAL_KG = USUAL[0]
AIR = 1.225  # kg/m3 at 15 C
OWN = ("own mass_kg", "own cda_m2", "own crr")  # signals of rows that belong to other cars than the sheet's
MILD_C = 20.0  # stands in for an unknown temperature: neither heats nor cools

INPUTS = (
    "speed_kmh", "acceleration_ms2", "dv", "wheel", "braking", "aero", "grade", "cold", "hot", "grade known",
    "ambient known", "fade", "one", READINGS, SENSED,
)  # fmt: skip
ROADS = (
    "wheel", "braking", *(f"max(0,wheel-{knot:g})" for knot in KNOTS_W_KG), "inertia", "a*v", "slowing", "rolling",
    "aero", "slope", "dv", "felt", "cold", "hot", "fade*cold", "fade*hot", "fade", "one", "ambient unknown",
)  # fmt: skip
# terms whose kilowatts do not grow with the mass
CABIN = frozenset({"cold", "hot", "fade*cold", "fade*hot", "fade", "one", "ambient unknown"})


def wheel_terms(signals: Mapping[str, Any], wheel: Wheel) -> tuple[dict[str, Any], dict[str, Any]]:
    """(inputs, road-load terms) of signals; `elevation_m` stands for the past grade, NaN where it is unknown."""
    mass, cda, crr = wheel
    v, a = signals["speed_kmh"] / 3.6, signals["acceleration_ms2"]
    k, dv = signals.get(KINETIC, a * v), signals.get(CHANGE, a)  # by default a steady pull, long under way
    fade = signals.get(FADE, 0.0 * v)
    grade, ambient = signals["elevation_m"], signals["ambient_temp_c"]
    seen, told = 1.0 * (grade == grade), 1.0 * (ambient == ambient)  # NaN is not itself
    grade, ambient = np.where(seen, grade, 0.0), np.where(told, ambient, MILD_C)
    cold, hot = ambient_hinges(ambient)
    inertia, rolling, slope = ROTATING * k, crr * GRAVITY * v, GRAVITY * grade * v
    aero = 0.5 * AIR * cda / mass * v * v * v * air_density(ambient)
    power = inertia + rolling + aero + slope
    braking, one = -positive(-power), 1.0 + 0.0 * v
    dense = DENSE - positive(DENSE - signals.get(READINGS, one))
    sensed = signals.get(SENSED, 0.0 * v)
    inputs = (signals["speed_kmh"], a, dv, power, braking, aero, grade, cold, hot, seen, told, fade, one, dense, sensed)
    hinges = [positive(power - knot) for knot in KNOTS_W_KG]
    roads = (
        power, braking, *hinges, inertia, a * v, -positive(-inertia), rolling, aero, slope, dv, sensed * (a - dv) * v, cold,
        hot, fade * cold, fade * hot, fade, one, 1.0 - told,
    )  # fmt: skip
    return dict(zip(INPUTS, inputs, strict=True)), dict(zip(ROADS, roads, strict=True))


@dataclass
class SheetMap(FeatureMap):
    """The features of a car that nobody has measured: scales come from a population of cars, physics from its sheet."""

    optional: ClassVar[tuple[str, ...]] = OPTIONAL
    farthest: ClassVar[float] = 6.0
    wheel: Wheel = USUAL

    def _rows(self, signals: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Scaled inputs, which reach no further than `farthest` deviations, and road features of rows or of one tick."""
        wheel: Any = tuple(signals[name] for name in OWN) if OWN[0] in signals else self.wheel
        inputs, roads = wheel_terms(signals, wheel)
        heavy = 1.0 if wheel is self.wheel else np.asarray(wheel[0])[..., None] / self.wheel[0]
        x_unit = np.where([name == "one" for name in self.input_names], heavy, 1.0)
        r_unit = np.where([name in CABIN for name in self.road_names], heavy, 1.0)
        x = (_columns([inputs[name] for name in self.input_names]) - self.x_shift * x_unit) / (self.x_scale * x_unit)
        r = _columns([roads[name] for name in self.road_names])
        r = np.minimum(np.maximum(r, self.r_low), self.r_high)
        return np.clip(x, -self.farthest, self.farthest), (r - self.r_shift) / (self.r_scale * r_unit)

    def readings_of(self, x: np.ndarray) -> np.ndarray:
        """[rows]: speed readings per second that inputs [rows, inputs] were made of, 1 to `DENSE`."""
        return np.clip(self._input(x, READINGS), 1.0, DENSE) if self.dense else np.full(len(x), DENSE)

    def grade_known(self, x: np.ndarray) -> np.ndarray:
        """[rows] bool: whether inputs [rows, inputs] were made with a slope."""
        return self._input(x, "grade known") > 0.5

    def _input(self, x: np.ndarray, name: str) -> np.ndarray:
        """[rows] before they were scaled."""
        k = self.input_names.index(name)
        return np.asarray(x[:, k] * self.x_scale[k] + self.x_shift[k])

    def terms(self, signals: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Those of the car on the sheet."""
        return wheel_terms(signals, self.wheel)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        return super().from_dict({**saved, "wheel": tuple(float(number) for number in saved["wheel"])})

    def _checked(self) -> Self:
        if len(self.wheel) != 3 or not all(0 < number < 1e6 for number in self.wheel):
            raise ArtifactError("the data sheet in the model file is damaged; start the model again.")
        if set(self.input_names) - set(INPUTS) or set(self.road_names) - set(ROADS):
            raise ArtifactError("the model file has terms that this evband does not know; update evband.")
        return super()._checked()
