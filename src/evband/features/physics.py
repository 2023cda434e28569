"""Physics as limits of the road-load path: inequalities, linear in the path's weights, that the power of every car obeys.

With P(v, a, slope) the path's power in kW, everything else at its training median:

    standing   -1 <= P(0) <= 20 kW
    mass       300 kg <= mean over v of [P(v, A) - P(v, 0)] / (A v) <= 60 t, A = 0.5 m/s2
    speed      P(v) / v, the energy per km, does not fall from 60 km/h on, up to nine tenths of the fastest speed seen
    climb      P(v, 3 %) >= P(v), and P against a head wind of 5 m/s >= P(v)

With a data sheet (`fit --vehicle`: mass, drag area and rolling resistance) they are the car's own: the effective mass is 0.8 to 1.7
times the sheet's (it holds losses and turning wheels), and P(v) - P(0) is 0.6 to 1.8 times what the sheet asks of the wheels.

Least squares within them is the prior mean of the path. Where the plain solution obeys them all it is the same to the last bit;
else the nearest one that does, in the metric of its own loss: min (w - w0)' G (w - w0) subject to A w >= b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.features.road_load import RIDGE
from evband.vehicles.physics import wheel_power

if TYPE_CHECKING:
    from evband.features.map import FeatureMap

Array = NDArray[np.float64]

LOADS = ("motor_torque_nm", "force_n", "road_load_n")
STANDING_KW = (-1.0, 20.0)
# of the effective mass, which holds the drive train's losses: from a microcar to a loaded truck
MASS_KG = (300.0, 60_000.0)
SHEET_MASS, SHEET_STEADY = (0.8, 1.7), (0.6, 1.8)
PUSH_MS2, CLIMB, HEAD_WIND_MS = 0.5, 0.03, 5.0
SLOWEST_KMH, STEP_KMH, SEEN = 60.0, 20.0, 0.9
SWEEPS = 2000
FASTER_TAKES_LESS = "driving {:.0f} km/h takes less energy per km than {:.0f} km/h"


@dataclass(frozen=True, eq=False)
class Limits:
    """rows @ weights >= least, of the standardised weights of a path."""

    rows: Array  # [limits, K]
    least: Array  # [limits]
    broken: tuple[str, ...] = ()  # what weights that do not obey say, limit by limit

    def contradicted(self, weights: Array) -> list[str]:
        """What these weights say against physics."""
        short = self.least - self.rows @ weights
        return [text for text, missing in zip(self.broken, short.tolist(), strict=True) if missing > 1e-9]

    def nearest(self, weights: Array, gram: Array) -> Array:
        """The weights, if they obey; else the nearest that do, by Hildreth's method on the dual (one multiplier per limit)."""
        short = self.least - self.rows @ weights
        if not (short > 0.0).any():
            return weights
        moves = np.linalg.solve(gram, self.rows.T)  # [K, limits]
        coupled = self.rows @ moves
        own = np.diag(coupled)
        free = np.flatnonzero(own > 1e-12 * own.max())  # a limit of nothing that varies cannot be met
        multiplier = np.zeros(len(short))
        for _ in range(SWEEPS):
            before = multiplier.copy()
            for i in free:
                multiplier[i] = max(0.0, multiplier[i] + (short[i] - coupled[i] @ multiplier) / own[i])
            if np.abs(multiplier - before).max() <= 1e-10 * (1.0 + np.abs(multiplier).max()):
                break
        return np.asarray(weights + moves @ multiplier)


def limits_of(features: FeatureMap) -> Limits | None:
    """The limits of a path on these features; None where torque or forces carry the load, or speed is not an input."""
    if "speed_kmh" not in features.channels or set(LOADS) & set(features.channels) or hasattr(features, "wheel"):
        return None  # or where a data sheet is the prior already
    top = float(features.high[features.channels.index("speed_kmh")])
    zero, one = features.y_mean, features.y_std
    standing = steady_rows(features, np.zeros(1))[0]
    rows = [standing, -standing]
    least = [(STANDING_KW[0] - zero) / one, (zero - STANDING_KW[1]) / one]
    broken = [
        f"a standing car draws {side} {kw:g} kW" for side, kw in zip(("less than", "over"), STANDING_KW, strict=True)
    ]
    speeds = np.arange(SLOWEST_KMH, SEEN * top + 1e-9, STEP_KMH)
    level = steady_rows(features, speeds)
    for slow, fast, a, b in zip(speeds[:-1], speeds[1:], level[:-1], level[1:], strict=True):
        rows.append(b / fast - a / slow)
        least.append((zero / slow - zero / fast) / one)
        broken.append(FASTER_TAKES_LESS.format(fast, slow))
    cruise = np.linspace(0.3 * top, SEEN * top, 10)
    if "acceleration_ms2" in features.channels and top > 0:
        push = steady_rows(features, cruise, acceleration_ms2=PUSH_MS2) - steady_rows(features, cruise)
        mass = (push / (PUSH_MS2 * cruise[:, None] / 3.6)).mean(0)  # tonnes over y_std
        masses = tuple(share * features.sheet[0] for share in SHEET_MASS) if features.sheet else MASS_KG
        rows += [mass, -mass]
        least += [masses[0] / 1000.0 / one, -masses[1] / 1000.0 / one]
        broken += [
            f"the car moves like {side} {kg:g} kg" for side, kg in zip(("less than", "over"), masses, strict=True)
        ]
    for kmh in SEEN * top * np.array([0.6, 0.8, 1.0]) if features.sheet else ():
        at_wheels = float(wheel_power(kmh / 3.6, 0.0, *features.sheet).total_kw)
        steady = steady_rows(features, np.array([kmh]))[0] - standing
        rows += [steady, -steady]
        least += [SHEET_STEADY[0] * at_wheels / one, -SHEET_STEADY[1] * at_wheels / one]
        broken += [f"a steady {kmh:.0f} km/h takes {side} its data sheet allows" for side in ("less than", "more than")]
    for channel, value in (("elevation_m", CLIMB), ("grade_pct", 100.0 * CLIMB), ("wind_ms", HEAD_WIND_MS)):
        if channel in features.channels:
            rows.append((steady_rows(features, cruise, **{channel: value}) - steady_rows(features, cruise)).mean(0))
            least.append(0.0)
            broken.append(f"{'a head wind' if channel == 'wind_ms' else 'climbing'} saves energy")
    return Limits(np.array(rows), np.array(least), tuple(broken))


def least_squares(gram: Array, moment: Array, ridge: float, limits: Limits | None = None) -> Array:
    """Weights [K] that minimise w' gram w / 2 - moment' w + ridge |w|^2 / 2, within these limits."""
    steady = gram + ridge * np.eye(len(gram))
    weights = np.asarray(np.linalg.solve(steady, moment), np.float64)
    return weights if limits is None else limits.nearest(weights, steady)


def contradictions(features: FeatureMap) -> list[str]:
    """What plain least squares on the training rows says against physics."""
    limits = limits_of(features)
    return [] if limits is None else limits.contradicted(least_squares(features.gram, features.moment, RIDGE))


def steady_rows(features: FeatureMap, speed_kmh: Array, **others: float) -> Array:
    """[speeds, K] road-load features of a steady pull on the level in mild, still air, long under way; `others` differ.

    `elevation_m` stands for the grade, and channels that are not named are at their training median.
    """
    values = dict(zip(features.channels, features.typical.tolist(), strict=True))
    values |= {"acceleration_ms2": 0.0, "elevation_m": 0.0, "grade_pct": 0.0, "wind_ms": 0.0, "ambient_temp_c": 20.0}
    values |= dict.fromkeys(LOADS, 0.0)
    values |= others
    signals = {c: np.full(len(speed_kmh), values[c]) for c in features.channels} | {"speed_kmh": speed_kmh}
    return np.asarray(features._rows(signals)[1], dtype=np.float64)
