"""FASTSim's vehicle model fitted to the car: the engineer's way, a handful of numbers with a meaning."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize

from evband.bands.mixtures import StudentMixture
from evband.rivals.base import Rival, known
from evband.rivals.rows import Rows
from evband.rivals.student import fit_student, linear, residual_scale, scale_design, solve_ridge
from evband.simulation.physics import driven
from evband.simulation.vehicles import CARS, fastsim_vehicle, import_fastsim

FITTED_ROWS = 6000  # drives worth this many rows tell mass, drag and rolling resistance well enough
ENDLESS_KW = 1e6  # of motor and, in kWh, battery: more than any step asks for
AT_REST_MS = 0.1
DRAWN = 0.1  # share of a bin's own reading in the speed at its end
RAMP_MS2 = 2.0  # FASTSim starts at rest: a segment that does not is led in to its speed


class FastSim(Rival):
    """Mass, drag area, rolling resistance and how far to trust the grade by search over FASTSim runs; auxiliaries, heating,
    cooling and the efficiency of driving and of regenerating by least squares on what each run says."""

    def fit_rows(self, rows: Rows) -> Self:
        part = rows.take(_some_drives(rows))
        start = np.log([1800.0, 0.6, 0.009, 0.6])  # kg, cd A in m2, rolling coefficient, share of the grade

        def error(p: np.ndarray) -> float:
            design = self._design(part, np.exp(p))
            mask = np.isfinite(part.y)
            w = solve_ridge(design[mask], part.y[mask], 1e-9)
            prior = 0.02 * float(np.sum(((p - start) / 0.5) ** 2)) / len(p)
            return float(np.mean((part.y[mask] - linear(design[mask], w)) ** 2)) * (1 + prior)

        found = minimize(error, start, method="Nelder-Mead", options={"maxfev": 80, "xatol": 0.01, "fatol": 1e-4})
        self.car_ = np.exp(found.x)
        mask = known(rows)
        design = self._design(rows, self.car_)
        self.weights_ = solve_ridge(design[mask], rows.y[mask], 1e-9)
        residual = (rows.y - linear(design, self.weights_))[mask]
        self.scale_, self.nu_ = fit_student(scale_design(rows.r[mask, : rows.terms]), residual)
        return self

    def predict_rows(self, rows: Rows) -> StudentMixture:
        mu = linear(self._design(rows, self.car_), self.weights_)
        s = residual_scale(rows.r[:, : rows.terms], self.scale_)
        return StudentMixture(mu[None], s[None], np.array([self.nu_]))

    def _design(self, rows: Rows, fitted: np.ndarray) -> np.ndarray:
        """[n, 4]: FASTSim's power while driving and while regenerating, degrees of cold and of heat."""
        power = self._simulate(rows, _vehicle(*fitted[:3]), float(fitted[3]))
        cold, hot = self._signal(rows, "cold"), self._signal(rows, "hot")
        return np.stack([np.maximum(power, 0), np.minimum(power, 0), cold, hot], -1)

    def _simulate(self, rows: Rows, vehicle: dict[str, Any], trust: float) -> np.ndarray:
        """Battery power [n] of each segment driven through FASTSim."""
        fastsim = import_fastsim()
        step = 1.0 / rows.hz
        mean_ms, acceleration = self._signal(rows, "speed_kmh") / 3.6, self._signal(rows, "acceleration_ms2")
        grade = trust * self._signal(rows, "grade")
        power = np.empty(len(rows))
        for a, b in pairwise(np.append(np.flatnonzero(rows.start), len(rows)).tolist()):
            speed = end_speeds(mean_ms[a:b], acceleration[a:b], step)
            lead = np.arange(0.0, max(float(speed[0]), 1e-9), RAMP_MS2 * step)
            trace, slope = np.append(lead, speed), np.append(np.zeros(len(lead)), grade[a:b])
            power[a:b] = driven(fastsim.Vehicle.from_dict(vehicle), trace, step, slope, full=False)[1][len(lead) :]
        return power

    def _signal(self, rows: Rows, name: str) -> np.ndarray:
        """A network input in its own unit; zero where these trips do not have it."""
        features = self.feature_map_
        if name not in features.input_names:
            return np.zeros(len(rows))
        at = features.input_names.index(name)
        return np.asarray(rows.x[:, at] * features.x_scale[at] + features.x_shift[at], dtype=float)


def end_speeds(mean_ms: np.ndarray, acceleration_ms2: np.ndarray, step_s: float) -> np.ndarray:
    """Speed at the end of every bin: the last one carried on by the acceleration, drawn to the bin's mean + a step / 2.

    e = (1 - k)(e' + a step) + k (v + a step / 2), at rest k = 1. With k = 1 throughout, FASTSim's own acceleration (its
    difference) would be the sum of two noisy readings: a third more error on road logs.
    """
    seen = mean_ms + 0.5 * step_s * acceleration_ms2
    ends, last = np.empty_like(seen), float(seen[0])
    for i, (mean, a) in enumerate(zip(mean_ms.tolist(), acceleration_ms2.tolist(), strict=True)):
        k = 1.0 if mean < AT_REST_MS else DRAWN
        last = max((1 - k) * (last + a * step_s) + k * float(seen[i]), 0.0)
        ends[i] = last
    return ends


def _vehicle(mass_kg: float, drag_area_m2: float, rolling: float) -> dict[str, Any]:
    """A FASTSim vehicle that can follow any trace: the trace itself shows what the real car could do.

    FASTSim stops, or even crashes, where a step asks for more than motor, battery or tyres can give. So none of them has
    a limit worth the name, while the motor's efficiency at each power stays that of the car it is built on.
    """
    model = CARS["sedan_1"]
    car = replace(
        model,
        mass_kg=mass_kg,
        frontal_area_m2=drag_area_m2 / model.drag_coef,
        rolling_coef=rolling,
        motor_kw=ENDLESS_KW,
        battery_kwh=ENDLESS_KW,
    )
    settings: dict[str, Any] = fastsim_vehicle(car, aux_w=0.0).to_dict()
    settings["chassis"].update(wheel_fric_coef=1000.0, drive_type="AWD")
    motor = settings["pt_type"]["BEV"]["em"]
    for name in ("eff_interp_achieved", "eff_interp_at_max_input"):
        _shrink(motor[name]["data"], model.motor_kw / ENDLESS_KW)
    return settings


def _shrink(curve: dict[str, Any], factor: float) -> None:
    """An efficiency curve over the share of full power, pressed to a smaller share and held from there to the old end."""
    grid, values = curve["grid"][0], curve["values"]
    grid["data"] = [factor * x for x in grid["data"]] + grid["data"][-1:]
    values["data"] = values["data"] + values["data"][-1:]
    grid["dim"] = values["dim"] = [len(values["data"])]


def _some_drives(rows: Rows) -> np.ndarray:
    """[n] bool: trips spread over the training set until there are rows enough."""
    mask, names = np.zeros(len(rows), dtype=bool), np.unique(rows.group)
    for name in names[np.random.default_rng(0).permutation(len(names))]:
        mask |= rows.group == name
        if mask.sum() >= FITTED_ROWS:
            break
    return mask
