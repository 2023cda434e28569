"""What a label's consumption or a coast-down says about mass, drag and tyres: one Bayes step on their logarithms.

Prior: independent, with the sheet's own spreads. Evidence: forces of the coast-down at a few speeds, and battery energy
per km on the label's cycle by simple physics. Both are known only to a common factor (efficiency, charging loss, test
conditions), which is part of the evidence's covariance R. With x = log(mass, CdA, c_rr), model h(x), Jacobian H:

    x = x0 + K (z - h(x) - H (x0 - x)),  K = P H' (H P H' + R)^-1,  P_new = (I - K H) P   (Gauss-Newton, three rounds)

What is left in correlation between the three is dropped: a sheet holds a spread for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.errors import VehicleError
from evband.vehicles.physics import AIR_DENSITY, GRAVITY, ROTATING

if TYPE_CHECKING:
    from evband.vehicles.sheet import Sheet, Source

Array = NDArray[np.float64]

COAST_DOWN_KMH = (30.0, 50.0, 80.0, 110.0)
COAST_DOWN_COMMON, COAST_DOWN_EACH = 0.03, 0.02  # relative errors of the whole curve, and of each force beside it
TEST_LOAD_KG = 136.0  # 300 lb on the kerb mass in the United States, about that in Europe
DRIVING, REGENERATING, AUXILIARY_KW = 0.90, 0.80, 0.25  # of a car on a warm bench that brakes with its motor
WALL_TO_BATTERY = 0.88
EPA_ADJUSTED = 0.70  # the label's consumption times this is what was measured on the bench
# What is left over on the catalogue's own labels (a test holds this): the mean ratio of label to physics, and its spread
# from car to car less what the sheets' own spreads explain; what both labels share is efficiency.
EPA_RATIO, EPA_SPREAD = 1.02, 0.085
WLTP_RATIO, WLTP_SPREAD = 1.065, 0.06
LABELS_SHARE = 0.05


@dataclass(frozen=True)
class Cycle:
    """A driving cycle by its integrals per metre, split into traction and braking for a typical car."""

    mean_ms: float  # mean speed, standstill included
    square: float  # integral of v^3 dt over distance, m2/s2
    kinetic: float  # integral of v a dt over traction per metre, m/s2
    rolling_share: float  # of the distance, under traction
    drag_share: float  # of the drag work, under traction

    def battery_kwh_100km(self, mass: float, cda: float, crr: float) -> float:
        """Energy from the battery: traction over its efficiency, less what braking gives back, plus auxiliaries."""
        rolling, drag, kinetic = crr * mass * GRAVITY, 0.5 * AIR_DENSITY * cda * self.square, ROTATING * mass * self.kinetic  # fmt: skip
        traction = self.rolling_share * rolling + self.drag_share * drag + kinetic
        braking = kinetic - (1 - self.rolling_share) * rolling - (1 - self.drag_share) * drag
        auxiliary = 1000.0 * AUXILIARY_KW / self.mean_ms
        return (traction / DRIVING - REGENERATING * max(braking, 0.0) + auxiliary) / 36.0


# Integrals over the published speed traces, at 1 Hz, for 1700 kg, 0.6 m2 and 0.009.
UDDS = Cycle(8.759, 219.2, 0.1641, 0.720, 0.789)
HWFET = Cycle(21.578, 517.4, 0.0473, 0.898, 0.920)
WLTC = Cycle(12.926, 514.6, 0.1312, 0.766, 0.860)  # class 3b


def epa_kwh_100km(mass: float, cda: float, crr: float) -> float:
    """The label's combined consumption at the wall by simple physics: 55 % city, 45 % motorway, adjusted."""
    bench = 0.55 * UDDS.battery_kwh_100km(mass, cda, crr) + 0.45 * HWFET.battery_kwh_100km(mass, cda, crr)
    return EPA_RATIO * bench / WALL_TO_BATTERY / EPA_ADJUSTED


def wltp_kwh_100km(mass: float, cda: float, crr: float) -> float:
    """WLTP combined consumption at the wall by simple physics."""
    return WLTP_RATIO * WLTC.battery_kwh_100km(mass, cda, crr) / WALL_TO_BATTERY


def sharpened(sheet: Sheet) -> Sheet:
    """The sheet with CdA and c_rr after the Bayes step, its figures used up; itself where it has none.

    Mass is uncertain in the step but stays as it is: what is known about it is weighed, not inferred.
    """
    h, z, noise = _evidence(sheet)
    if not len(z):
        return sheet
    first = np.log([sheet.mass_kg, sheet.cda_m2, sheet.crr])
    prior = np.diag([sheet.uncertainty(name) ** 2 for name in ("mass_kg", "cda_m2", "crr")])
    x, gain, slope = first, np.zeros((3, len(z))), np.zeros((len(z), 3))
    for _ in range(3):
        slope = np.stack([(h(x + step) - h(x - step)) / 2e-4 for step in 1e-4 * np.eye(3)], axis=1)
        gain = prior @ slope.T @ np.linalg.inv(slope @ prior @ slope.T + noise)
        x = first + gain @ (z - h(x) - slope @ (first - x))
    spread = np.sqrt(np.diag((np.eye(3) - gain @ slope) @ prior))
    _, cda, crr = np.exp(x).tolist()
    try:
        return _with(sheet, cda, crr, spread)
    except VehicleError:
        raise VehicleError(
            f"{sheet.name}: by its consumption figures or coast-down, CdA is {cda:.3g} m2 and c_rr {crr:.3g}, which cannot be; "
            "correct these figures."
        ) from None


def _with(sheet: Sheet, cda: float, crr: float, spread: Array) -> Sheet:
    source: dict[str, Source] = {**sheet.source, "cda_m2": "sharpened", "crr": "sharpened"}
    spreads = {**sheet.spread, "cda_m2": float(spread[1]), "crr": float(spread[2])}
    return replace(
        sheet, cda_m2=cda, crr=crr, cd=None, area_m2=None, epa_kwh_100km=None, wltp_kwh_100km=None, coast_down_n=None,
        coast_down_mass_kg=None, source=source, spread=spreads,
    )  # fmt: skip


def _evidence(sheet: Sheet) -> tuple[Callable[[Array], Array], Array, Array]:
    """(h, z, R): the model of the logarithms of what was measured, these, and their covariance."""
    models: list[Callable[[float, float, float], float]] = []
    seen: list[float] = []
    forces = 0
    if sheet.coast_down_n is not None:
        a, b, c = sheet.coast_down_n
        share = (sheet.coast_down_mass_kg or sheet.kerb_kg + TEST_LOAD_KG) / sheet.mass_kg
        for v in COAST_DOWN_KMH:
            models.append(partial(_road_load_n, share, v / 3.6))
            seen.append(a + b * v + c * v * v)
        forces = len(seen)
    spreads = []
    share = (sheet.kerb_kg + TEST_LOAD_KG) / sheet.mass_kg
    for figure, model, spread in (
        (sheet.epa_kwh_100km, epa_kwh_100km, EPA_SPREAD),
        (sheet.wltp_kwh_100km, wltp_kwh_100km, WLTP_SPREAD),
    ):
        if figure is not None:
            models.append(partial(_label, model, share))
            seen.append(figure)
            spreads.append(spread)
    noise = np.zeros((len(seen), len(seen)))
    noise[:forces, :forces] = COAST_DOWN_COMMON**2 + COAST_DOWN_EACH**2 * np.eye(forces)
    noise[forces:, forces:] = LABELS_SHARE**2 + np.diag([spread**2 - LABELS_SHARE**2 for spread in spreads])

    def h(x: Array) -> Array:
        m, cda, crr = np.exp(x).tolist()
        return np.log([model(m, cda, crr) for model in models])

    return h, np.log(seen), noise


def _road_load_n(share: float, speed_ms: float, mass: float, cda: float, crr: float) -> float:
    """F = c_rr m g + rho CdA v^2 / 2 at `share` of the sheet's mass."""
    return share * crr * mass * GRAVITY + 0.5 * AIR_DENSITY * cda * speed_ms**2


def _label(model: Callable[[float, float, float], float], share: float, mass: float, cda: float, crr: float) -> float:
    return model(share * mass, cda, crr)
