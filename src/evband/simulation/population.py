"""A population of electric vehicles as they are sold, driven and logged: what a model of any car is taught with.

Every vehicle is drawn anew: its data sheet, how far the sheet is off, efficiency, regeneration, auxiliaries, cabin,
terrain, driver, and the logger that records it (a bus logger, a phone on the diagnostic port, a GPS logger). FASTSim
computes the power of the drive train; the rest is added here. No measured log is used; the spreads are what makers'
sheets, tyre labels and common loggers show, and are constants of this file. Losses are such that the catalogue's cars
would get the labels that they have (`tools.base_model.labels`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.simulation import cycles, physics
from evband.simulation.cycles import Road, around, follow, random_drive, smooth_noise
from evband.simulation.loggers import Logger, draw_logger, logged
from evband.simulation.vehicles import GRAVITY, WHEEL_INERTIA, import_fastsim, vehicle_settings
from evband.vehicles.physics import AIR_DENSITY, COOLING_ABOVE_C, HEATING_BELOW_C

Array = NDArray[np.float64]

STEP_S = 0.5
MASS_ERROR, CDA_ERROR, CRR_ERROR = 0.05, 0.08, 0.15  # relative deviations of the truth from the sheet
HEAVY_KG = 5000.0  # buses and trucks
BENCH_AUX = 0.625  # of the auxiliaries that run on a road
_CAR = "2022 Tesla Model 3 RWD thrml.yaml"  # its efficiency map is bent for each vehicle


@dataclass(frozen=True)
class Specimen:
    """One vehicle, its driver's surroundings and its logger."""

    sheet: tuple[float, float, float]  # mass kg, CdA m2, c_rr, as printed
    mass_kg: float
    cda_m2: float
    crr: float
    motor_kw: float
    peak_efficiency: float
    low_load_loss: float
    transmission: float
    battery: float
    regeneration: float  # share of braking that the motor does
    regeneration_kw: float
    regeneration_ms2: float  # the motor brakes no harder; friction does the rest
    copper: float  # W/kg of loss per (N/kg)^2 of traction, beside FASTSim's map
    spinning: float  # W/kg of loss per m/s
    creep_ms: float  # under this speed friction brakes take over
    aux_kw: float
    heating_kw_c: float
    cooling_kw_c: float
    cabin_kw: float  # the most that heating or cooling draws
    warm_up: float  # how much more the cabin draws at first
    warm_up_s: float
    terrain: float
    hurry: float
    town: float
    restless_ms2: float  # how much the pedal is worked within a second or two
    restless_s: float
    logger: Logger

    @property
    def heavy(self) -> bool:
        return self.sheet[0] > HEAVY_KG


def draw(rng: np.random.Generator) -> Specimen:
    """A vehicle from what is sold: mostly cars, some vans, a few buses and trucks."""
    kind = rng.random()
    if kind < 0.88:
        mass, bulk = around(rng, 1780.0, 0.20), 1.0
    elif kind < 0.96:
        mass, bulk = float(rng.uniform(2000.0, 3800.0)), 1.4
    else:
        mass, bulk = float(np.exp(rng.uniform(np.log(6000.0), np.log(22000.0)))), 1.0
    heavy = mass > HEAVY_KG
    more = 3.0 if heavy else 1.0
    cda = float(np.clip(bulk * 0.62 * (mass / 1700.0) ** 0.6 * around(rng, 1.0, 0.13), 0.45, 8.0))
    crr = float(rng.uniform(0.0055, 0.0085)) if heavy else around(rng, 0.0088, 0.12)
    heat_pump = 0.5 if rng.random() < 0.4 else 1.0
    return Specimen(
        sheet=(mass, cda, crr),
        mass_kg=mass * (1.0 + MASS_ERROR * rng.standard_normal()),
        cda_m2=cda * around(rng, 1.0, CDA_ERROR),
        crr=crr * around(rng, 1.0, CRR_ERROR),
        motor_kw=mass * (float(rng.uniform(0.012, 0.022)) if heavy else around(rng, 0.075, 0.3)),
        peak_efficiency=float(rng.uniform(0.91, 0.965)),
        low_load_loss=float(rng.uniform(0.01, 0.08)),
        transmission=float(rng.uniform(0.965, 0.99)),
        battery=float(rng.uniform(0.97, 0.995)),
        regeneration=float(np.sqrt(rng.beta(10.0, 1.3))),
        regeneration_kw=mass / 1000.0 * around(rng, 28.0, 0.45),
        regeneration_ms2=around(rng, 1.8, 0.4),
        copper=float(rng.uniform(0.0, 0.25)),
        spinning=float(rng.uniform(0.0, 0.010)),
        creep_ms=float(rng.uniform(3.0, 14.0)) / 3.6,
        aux_kw=more * around(rng, 0.4, 0.4),
        heating_kw_c=more * heat_pump * around(rng, 0.125, 0.4),
        cooling_kw_c=more * around(rng, 0.07, 0.4),
        cabin_kw=more * float(rng.uniform(3.0, 7.0)),
        warm_up=float(rng.uniform(0.5, 3.0)),
        warm_up_s=float(rng.uniform(150.0, 600.0)),
        terrain=around(rng, 0.7, 0.8),
        hurry=around(rng, 1.0, 0.25),
        town=float(rng.random()),
        restless_ms2=around(rng, 0.15 if heavy else 0.38, 0.45),
        restless_s=float(rng.uniform(0.5, 1.8)),
        logger=draw_logger(rng),
    )


def drive(car: Specimen, minutes: float, rng: np.random.Generator) -> pl.DataFrame:
    """The log of one drive of at most this many minutes."""
    ambient, speed, mass = set_out(car, minutes, rng)
    count = len(speed)
    elevation, grade = _terrain(car, np.cumsum(speed) * STEP_S, rng)
    force = _resistance(car, mass, speed, elevation, grade, ambient, rng)
    achieved, power = drive_train(car, mass, speed, force)
    power = _with_regeneration(car, mass, achieved, power, _limit_kw(car, rng)) + _auxiliaries(car, count, ambient, rng)
    truth = {"speed_kmh": 3.6 * achieved, "power_kw": power, "elevation_m": elevation, "grade": grade}
    return logged(car.logger, STEP_S, truth, ambient, rng)


def set_out(car: Specimen, minutes: float, rng: np.random.Generator) -> tuple[float, Array, float]:
    """(ambient temperature in C, speed in m/s that its driver asks for, mass in kg with this drive's load) of a drive."""
    ambient = float(np.clip(12.0 + 10.0 * rng.standard_normal(), -18.0, 38.0))
    speed = driven(car, minutes, rng)
    load = rng.uniform(-0.25, 0.25) if car.heavy else float(rng.random() < 1 / 3) * rng.uniform(0.0, 0.15)
    return ambient, speed, car.mass_kg * (1.0 + load)


def bench_kw(car: Specimen, speed: Array) -> Array:
    """Battery power [count] on a warm bench at 20 C, cabin and lights off, the battery free to take all that the motor brakes."""
    force = 0.5 * AIR_DENSITY * car.cda_m2 * speed**2 + car.crr * car.mass_kg * GRAVITY * np.tanh(speed / 0.5)
    achieved, power = drive_train(car, car.mass_kg, speed, force)
    return _with_regeneration(car, car.mass_kg, achieved, power, car.regeneration_kw) + BENCH_AUX * car.aux_kw


def driven(car: Specimen, minutes: float, rng: np.random.Generator) -> Array:
    """The speed in m/s, at steps of `STEP_S`, that its driver asks for on one drive."""
    reference = random_drive(_stretches(car, rng), rng, _roads(car))
    count = int(min(reference[0][-1], 60.0 * minutes) / STEP_S)
    return _restless(car, follow(reference, STEP_S, count, float(rng.uniform(0.5, 2.0)), rng), rng)


def _restless(car: Specimen, speed: Array, rng: np.random.Generator) -> Array:
    """Speed [count] with the quick changes of a real foot, in bursts: its acceleration has deviation `restless_ms2`.

    Without them only noisy loggers make a speed rough, and who learns from that takes every rough speed for a noisy log.
    """
    memory = car.restless_s / STEP_S
    size = car.restless_ms2 * 2.0**0.5 * car.restless_s  # m/s, for noise correlated as exp(-(lag / 2 memory)^2)
    bursts = np.exp(0.8 * smooth_noise(len(speed), 12.0 / STEP_S, rng) - 0.64)
    rough = speed + size * bursts * cycles.rolling(speed) * smooth_noise(len(speed), memory, rng)
    return np.asarray(np.where(speed > cycles.AT_REST_MS, np.maximum(rough, 0.0), 0.0))


def _roads(car: Specimen) -> dict[str, Road]:
    top, pull = (88.0, 0.6) if car.heavy else (1e9, 1.0)

    def road(low: float, high: float, hold: tuple[float, float], pace: tuple[float, float], stops: float) -> Road:
        quick = (pull * car.hurry * pace[0], pull * car.hurry * pace[1])
        return Road((min(low, top - 8.0), min(high, top)), hold, quick, stops)

    return {
        "town": road(15.0, 60.0, (3.0, 30.0), (0.4, 2.0), 0.42),
        "rural": road(45.0, 98.0, (8.0, 60.0), (0.25, 1.5), 0.10),
        "motorway": road(85.0, 138.0, (12.0, 90.0), (0.15, 1.0), 0.0),
        "traffic": road(5.0, 70.0, (4.0, 25.0), (0.3, 1.5), 0.2),
    }


def _stretches(car: Specimen, rng: np.random.Generator) -> list[tuple[str, float]]:
    share = np.array([0.15 + car.town, 0.5, 0.7 * (1.2 - car.town), 0.3])
    kinds = rng.choice(["town", "rural", "motorway", "traffic"], size=12, p=share / share.sum())
    return [(str(kind), float(rng.uniform(90.0, 420.0))) for kind in kinds]


def _terrain(car: Specimen, distance_m: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """(elevation, grade) of hills like those where this car lives."""
    posts, height = cycles.hills(distance_m[-1] + 60.0, 30.0, rng)
    return cycles.elevation_and_grade(distance_m, posts, car.terrain * height + float(rng.uniform(0.0, 400.0)))


def _resistance(
    car: Specimen, mass: float, speed: Array, elevation: Array, grade: Array, ambient: float, rng: np.random.Generator
) -> Array:
    """Drag in wind, rolling resistance of cold or wet tyres that warm up, slope; in N."""
    count = len(speed)
    density = AIR_DENSITY * 293.15 / (273.15 + ambient) * np.exp(-elevation / 8400.0)
    heading = rng.uniform(0.0, 2.0 * np.pi) + 1.5 * smooth_noise(count, 60.0 / STEP_S, rng)
    wind = 0.7 * abs(3.0 * rng.standard_normal()) * np.cos(heading) + 0.6 * smooth_noise(count, 8.0 / STEP_S, rng)
    wet = 1.12 if rng.random() < 0.25 else 1.0
    warming = 1.0 + 0.15 * np.exp(-np.arange(count) * STEP_S / 900.0)
    tyres = car.crr * wet * (1.0 + 0.004 * max(0.0, 20.0 - ambient)) * warming
    air = speed + wind
    force = 0.5 * density * car.cda_m2 * air * np.abs(air) + (tyres + grade) * mass * GRAVITY
    return np.asarray(force * np.tanh(speed / 0.5))


def drive_train(car: Specimen, mass: float, speed: Array, force_n: Array) -> tuple[Array, Array]:
    """(speed achieved in m/s, battery power in kW) by FASTSim; all resistance goes in as the slope that asks for it."""
    chassis = {
        "drag_coef": 1e-6, "frontal_area_square_meters": 1.0, "wheel_rr_coef": 1e-9, "wheel_radius_meters": 0.334,
        "wheel_inertia_kilogram_square_meters": WHEEL_INERTIA / 4 * mass / 1750.0,
    }  # fmt: skip
    battery = {
        "eff_interp": {"Constant": car.battery}, "energy_capacity_joules": 3.6e6 * 2000.0,
        "pwr_out_max_watts": 1.6e3 * car.motor_kw,
    }  # fmt: skip
    fastsim, settings = import_fastsim(), vehicle_settings(_CAR, mass, 0.0, 1.3e3 * car.motor_kw, chassis, battery)
    motor = settings["pt_type"]["BEV"]["em"]
    load = np.array(motor["eff_interp_achieved"]["data"]["grid"][0]["data"])
    efficiency = car.peak_efficiency - car.low_load_loss * np.exp(-load / 0.06) - 0.02 * load
    for name in ("eff_interp_achieved", "eff_interp_at_max_input"):
        motor[name]["data"]["values"]["data"] = efficiency.tolist()
    motor["eff_interp_at_max_input"]["data"]["grid"][0]["data"] = (load / efficiency).tolist()
    vehicle, power = physics.driven(fastsim.Vehicle.from_dict(settings), speed, STEP_S, force_n / (mass * GRAVITY))
    power[0] = 0.0  # FASTSim's first row is not a step
    return np.asarray(vehicle["history"]["speed_ach_meters_per_second"]), power


def _limit_kw(car: Specimen, rng: np.random.Generator) -> float:
    """What the battery takes on this drive: half of the limit where it is cold or full."""
    return car.regeneration_kw * (0.5 if rng.random() < 0.2 else 1.0)


def _with_regeneration(car: Specimen, mass: float, speed: Array, power: Array, limit_kw: float) -> Array:
    """Blended brakes: the motor's share, less at a crawl, at most its torque and the limit; then the losses that grow with
    torque and with speed whatever the load, which FASTSim's map does not have."""
    torque = car.regeneration_ms2 * mass * speed / 1000.0
    asked = car.regeneration * np.clip(speed / car.creep_ms, 0.0, 1.0) * np.maximum(-power, 0.0)
    shaft = np.maximum(power, 0.0) * 0.98 / car.transmission - np.minimum(asked, np.minimum(torque, limit_kw))
    pull = 1000.0 * shaft / mass / np.maximum(speed, 2.0)  # N/kg
    return np.asarray(shaft + mass / 1000.0 * (car.copper * pull**2 + car.spinning * speed))


def _auxiliaries(car: Specimen, count: int, ambient: float, rng: np.random.Generator) -> Array:
    """kW of everything but traction: the cabin draws more at first, by taste, and one in eight drivers has it off."""
    heating, cooling = max(0.0, HEATING_BELOW_C - ambient), max(0.0, ambient - COOLING_ABOVE_C)
    asked = car.heating_kw_c * heating + car.cooling_kw_c * cooling
    asked *= around(rng, 1.0, 0.35) * float(rng.random() > 0.12)
    at_first = car.warm_up * rng.uniform(0.2, 1.2) * np.exp(-np.arange(count) * STEP_S / car.warm_up_s)
    cabin = np.minimum(asked * (1.0 + at_first), car.cabin_kw)
    cycling = 1.0 + 0.25 * smooth_noise(count, 40.0 / STEP_S, rng)
    return np.asarray(car.aux_kw * around(rng, 1.0, 0.2) + np.maximum(cabin * cycling, 0.0))
