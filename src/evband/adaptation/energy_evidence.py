"""`evband adapt` from poorer evidence: one row per trip with its energy, mean speed and perhaps the temperature.

A row is one observation of mean power. What the car did meanwhile is unknown, so a made-up drive of the same mean speed
stands in for it: with means over that drive

    P = w . mean(phi) + z . b_g + noise,   noise = `NOISE` of P, `COMMON` of it alike in all rows

(`evband.adaptation.update` has w, z, b_g, and solves the same normal equations). The common part, a driver's style and
the meter, does not average out: n rows, those of earlier tables included, weigh as n / (1 + n COMMON^2 / NOISE^2) do. The
scale of single rows stays as it was, since a mean says nothing about it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.checks import check_learns
from evband.adaptation.location import centred, set_location
from evband.adaptation.made_up import drive_of_mean, signals_of
from evband.adaptation.members import ROUNDS, Evidence, Members
from evband.adaptation.update import trip_effects
from evband.channels import DENSE
from evband.errors import LogError, SettingsError, TripsError
from evband.features.road_load import FADE_S, fades
from evband.features.wheel import SheetMap
from evband.vehicles import Sheet

if TYPE_CHECKING:
    from evband.model import PowerModel

Array = NDArray[np.float64]

NOISE, COMMON, NU = 0.12, 0.05, 4.0
LEAST_KW = 1.0  # the noise does not fall under that of so much power
CHARGING = 0.9  # of the energy from the wall reaches the battery
SECONDS = 600.0  # of a made-up drive
AT_ONCE = 20  # drives
ENERGY = ("energy_kwh", "kwh_100km", "charged_kwh", "soc_start")
COLUMNS = (*ENERGY, "soc_end", "distance_km", "mean_speed_kmh", "duration_min", "ambient_temp_c")
LEAST_KM, SPEEDS, AMBIENTS = 0.5, (5.0, 160.0), (-50.0, 60.0)
MOST_RATE = 0.16  # kWh/100 km per kg
MOST_BYTES = 16 << 20
ENERGIES = "energy "  # how traces of such trips begin
EXPECTED = (0.6, 1.7)  # times what the car was expected to use; beyond, a note says so


@dataclass(frozen=True)
class TripEnergy:
    """What is known of one trip."""

    distance_km: float
    speed_kmh: float
    energy_kwh: float
    ambient_c: float = math.nan
    soc: float = math.nan  # % at the start: commutes are alike but for it

    @property
    def kw(self) -> float:
        return self.energy_kwh * self.speed_kmh / self.distance_km

    @property
    def trace(self) -> str:
        """By which it is known again."""
        text = f"{self.distance_km:.6g} {self.speed_kmh:.6g} {self.energy_kwh:.6g} {self.ambient_c:.6g}"
        text += "" if math.isnan(self.soc) else f" {self.soc:.6g}"
        return ENERGIES + hashlib.sha256(text.encode()).hexdigest()[:16]


def is_energy_table(path: str | Path) -> bool:
    """Whether a file is a CSV with one trip per row: its head has an energy, a distance or mean speed, and no time."""
    try:
        with Path(path).open("rb") as file:
            head = file.readline(4096).decode("utf-8")
    except (OSError, ValueError):
        return False
    names = {name.strip(' "\r\n\ufeff').lower() for name in head.split(_separator(head))}
    way = "distance_km" in names or {"kwh_100km", "mean_speed_kmh"} <= names
    return way and bool(names.intersection(ENERGY)) and not names & {"time_s", "speed_kmh"}


def _separator(head: str) -> str:
    return ";" if ";" in head else ","


def read_energy(path: str | Path, model: PowerModel, capacity_kwh: float | None = None) -> list[TripEnergy]:
    """The trips of one table, each checked."""
    import polars as pl

    from evband.files import read_bounded
    from evband.logs.border import parsing

    data = read_bounded(path, MOST_BYTES, LogError, "table")
    separator = _separator(data[:4096].partition(b"\n")[0].decode("utf-8", "replace"))
    with parsing(path, "table of trips"):
        table = pl.read_csv(data, infer_schema=False, separator=separator)
        table = table.rename({name: name.strip(" \ufeff").lower() for name in table.columns})
    if not {"mean_speed_kmh", "duration_min"} & set(table.columns):
        raise LogError(f"{path}: mean_speed_kmh is missing; add it, or duration_min.")
    if capacity_kwh is None:
        capacity_kwh = Sheet.from_dict(model.adaptation_.sheet).battery_kwh
    features = model.feature_map_
    assert isinstance(features, SheetMap)
    most = MOST_RATE * features.wheel[0]
    if separator == ";":
        table = table.with_columns(pl.all().str.replace(",", ".", literal=True))
    kept = table.select([name for name in COLUMNS if name in table.columns])
    rows = [(number, row) for number, row in enumerate(kept.to_dicts(), 1) if any(row.values())]  # no blank lines
    if not rows:
        raise LogError(f"{path}: it has no rows; give one per trip.")
    return [_trip(row, f"{path}, row {number}", capacity_kwh, most) for number, row in rows]


def _trip(row: dict[str, str | None], where: str, capacity_kwh: float | None, most: float) -> TripEnergy:
    """One trip, or one sentence on what is wrong with it."""
    number = _numbers(row, where)
    km, speed = _way(number, where)
    energy = _energy(number, km, where, capacity_kwh)
    rate = 100.0 * energy / km
    if not 0 < rate <= most:
        raise LogError(
            f"{where}: {rate:.0f} kWh/100 km is not a trip of such a car (0 to {most:.0f}); check its energy and distance."
        )
    ambient = number.get("ambient_temp_c", math.nan)
    if not (math.isnan(ambient) or AMBIENTS[0] <= ambient <= AMBIENTS[1]):
        raise LogError(f"{where}: ambient_temp_c is {ambient:g}, which no weather is; give it in degrees Celsius.")
    return TripEnergy(km, speed, energy, ambient, number.get("soc_start", math.nan))


def _numbers(row: dict[str, str | None], where: str) -> dict[str, float]:
    """The cells that are filled in."""
    number: dict[str, float] = {}
    for name, given in row.items():
        if given is not None and given.strip():
            try:
                number[name] = float(given)
            except ValueError:
                number[name] = math.nan
            if not math.isfinite(number[name]):
                raise LogError(f"{where}: {name} is {given.strip()[:40]!r}, which is not a number; correct it.")
    return number


def _way(number: dict[str, float], where: str) -> tuple[float, float]:
    """Distance and mean speed of a trip; one of which only the consumption is known is as long as a made-up drive."""
    hours, km, speed = number.get("duration_min", 0.0) / 60.0, number.get("distance_km"), number.get("mean_speed_kmh")
    if speed is None and km is not None and hours > 0:
        speed = km / hours
    if speed is None:
        raise LogError(f"{where}: mean_speed_kmh is missing; fill it in, or distance_km and duration_min.")
    if km is None and (hours > 0 or "kwh_100km" in number):
        km = speed * (hours or SECONDS / 3600.0)
    if km is None:
        raise LogError(f"{where}: distance_km is missing; fill it in.")
    if km < LEAST_KM:
        raise LogError(f"{where}: distance_km is {km:g}, {LEAST_KM:g} is the least that counts; take the row out.")
    if not SPEEDS[0] <= speed <= SPEEDS[1]:
        raise LogError(
            f"{where}: a mean speed of {speed:.0f} km/h cannot be right ({SPEEDS[0]:g} to {SPEEDS[1]:g}); correct "
            "mean_speed_kmh or duration_min."
        )
    return km, speed


def _energy(number: dict[str, float], km: float, where: str, capacity_kwh: float | None) -> float:
    """Energy from the battery, by the first way that the row allows."""
    if "energy_kwh" in number:
        return number["energy_kwh"]
    if "kwh_100km" in number:
        return number["kwh_100km"] * km / 100.0
    if "soc_start" in number and "soc_end" in number:
        first, last = number["soc_start"], number["soc_end"]
        if not 0 <= last < first <= 100:
            raise LogError(f"{where}: the charge goes from {first:g} to {last:g} %; it must fall, within 0 to 100.")
        if first <= 1.0:
            raise LogError(
                f"{where}: the charge goes from {first:g} to {last:g} %, which look like shares; give them in %."
            )
        if capacity_kwh is None:
            raise SettingsError(f"{where}: the data sheet does not name the battery's size; give --capacity-kwh.")
        return (first - last) / 100.0 * capacity_kwh
    if "charged_kwh" in number:
        return CHARGING * number["charged_kwh"]
    raise LogError(
        f"{where}: no energy is given; fill in energy_kwh, kwh_100km, soc_start and soc_end, or charged_kwh."
    )


def adapt_to_energy(model: PowerModel, trips: Sequence[TripEnergy], seed: int = 0) -> PowerModel:
    """A copy of a started model that has learned from energies of trips."""
    check_learns(model)
    known = set(model.fingerprints_)
    earlier = sum(trace.startswith(ENERGIES) for trace in known)
    fresh = list({trip.trace: trip for trip in trips if trip.trace not in known}.values())
    if not fresh:
        raise TripsError("the model has learned from all of these trips already; give new ones.")
    rows = _evidence(model, fresh, seed)
    before = model.adaptation_
    theta, precision = model.theta_.copy(), before.precision.astype(float)
    views = model.architecture_.unpack(theta)
    sd = NOISE * np.maximum([trip.kw for trip in fresh], LEAST_KW) / model.feature_map_.y_std
    common = (COMMON / NOISE) ** 2  # m + n rows weigh as (m + n) / (1 + (m + n) common), of which m have been counted
    alike = (1.0 + earlier * common) * (1.0 + (earlier + len(fresh)) * common)
    members = Members(rows, slice(None), views, before.neutral, np.full(len(theta), NU))
    error = members.table[..., -1]
    notes = _unexpected(rows.y, rows.y - error.mean(0))
    for _ in range(ROUNDS):
        normal = members.normal((NU + 1) / (NU + (error / sd) ** 2) / sd**2 / alike)
        error, _ = members.errors(normal, precision)
    noise = centred(np.random.default_rng([seed, len(known)]).standard_normal(members.prior.shape))
    set_location(views, members.prior + normal.drawn(precision, noise))
    precision += normal.information
    after = copy(model)
    after.theta_, after.fingerprints_ = theta, sorted({*known, *(trip.trace for trip in fresh)})
    if left := len(trips) - len(fresh):
        notes.append(
            f"{left} of {len(trips)} trips are left out: they are there twice, or the model has learned from them already"
        )
    after.adaptation_ = replace(
        before, precision=precision.astype(np.float32), trips=before.trips + len(fresh), notes=tuple(notes)
    )
    return after


def _unexpected(power: Array, expected: Array) -> list[str]:
    """A note where the trips took far more or less than the car was expected to."""
    times = float(np.median(power / np.maximum(expected, 1e-9)))
    if EXPECTED[0] <= times <= EXPECTED[1]:
        return []
    return [f"trips took {times:.2f} times what was expected of the car: check that they are this car's, and in kWh"]


def _evidence(model: PowerModel, trips: Sequence[TripEnergy], seed: int) -> Evidence:
    """Means over a made-up drive for each trip."""
    from evband.network.predict import hidden_states

    terms, states = [], []
    for first in range(0, len(trips), AT_ONCE):
        parts = [_drive(model, trip, [seed, first + k]) for k, trip in enumerate(trips[first : first + AT_ONCE])]
        lengths = [len(x) for x, _ in parts]
        ends = np.cumsum(lengths)
        start = np.zeros(ends[-1], bool)
        start[[0, *ends[:-1]]] = True
        h = hidden_states(model.architecture_, model.theta_, np.concatenate([x for x, _ in parts]), start)
        states += [h[:, end - length : end].mean(1) for end, length in zip(ends, lengths, strict=True)]
        terms += [r.mean(0) for _, r in parts]
    r = np.array(terms, float)
    bias = 0.0 if model.energy_ is None else model.errors_.bias  # that an energy has beside the rows' mean
    y = (np.array([trip.kw for trip in trips]) - bias) / model.feature_map_.y_std
    moving, readings = np.ones(len(trips), bool), np.full(len(trips), DENSE)
    effects = trip_effects(model, r, ~moving)  # of their hills nothing is known
    return Evidence(r, np.stack(states, 1), y, np.arange(len(trips)), moving, effects, readings)


def _drive(model: PowerModel, trip: TripEnergy, seed: list[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """(inputs, road-load terms) of a made-up drive like this trip."""
    speed = drive_of_mean(trip.speed_kmh, SECONDS, np.random.default_rng(seed))
    seconds = 3600.0 * trip.distance_km / trip.speed_kmh
    fade = fades(np.linspace(0.0, min(seconds, 20 * FADE_S), len(speed) - 1), 1.0)
    x, r, _ = model.feature_map_.arrays(signals_of(speed, trip.ambient_c, fade, math.nan))
    return x, r
