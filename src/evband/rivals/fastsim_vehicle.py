"""FASTSim's vehicle model fitted to the car: the engineer's way, a handful of numbers with a meaning."""

from __future__ import annotations

from itertools import pairwise
from typing import Self

import numpy as np
from scipy.optimize import minimize

from evband.mixtures import StudentMixture
from evband.rivals.base import Rival, known
from evband.rivals.least_squares import fit_student, scale_design, solve_ridge
from evband.rivals.rows import Rows
from evband.simulation.physics import drive
from evband.simulation.vehicles import CARS, GRAVITY, Car

FITTED_ROWS = 6000  # drives worth this many rows tell mass, drag and rolling resistance well enough
RAMP_MS2 = 2.0  # FASTSim starts at rest: a segment that does not is led in to its speed


class FastSim(Rival):
    """Mass, drag area and rolling resistance by search over FASTSim runs; auxiliaries, heating, cooling and the efficiency
    of driving and of regenerating by least squares on what each run says."""

    def fit_rows(self, rows: Rows) -> Self:
        part = rows.take(_some_drives(rows))
        start = np.log([1800.0, 0.6, 0.009])  # kg, cd A in m2, rolling coefficient

        def error(p: np.ndarray) -> float:
            design = self._design(part, np.exp(p))
            mask = np.isfinite(part.y)
            w = solve_ridge(design[mask], part.y[mask], 1e-9)
            prior = 0.02 * float(np.sum(((p - start) / 0.5) ** 2)) / len(p)
            return float(np.mean((part.y[mask] - design[mask] @ w[:-1] - w[-1]) ** 2)) * (1 + prior)

        found = minimize(error, start, method="Nelder-Mead", options={"maxfev": 60, "xatol": 0.01, "fatol": 1e-4})
        self.car_ = np.exp(found.x)
        mask = known(rows)
        design = self._design(rows, self.car_)
        self.weights_ = solve_ridge(design[mask], rows.y[mask], 1e-9)
        residual = (rows.y - design @ self.weights_[:-1] - self.weights_[-1])[mask]
        self.scale_, self.nu_ = fit_student(scale_design(rows.r[mask, : rows.terms]), residual)
        return self

    def predict_rows(self, rows: Rows) -> StudentMixture:
        mu = self._design(rows, self.car_) @ self.weights_[:-1] + self.weights_[-1]
        s = np.exp(np.clip(scale_design(rows.r[:, : rows.terms]) @ self.scale_, -12, 12))
        return StudentMixture(mu[None], s[None], np.array([self.nu_]))

    def _design(self, rows: Rows, fitted: np.ndarray) -> np.ndarray:
        """[n, 4]: FASTSim's power while driving and while regenerating, degrees of cold and of heat."""
        power = self._simulate(rows, _car(*fitted))
        cold, hot = self._signal(rows, "cold"), self._signal(rows, "hot")
        return np.stack([np.maximum(power, 0), np.minimum(power, 0), cold, hot], -1)

    def _simulate(self, rows: Rows, car: Car) -> np.ndarray:
        """Battery power [n] of each segment driven through FASTSim; a bin's end speed is its mean + a step / 2."""
        step = 1.0 / rows.hz
        mean_ms = self._signal(rows, "speed_kmh") / 3.6
        speed = np.maximum(mean_ms + 0.5 * step * self._signal(rows, "acceleration_ms2"), 0.0)
        force = self._signal(rows, "grade") * car.mass_kg * GRAVITY
        power = np.empty(len(rows))
        ends = np.append(np.flatnonzero(rows.start), len(rows))
        for a, b in pairwise(ends.tolist()):
            lead = np.arange(0.0, speed[a], RAMP_MS2 * step) if speed[a] > 0 else np.zeros(1)
            trace, slope = np.append(lead, speed[a:b]), np.append(np.zeros(len(lead)), force[a:b])
            power[a:b] = drive(car, trace, step, aux_w=0.0, resistance_n=slope).power_kw[len(lead) :]
        return power

    def _signal(self, rows: Rows, name: str) -> np.ndarray:
        """A network input in its own unit; zero where these trips do not have it."""
        features = self.feature_map_
        if name not in features.input_names:
            return np.zeros(len(rows))
        at = features.input_names.index(name)
        return np.asarray(rows.x[:, at] * features.x_scale[at] + features.x_shift[at], dtype=float)


def _car(mass_kg: float, drag_area_m2: float, rolling: float) -> Car:
    """A car strong enough for any trace: limits are the real car's business, the trace shows what it could do."""
    base = CARS["sedan_1"]
    return Car(base.resource, mass_kg, drag_area_m2 / 2.2, 2.2, rolling, base.wheel_radius_m, 400.0, 500.0, nu=5.0)


def _some_drives(rows: Rows) -> np.ndarray:
    """[n] bool: trips spread over the training set until there are rows enough."""
    mask, names = np.zeros(len(rows), dtype=bool), np.unique(rows.group)
    for name in names[np.random.default_rng(0).permutation(len(names))]:
        mask |= rows.group == name
        if mask.sum() >= FITTED_ROWS:
            break
    return mask
