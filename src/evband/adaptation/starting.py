"""`evband start`: a model of a car from its data sheet alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.base import Base
from evband.adaptation.location import centred, move_location
from evband.adaptation.plans import simulated_plans
from evband.adaptation.probes import pulls
from evband.adaptation.state import Adaptation
from evband.calibration.value import Calibration
from evband.errors import SettingsError, VehicleError
from evband.features.wheel import CABIN, INPUTS, ROADS, USUAL, USUAL_KG, SheetMap, Wheel

if TYPE_CHECKING:
    from evband.model import PowerModel
    from evband.vehicles import Sheet

POPULATION = {"mass_kg": 0.05, "cda_m2": 0.08, "crr": 0.15}  # relative errors of the sheets that the base was made with
PARTS = {"mass_kg": ("inertia", "rolling", "slope"), "cda_m2": ("aero",), "crr": ("rolling",)}
PER_WHEEL = 1.1  # W at the battery for one at the wheels, about
RANGES = {"speed_kmh": (0.0, 180.0, 40.0), "acceleration_ms2": (-6.0, 6.0, 0.0), "elevation_m": (-0.3, 0.3, 0.0),
          "ambient_temp_c": (-25.0, 45.0, 20.0)}  # channel -> seen in the population from, to; usual  # fmt: skip
STRANGE_KW_KG = 0.5  # beyond so many kilowatts per kilogram no road term counts
BEYOND = 1e6  # no number of a sheet is
MOST_DRAG = 0.002  # m2 of CdA per kg; vans have under 0.001
SCALE_KEY = 7  # random stream of the draws


def start(
    vehicle: str | Sheet | None = None,
    *,
    base: str | Path | None = None,
    hz: float = 1.0,
    seed: int = 0,
    **numbers: float | None,
) -> PowerModel:
    """A model with no data of the car: wide where cars differ, and ready for `adapt`.

    `vehicle` is a name in the catalogue (`evband vehicles`), the path of a TOML sheet, or a `Sheet`; numbers such as
    ``mass_kg=1700, cda_m2=0.62, crr=0.009`` take the place of the sheet's, and suffice without one (mass and CdA).

    >>> model = start("Renault Zoe 52 kWh")
    >>> model.settings_.members
    30
    """
    if hz != 1.0:
        raise SettingsError(
            f"a model is started on a grid of 1 Hz, not {hz:g}; fit one on the car's own logs for another rate."
        )
    sheet = sheet_of(vehicle, **numbers)
    return started(Base.load(None if base is None else Path(base)), sheet, seed)


def started(ground: Base, sheet: Sheet, seed: int = 0, hz: float = 1.0) -> PowerModel:
    """The model of a sheet on a base; a label or a coast-down of the sheet sharpens its drag and tyres first."""
    from evband.model import PowerModel

    sheet = sheet.sharpened()
    settings = ground.settings(hz, seed)
    model = PowerModel.of(settings)
    model.settings_ = settings
    model.feature_map_ = sheet_map(ground, (sheet.mass_kg, sheet.cda_m2, sheet.crr), hz)
    model.theta_ = members_of(ground, sheet, seed)
    model.energy_ = energy_of(ground, sheet.mass_kg)
    neutral = ground.views["head_b"][:, 1]
    model.adaptation_ = Adaptation(
        sheet.to_dict(), ground.digest, ground.about, (ground.scale_shift, ground.scale_sd), ground.trip_effect,
        ground.precision.astype(np.float32), neutral.copy(),
        float(pulls(model.architecture_, ground.theta, model.feature_map_).mean()),
    )  # fmt: skip
    why = "started from a data sheet; its width comes from how cars and their logs differ"
    model.calibration_ = Calibration(standing=ground.standing, why=why)
    model.summary_ = {"trips": 0, "rows": 0, "hours": 0.0, "epochs_run": 0, "restarts": {}, "tuning": []}
    model.fingerprints_ = []
    return model


def energy_of(ground: Base, mass_kg: float) -> dict[str, Any]:
    """The energy part of a car of which no trip is known: errors of power grow with the mass."""
    tonnes = mass_kg / 1000.0
    scaled = {"bias": 1, "tau2": 2, "slow": 2, "fast": 2, "noise": 2, "most": 2, "usual": 2}
    known = {name: value * tonnes ** scaled.get(name, 0) for name, value in ground.errors.items()}
    return known | {"planned": simulated_plans(mass_kg)}


def sheet_of(vehicle: str | Sheet | None, **numbers: float | None) -> Sheet:
    """The sheet that a user means."""
    from evband.vehicles import Sheet, named_sheet

    given = {name: value for name, value in numbers.items() if value is not None}
    for name, value in given.items():
        if not abs(value) < BEYOND:
            raise SettingsError(f"{name} is {value:g}; give a number that a vehicle can have.")
    if isinstance(vehicle, Sheet):
        return vehicle.with_numbers(**given)
    if vehicle is None:
        missing = [name for name in ("mass_kg", "cda_m2") if name not in given]
        if missing:
            raise SettingsError(
                f"{missing[0]} is missing; give a vehicle's name, or its mass with load in kg and CdA in m2."
            )
        return _of_numbers(float(given.pop("mass_kg")), given)
    return named_sheet(vehicle).with_numbers(**given)


def _of_numbers(mass_kg: float, numbers: dict[str, float]) -> Sheet:
    """A sheet of the smallest body that such numbers fit."""
    from evband.vehicles import Sheet

    if numbers["cda_m2"] > MOST_DRAG * max(mass_kg, 1.0):
        raise VehicleError(
            f"a CdA of {numbers['cda_m2']:g} m2 does not go with {mass_kg:g} kg; correct one of the two."
        )
    load = min(100.0, 0.1 * mass_kg)
    named = {"name": "a vehicle of given numbers", "kerb_kg": mass_kg - load, "load_kg": load}
    problems = []
    for body in ("car", "suv", "van", "truck", "bus"):
        try:
            return Sheet.from_dict({"crr": [USUAL[2], "estimate"], "body": body, **named, **numbers})
        except VehicleError as problem:
            problems.append(problem)
    raise problems[0]


def sheet_map(ground: Base, wheel: Wheel, hz: float) -> SheetMap:
    """The base's features with a car's own physics: what does not grow with the mass is scaled by it."""
    channels = tuple(RANGES)
    low, high, typical = (np.array([RANGES[c][k] for c in channels]) for k in range(3))
    heavy = wheel[0] / USUAL_KG
    x_unit = np.array([heavy if name == "one" else 1.0 for name in INPUTS])
    r_unit = np.array([heavy if name in CABIN else 1.0 for name in ROADS])
    r_scale = ground.r_scale * r_unit
    count = len(ROADS)
    return SheetMap(
        channels=channels, hz=hz, edges=True, fade=True, low=low, high=high, typical=typical,
        input_names=INPUTS, x_shift=ground.x_shift * x_unit, x_scale=ground.x_scale * x_unit,
        road_names=ROADS, r_shift=np.zeros(count), r_scale=r_scale, r_low=-1e3 * STRANGE_KW_KG * np.ones(count),
        r_high=1e3 * STRANGE_KW_KG * np.ones(count), y_mean=0.0, y_std=ground.unit * wheel[0] / 1000.0,
        gram=np.zeros((count, count)), moment=np.zeros(count), wheel=wheel,
    )  # fmt: skip


def members_of(ground: Base, sheet: Sheet, seed: int) -> NDArray[np.float32]:
    """[members, parameters]: each member is a car that this sheet could belong to, with a log as noisy as they come."""
    rng = np.random.default_rng([seed, SCALE_KEY])
    theta = ground.theta.copy()
    views = ground.architecture.unpack(theta)
    drawn = ground.cars[np.arange(len(theta)), _spread_out(len(theta), ground.cars.shape[1], rng)].astype(float)
    draws, level = centred(drawn[:, :-1]), drawn[:, -1]
    deviation = np.einsum("mpq,mq->mp", ground.root, draws) + ground.groups.shift_of(sheet)
    for number, parts in PARTS.items():  # a sheet less certain than those of the population
        more = max(0.0, sheet.uncertainty(number) ** 2 - POPULATION[number] ** 2) ** 0.5
        error = more * centred(rng.standard_normal((len(theta), 1)))[:, 0]
        for part in parts:
            k = ROADS.index(part)
            deviation[:, k] += error * PER_WHEEL * ground.r_scale[k] / ground.unit
    move_location(views, deviation)
    views["head_b"][:, 1] += (ground.scale_shift + ground.scale_sd * level).astype(np.float32)
    return theta


def _spread_out(members: int, cars: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A car for each member, at equal steps from the quietest log to the noisiest: thirty draws would miss their spread."""
    return np.asarray((rng.permutation(members) + rng.random()) * cars / members, np.int64)
