"""The five simulated cars: the figures a maker publishes, put into a FASTSim vehicle.

`sedan_1` and `hatchback` are cars that ship with FASTSim. The other three take the Model 3's drive-train efficiencies
and are given the mass, body, battery and motor of a car on the market, as printed in its maker's specification sheet
(curb weight plus 136 kg, the 300 lb of a dynamometer test weight; frontal area about 0.85 x width x height where none
is printed; rolling resistance typical of the tyre class, and for the truck a drag coefficient typical of full-size
pickups, because its maker prints none). They are like those cars; they are not measurements of them.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.errors import require

AIR_DENSITY = (
    1.17285  # kg/m3: both constants as FASTSim computes with them, so that force times speed is its wheel power
)
GRAVITY = 9.8
WHEEL_INERTIA = 4 * 0.815  # kg m2, four wheels, as in every FASTSim car

_MODEL_3 = "2022 Tesla Model 3 RWD thrml.yaml"
_BOLT = "2020 Chevrolet Bolt EV thrml.yaml"

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Car:
    """What sets one car apart. The power noise is Student-t with `nu` and the scale that `noise_scale_kw` states."""

    resource: str  # the FASTSim car it is built on
    mass_kg: float
    drag_coef: float
    frontal_area_m2: float
    rolling_coef: float
    wheel_radius_m: float
    motor_kw: float
    battery_kwh: float
    nu: float
    noise_floor_kw: float = 0.1
    noise_share: float = 0.06

    @property
    def drag_kg_per_m(self) -> float:
        """rho cd A / 2."""
        return 0.5 * AIR_DENSITY * self.drag_coef * self.frontal_area_m2

    def road_load_n(self, speed_ms: Array) -> Array:
        """F = c m g + (rho cd A / 2) v^2 on the level in still air; rolling resistance fades in over the first 0.3 m/s."""
        return self.rolling_coef * self.mass_kg * GRAVITY * np.tanh(speed_ms / 0.3) + self.drag_kg_per_m * speed_ms**2

    def force_n(self, speed_ms: Array, acceleration_ms2: Array) -> Array:
        """Force at the wheels: road load and inertia, wheels included; negative under braking, friction brakes included."""
        inertia = self.mass_kg + WHEEL_INERTIA / self.wheel_radius_m**2
        return self.road_load_n(speed_ms) + inertia * acceleration_ms2

    def noise_scale_kw(self, speed_ms: Array, acceleration_ms2: Array) -> Array:
        """Student-t scale of the power noise: floor + share * sqrt(demand^2 + 1), demand = force * speed in kW.

        Smooth, and a function of speed and acceleration alone, so that a model that sees these two can learn it.
        """
        demand = self.force_n(speed_ms, acceleration_ms2) * speed_ms / 1000.0
        return self.noise_floor_kw + self.noise_share * np.sqrt(demand**2 + 1.0)


CARS: dict[str, Car] = {
    # As shipped with FASTSim (2022 Tesla Model 3 RWD).
    "sedan_1": Car(_MODEL_3, 1752.0, 0.23, 2.22, 0.0070, 0.334, 239.0, 54.0, nu=5.0),
    # A heavier rear-drive sedan, from the maker's data sheet of the 2022 BMW i4 eDrive40.
    "sedan_2": Car(_MODEL_3, 2186.0, 0.24, 2.28, 0.0080, 0.334, 250.0, 80.7, nu=7.0),
    # A full-size electric pickup, from the maker's specification of the 2022 Ford F-150 Lightning, extended range.
    "truck": Car(_MODEL_3, 3021.0, 0.44, 3.42, 0.0090, 0.400, 433.0, 131.0, nu=5.0),
    # As shipped with FASTSim (2020 Chevrolet Bolt EV).
    "hatchback": Car(_BOLT, 1626.0, 0.309, 2.397, 0.0078, 0.323, 149.0, 66.0, nu=6.0),
    # A crossover, from the maker's data sheet of the 2022 Hyundai IONIQ 5 RWD, long range.
    "highway": Car(_MODEL_3, 2121.0, 0.288, 2.58, 0.0085, 0.360, 168.0, 77.4, nu=4.5),
}


def import_fastsim() -> Any:
    """FASTSim: it is an extra because only the simulator needs it."""
    return require("fastsim", "simulate")


@cache
def _shipped(resource: str) -> dict[str, Any]:
    return dict(import_fastsim().Vehicle.from_resource(resource).to_dict())


def vehicle_settings(
    resource: str,
    mass_kg: float,
    aux_w: float,
    motor_w: float,
    chassis: Mapping[str, float],
    battery: Mapping[str, Any],
) -> dict[str, Any]:
    """Those of a vehicle that FASTSim ships, with other numbers.

    FASTSim's cabin and battery temperature models are switched off and its efficiency map is read linearly (the
    shipped Model 3 reads it in steps), so that power is a smooth function of the motion.
    """
    settings = copy.deepcopy(_shipped(resource))
    settings.update(cabin="None", hvac="None", mass_kilograms=mass_kg, pwr_aux_base_watts=aux_w)
    settings["chassis"].update(chassis)
    motor = settings["pt_type"]["BEV"]["em"]
    motor["pwr_out_max_watts"] = motor_w
    motor["eff_interp_achieved"]["strategy"] = "Linear"
    motor["eff_interp_at_max_input"]["strategy"] = {"inner": "Linear", "values_transform": "Reciprocal"}
    settings["pt_type"]["BEV"]["res"].update(battery, thrml="None")
    return settings


def fastsim_vehicle(car: Car, aux_w: float, load_kg: float = 0.0) -> Any:
    """The FASTSim vehicle of a car with its auxiliaries and extra load."""
    chassis = {
        "drag_coef": car.drag_coef,
        "frontal_area_square_meters": car.frontal_area_m2,
        "wheel_rr_coef": car.rolling_coef,
        "wheel_radius_meters": car.wheel_radius_m,
        "wheel_inertia_kilogram_square_meters": WHEEL_INERTIA / 4,
    }
    battery = {
        "eff_interp": {"Constant": 0.985},
        "energy_capacity_joules": car.battery_kwh * 3.6e6,
        "pwr_out_max_watts": 1.2e3 * car.motor_kw,
    }
    mass_kg, motor_w = car.mass_kg + load_kg, car.motor_kw * 1000.0
    return import_fastsim().Vehicle.from_dict(vehicle_settings(car.resource, mass_kg, aux_w, motor_w, chassis, battery))
