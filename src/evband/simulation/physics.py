"""One drive through FASTSim: a speed trace in, battery power out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import SettingsError
from evband.simulation.vehicles import GRAVITY, Car, fastsim_vehicle, import_fastsim

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Physics:
    """A drive without any noise, at steps of `step_s`; row i tells of (t_i - step, t_i]. All [steps]."""

    time_s: Array
    speed_ms: Array  # mean over the step
    acceleration_ms2: Array  # mean over the step
    power_kw: Array  # at the battery's terminals, positive = discharge
    motor_kw: Array  # mechanical, at the motor's shaft
    energy_kwh: Array  # drawn from the battery since the start

    def every(self, steps: int) -> Physics:
        """Means over `steps` steps each; the first row, the instant before the drive, stays."""

        def mean(values: Array) -> Array:
            return np.concatenate([values[:1], values[1:].reshape(-1, steps).mean(axis=1)])

        return Physics(
            self.time_s[::steps],
            mean(self.speed_ms),
            mean(self.acceleration_ms2),
            mean(self.power_kw),
            mean(self.motor_kw),
            self.energy_kwh[::steps],
        )


def driven(
    vehicle: Any, speed_ms: Array, step_s: float, grade: Array | None = None, full: bool = True
) -> tuple[dict[str, Any], Array]:
    """A FASTSim vehicle after this trace, as a dict with its history, and its battery's power [steps] in kW.

    `full`: it begins with a full battery, which cannot take what a downhill start gives.
    """
    fastsim = import_fastsim()
    cycle = {"time_seconds": np.arange(len(speed_ms)) * step_s, "speed_meters_per_second": speed_ms}
    if grade is not None:
        cycle["grade"] = grade
    trace = fastsim.Cycle.from_dict({name: values.tolist() for name, values in cycle.items()})
    simulation = fastsim.SimDrive(vehicle, trace)
    if full:
        simulation.run()
    else:
        simulation.run_once()
    after: dict[str, Any] = simulation.to_dict()["veh"]
    return after, np.asarray(after["pt_type"]["BEV"]["res"]["history"]["pwr_out_electrical_watts"]) / 1000.0


def drive(
    car: Car,
    speed_ms: Array,
    step_s: float,
    *,
    aux_w: float = 350.0,
    load_kg: float = 0.0,
    resistance_n: Array | None = None,
) -> Physics:
    """Drive the trace `speed_ms` [steps]; `resistance_n` is force beyond the level road in still air: slope and wind.

    FASTSim knows slopes but no wind, so both go in as the slope that asks for the same force, grade = F / (m g). Its air
    density is one constant, so a slope changes nothing else.
    """
    grade = None if resistance_n is None else resistance_n / ((car.mass_kg + load_kg) * GRAVITY)
    try:
        vehicle, power = driven(fastsim_vehicle(car, aux_w, load_kg), speed_ms, step_s, grade)
    except RuntimeError:  # FASTSim's own words are a page long
        raise SettingsError("this drive asks for more power than the simulated car has; choose another seed.") from None
    battery, motor = vehicle["pt_type"]["BEV"]["res"]["history"], vehicle["pt_type"]["BEV"]["em"]["history"]
    achieved = np.asarray(vehicle["history"]["speed_ach_meters_per_second"])
    before = np.concatenate([achieved[:1], achieved[:-1]])
    shaft = (np.asarray(motor["pwr_mech_prop_out_watts"]) - np.asarray(motor["pwr_mech_dyn_brake_watts"])) / 1000.0
    power[0], shaft[0] = aux_w / 1000.0, 0.0  # FASTSim's first row is not a step; every drive starts at rest
    return Physics(
        np.arange(len(speed_ms), dtype=np.float64) * step_s,
        0.5 * (achieved + before),
        (achieved - before) / step_s,
        power,
        shaft,
        np.asarray(battery["energy_out_chemical_joules"]) / 3.6e6,
    )
