"""A highway drive as a phone app logs it over OBD, simulated: one reading per row, about one per second and channel.

What the log shows: speed, motor torque and rpm, battery voltage and current, GPS elevation, ambient temperature, state
of charge, and the head wind (positive = against the car) as a weather service knows it. There is no power: it follows
from current and voltage. What it hides: gusts, passengers and luggage, and a share of the auxiliaries; these are the
trip-to-trip effects that real drives have. A few readings are glitches, a few are lost, and once the link drops.

The current's noise, times the voltage, is Student-t in kW; rows with a current reading carry `true_power_kw`,
`true_scale_kw` and `true_nu` (scale and nu are missing where the reading is a glitch).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evband.simulation.cycles import elevation_and_grade, follow, hills, random_drive, smooth_noise
from evband.simulation.physics import Physics, drive
from evband.simulation.vehicles import CARS, GRAVITY, Car
from evband.vehicles.physics import COOLING_ABOVE_C, HEATING_BELOW_C

Array = NDArray[np.float64]

STEP_S = 0.25  # of the physics
GEAR_RATIO = 10.65
CELLS_EMPTY_V, CELLS_FULL_V, RESISTANCE_OHM = 610.0, 760.0, 0.12  # open-circuit voltage over state of charge
GUST_MS = 0.7
POLLED = ("motor_torque_nm", "motor_rpm", "battery_voltage_v", "battery_current_a", "speed_kmh")  # in turn
SLOW_S = {"elevation_m": 1.0, "ambient_temp_c": 10.0, "soc_pct": 10.0, "wind_ms": 30.0}  # seconds between readings
RESOLUTION = {
    "speed_kmh": 0.1, "motor_torque_nm": 0.5, "motor_rpm": 1.0, "battery_voltage_v": 0.1, "battery_current_a": 0.1,
    "elevation_m": 0.1, "ambient_temp_c": 0.5, "soc_pct": 0.5, "wind_ms": 0.1,
}  # fmt: skip
GLITCHES = (("battery_current_a", -655.36, 3), ("battery_voltage_v", 6553.5, 1), ("motor_rpm", 65535.0, 1))
LOST_SHARE = 0.01


@dataclass(frozen=True)
class Weather:
    """The day of a drive."""

    ambient_c: float
    wind_ms: float  # mean head wind
    aux_w: float
    load_kg: float


def highway_drive(trip: int, rng: np.random.Generator) -> pl.DataFrame:
    """The log of drive number `trip`: 0 takes about 80 minutes of highway, later ones 20 to 60 minutes of all roads."""
    car, day = CARS["highway"], _weather(rng)
    reference = random_drive(_stretches(trip, rng), rng)
    count = int(reference[0][-1] / STEP_S) + 1
    speed = follow(reference, STEP_S, count, 1.5, rng)
    distance = np.cumsum(speed) * STEP_S
    posts, height = hills(distance[-1] + 40.0, 25.0, rng)
    elevation, grade = elevation_and_grade(distance, posts, 220.0 + height)
    wind = day.wind_ms + 0.8 * smooth_noise(count, 600.0 / STEP_S, rng)
    gusts = wind + GUST_MS * smooth_noise(count, 6.0 / STEP_S, rng)
    air = car.drag_kg_per_m * ((speed + gusts) * np.abs(speed + gusts) - speed**2)
    slope = (car.mass_kg + day.load_kg) * GRAVITY * grade
    moving = np.tanh(speed)
    truth = drive(car, speed, STEP_S, aux_w=day.aux_w, load_kg=day.load_kg, resistance_n=(air + slope) * moving)
    signals = _signals(car, truth, rng) | {
        "elevation_m": elevation + 0.3 * smooth_noise(count, 20.0 / STEP_S, rng),
        "ambient_temp_c": day.ambient_c + 0.7 * smooth_noise(count, 900.0 / STEP_S, rng),
        "wind_ms": wind,
    }
    return _log(car, truth, signals, rng)


def _stretches(trip: int, rng: np.random.Generator) -> list[tuple[str, float]]:
    if trip == 0:
        return [
            ("town", 180.0),
            ("motorway", 1800.0),
            ("traffic", 240.0),
            ("motorway", 2100.0),
            ("rural", 180.0),
            ("town", 120.0),
        ]
    kinds = ["town", *rng.choice(["rural", "motorway", "motorway", "traffic"], size=3).tolist(), "town"]
    return [(kind, float(rng.uniform(240.0, 720.0))) for kind in kinds]


def _weather(rng: np.random.Generator) -> Weather:
    """Auxiliaries: 300 W, 100 W per degree of heating, 80 W per degree of cooling, and 150 W of habits nobody logs."""
    ambient = float(rng.uniform(-5.0, 30.0))
    heating, cooling = max(0.0, HEATING_BELOW_C - ambient), max(0.0, ambient - COOLING_ABOVE_C)
    aux = 300.0 + 100.0 * heating + 80.0 * cooling + 150.0 * float(rng.standard_normal())
    return Weather(ambient, float(3.5 * rng.standard_normal()), max(150.0, aux), float(rng.uniform(0.0, 250.0)))


def _signals(car: Car, truth: Physics, rng: np.random.Generator) -> dict[str, Array]:
    """What the car's own sensors follow, without the current's noise. P = V I with V = V_open - R I gives the current."""
    soc = rng.uniform(0.75, 0.95) - truth.energy_kwh / car.battery_kwh
    open_v = CELLS_EMPTY_V + (CELLS_FULL_V - CELLS_EMPTY_V) * soc
    current = (open_v - np.sqrt(open_v**2 - 4.0 * RESISTANCE_OHM * 1000.0 * truth.power_kw)) / (2.0 * RESISTANCE_OHM)
    shaft_rad_s = truth.speed_ms / car.wheel_radius_m * GEAR_RATIO
    torque = 1000.0 * truth.motor_kw / np.maximum(shaft_rad_s, 5.0)
    return {
        "speed_kmh": 3.6 * truth.speed_ms,
        "motor_torque_nm": torque * (1.0 + 0.01 * rng.standard_normal(len(torque))),
        "motor_rpm": shaft_rad_s * 60.0 / (2.0 * np.pi),
        "battery_voltage_v": open_v - RESISTANCE_OHM * current,
        "battery_current_a": current,
        "soc_pct": 100.0 * soc,
    }


def _instants(end_s: float, rng: np.random.Generator) -> dict[str, Array]:
    """When each channel is read: five in turn, some 0.2 s each with the adapter's jitter; the slow ones in between."""
    answers = rng.gamma(12.0, 0.2 / 12.0, int(end_s / 0.2 * 1.2) + 50).cumsum()
    answers = answers[answers < end_s]
    instants = {channel: answers[turn :: len(POLLED)] for turn, channel in enumerate(POLLED)}
    for channel, period in SLOW_S.items():
        times = period * np.arange(int(end_s / period))  # the first at once, when the app connects
        instants[channel] = times + rng.uniform(0.0, 0.3, len(times))
    link_lost = rng.uniform(0.3, 0.7) * end_s
    link_back = link_lost + rng.uniform(20.0, 45.0)
    for channel, times in instants.items():
        heard = ((times < link_lost) | (times > link_back)) & (rng.random(len(times)) > LOST_SHARE)
        instants[channel] = np.unique(np.round(times[heard], 3))
    return instants


def _log(car: Car, truth: Physics, signals: dict[str, Array], rng: np.random.Generator) -> pl.DataFrame:
    """One table, a row for every instant at which something was read."""
    middle = truth.time_s - STEP_S / 2  # a step's means belong to its middle
    instants = _instants(float(truth.time_s[-1]), rng)
    values = {channel: np.interp(times, middle, signals[channel]) for channel, times in instants.items()}

    times = instants["battery_current_a"]
    speed, acceleration = np.interp(times, middle, truth.speed_ms), np.interp(times, middle, truth.acceleration_ms2)
    scale_kw = car.noise_scale_kw(speed, acceleration)
    noise_kw = scale_kw * rng.standard_t(car.nu, len(times))
    values["battery_current_a"] += 1000.0 * noise_kw / np.interp(times, middle, signals["battery_voltage_v"])
    true = pl.DataFrame(
        {
            "time_s": times,
            "true_power_kw": np.interp(times, middle, truth.power_kw),
            "true_scale_kw": scale_kw,
            "true_nu": np.full(len(times), car.nu),
        }
    )
    values = {
        channel: np.round(np.round(v / RESOLUTION[channel]) * RESOLUTION[channel], 6) + 0.0
        for channel, v in values.items()
    }
    for channel, value, count in GLITCHES:
        at = rng.choice(len(values[channel]), size=count, replace=False)
        values[channel][at] = value
    glitch = pl.Series(values["battery_current_a"] == GLITCHES[0][1])
    true = true.with_columns(pl.when(glitch).then(None).otherwise(pl.col("true_scale_kw", "true_nu")).name.keep())

    rows = pl.DataFrame({"time_s": np.unique(np.concatenate(list(instants.values())))})
    for channel, times in instants.items():
        rows = rows.join(
            pl.DataFrame({"time_s": times, channel: values[channel]}), on="time_s", how="left", maintain_order="left"
        )
    return rows.join(true, on="time_s", how="left", maintain_order="left")
