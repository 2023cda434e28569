"""Suspicions: a log whose numbers are whole but whose unit, sign or rate is not what it says. Each is reported with the option that corrects it.

Nothing is changed here. What gives a wrong unit away:

* most readings outside a channel's limits, and inside them in another unit that logs use (W for kW);
* a speed whose change is 3.6 (or 1.6) times smaller than the measured acceleration, or whose integral is that much shorter than the
  odometer's way (m/s, or mph, read as km/h);
* a state of charge of at most 1 % all along (a fraction of 1);
* the mass that makes P = m a v + c1 v + c3 v^3 + c0 fit best: over 8 t with over 25 kWh/100 km below 70 km/h (m/s read as km/h), or
  under 50 kg with under 1 kWh/100 km (power a thousand times too small).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evband.channels import CHANNELS, KM_PER_MILE, from_unit, known_units
from evband.trips.power import is_slow
from evband.trips.quality import Finding, Kind
from evband.trips.readings import Series, integral, trapezoids

Array = NDArray[np.float64]
_LEAST = 60  # rows of driving that a suspicion takes
_MOST = 1 << 20  # readings of speed that are looked at: the first, a day of them at 10 Hz
_SIMPLE = {3.6: "m/s", KM_PER_MILE: "mph"}


def suspicions(series: Mapping[str, Series], found_before: Sequence[Finding] = ()) -> list[Finding]:
    """What the numbers of one drive contradict; where a unit is in doubt already, motion and power are not compared."""
    if "speed_kmh" not in series or len(series["speed_kmh"][0]) < 10:
        return []
    if any(finding.kind == "unit" for finding in found_before):
        series = {"speed_kmh": series["speed_kmh"]}
    if len(series["speed_kmh"][0]) > _MOST:
        series = _until(series, float(series["speed_kmh"][0][_MOST - 1]))
    fitted = _mass_and_consumption(series)
    found = [_rate(series), _sign(series), _charge(series), _speed_unit(series, fitted) or _power_unit(series, fitted)]
    return [finding for finding in found if finding is not None]


def _until(series: Mapping[str, Series], end_s: float) -> dict[str, Series]:
    ends = {name: int(np.searchsorted(time, end_s, side="right")) for name, (time, _) in series.items()}
    return {name: (time[: ends[name]], value[: ends[name]]) for name, (time, value) in series.items() if ends[name]}


def unit_by_range(name: str, readings: Series, low: float, high: float) -> Finding | None:
    """A unit in which most readings are possible, where in the channel's own most are not."""
    time, value = readings
    if np.mean((value >= low) & (value <= high)) > 0.6:
        return None
    for unit in known_units(name):
        with np.errstate(over="ignore"):
            other = from_unit(name, value, unit)
        if np.mean((other >= low) & (other <= high)) > 0.9:
            theirs = CHANNELS[name].unit
            return _suspicion(
                "unit",
                name,
                time,
                f"most readings are impossible in {theirs} and possible in {unit}; {_map(name, unit)}",
            )
    return None


def _map(name: str, unit: str) -> str:
    return f'read it with a --map in which {name} has unit = "{unit}" (evband inspect --write-map makes one)'


def _suspicion(kind: Kind, channel: str, time: Array, text: str) -> Finding:
    return Finding(kind, channel, len(time), float(time[0]), float(time[-1]), "kept", text)


def _rate(series: Mapping[str, Series]) -> Finding | None:
    """A slow log: its power stands for the mean over each interval."""
    time = series["speed_kmh"][0]
    step = float(np.median(np.diff(time)))
    if not is_slow(time):
        return None
    text = f"one reading every {step:.3g} s: power is read as the mean over each interval, and what happens within one is lost"
    return _suspicion("rate", "speed_kmh", time, text)


def _sign(series: Mapping[str, Series]) -> Finding | None:
    """Power that comes in when the car speeds up and goes out when it brakes has its sign the wrong way round."""
    rows = _motion(series)
    if rows is None:
        return None
    time, speed, acceleration, power = rows
    moving = speed > 10.0 / 3.6
    speeding, braking = power[moving & (acceleration > 0.3)], power[moving & (acceleration < -0.3)]
    # Braking may still draw power (a heater, gentle braking), so it need only draw more than speeding up does.
    if len(speeding) < 5 or len(braking) < 5 or np.median(speeding) >= min(0.0, float(np.median(braking))):
        return None
    text = (
        f"power is {np.median(speeding):.1f} kW while the car speeds up and {np.median(braking):.1f} kW while it brakes: "
        f"its sign is the wrong way round; read it with --flip-power (flip_power=True)"
    )
    return _suspicion("sign", "power_kw", time[[0, -1]], text)


def _charge(series: Mapping[str, Series]) -> Finding | None:
    """A state of charge that never exceeds 1 % over a drive is a fraction of 1."""
    if "soc_pct" not in series or not 0.0 < np.max(series["soc_pct"][1]) <= 1.0:
        return None
    return _suspicion("unit", "soc_pct", series["soc_pct"][0], f"it never exceeds 1 %, as a fraction of 1 does; {_map('soc_pct', '1')}")  # fmt: skip


def _motion(series: Mapping[str, Series]) -> tuple[Array, Array, Array, Array] | None:
    """(time, speed in m/s, acceleration over about a second, power) at speed readings no gap separates; None without power."""
    if "power_kw" not in series:
        return None
    time, speed = series["speed_kmh"]
    step = max(1, round(1.0 / max(float(np.median(np.diff(time))), 1e-3)))  # about a second: single steps are noise
    if len(time) <= 2 * step:
        return None
    elapsed = time[step:] - time[:-step]
    near = elapsed < 10.0
    acceleration = (speed[step:] - speed[:-step])[near] / 3.6 / elapsed[near]
    middle, power = (time[step:] + time[:-step])[near] / 2.0, series["power_kw"]
    return time[step:][near], np.interp(middle, time, speed) / 3.6, acceleration, np.interp(middle, *power)


def _speed_unit(series: Mapping[str, Series], fitted: tuple[float, float] | None) -> Finding | None:
    """Speed in m/s or mph: by the measured acceleration, the odometer, or a mass that no such car has."""
    time, speed = series["speed_kmh"]
    if np.max(np.abs(speed)) > 250.0 / 3.6 * 1.7:
        return None  # faster still in another unit than any car
    factor = _by_acceleration(series) or _by_distance(series)
    if factor is not None:
        unit = _SIMPLE[factor]
        return _suspicion(
            "unit",
            "speed_kmh",
            time,
            f"it is {factor:.3g} times too small for the measured motion, as {unit} are; {_map('speed_kmh', unit)}",
        )
    mass, consumption = fitted or (0.0, 0.0)
    if mass > 8.0 and consumption > 25.0 and np.max(speed) < 70.0:
        text = (
            f"power fits a mass of {mass:.0f} t and {consumption:.0f} kWh/100 km at up to {np.max(speed):.0f} km/h: "
            f"the speed looks like m/s; {_map('speed_kmh', 'm/s')}"
        )
        return _suspicion("unit", "speed_kmh", time, text)
    return None


def _nearest_factor(ratio: float) -> float | None:
    """3.6 or 1.6 if the ratio is within 12 % of it."""
    return next((factor for factor in _SIMPLE if abs(ratio / factor - 1.0) < 0.12), None)


def _by_acceleration(series: Mapping[str, Series]) -> float | None:
    """How many times larger measured acceleration is than the change of speed, where the two go together."""
    if "acceleration_ms2" not in series:
        return None
    time, speed = series["speed_kmh"]
    measured = series["acceleration_ms2"]
    knots = np.arange(time[0], min(time[-1], time[0] + 36_000.0), 2.0)
    own = np.diff(np.interp(knots, time, speed)) / 3.6
    theirs = np.diff(np.interp(knots, measured[0], integral(measured)))
    moving = np.abs(own) + np.abs(theirs) > 0.2
    if moving.sum() < _LEAST or np.corrcoef(own[moving], theirs[moving])[0, 1] < 0.8:
        return None
    return _nearest_factor(float(np.sqrt(np.sum(theirs[moving] ** 2) / np.sum(own[moving] ** 2))))


def _by_distance(series: Mapping[str, Series]) -> float | None:
    """How many times longer the odometer's way is than the integral of speed, over at least 10 km."""
    if "distance_km" not in series:
        return None
    at, km = series["distance_km"]
    step = np.diff(series["speed_kmh"][0])
    driven = float(np.sum(trapezoids(series["speed_kmh"])[step <= 60.0])) / 3600.0
    counted = float(km[-1] - km[0])
    if counted < 10.0 or driven <= 0.0 or (step > 60.0).any() or np.any(np.diff(km) < 0) or at[-1] <= at[0]:
        return None
    return _nearest_factor(counted / driven)


def _mass_and_consumption(series: Mapping[str, Series]) -> tuple[float, float] | None:
    """(t, kWh/100 km): the mass in the road load that fits power best, if it is known well, and energy by way."""
    rows = _motion(series)
    if rows is None:
        return None
    _, v, a, power = rows
    moving = v > 1.0
    if moving.sum() < _LEAST or float(np.std(a[moving])) < 0.05:
        return None
    v, a, power = v[moving], a[moving], power[moving]
    terms = np.stack([a * v, v, v**3, np.ones_like(v)], axis=1)
    scale = np.abs(terms).max(0)
    terms /= scale
    gram = terms.T @ terms + 1e-9 * np.eye(4)
    weights = np.linalg.solve(gram, terms.T @ power)
    rest = power - terms @ weights
    error = float(np.sqrt(rest @ rest / max(len(v) - 4, 1) * np.linalg.inv(gram)[0, 0]))
    if weights[0] < 5.0 * error:
        return None
    return float(weights[0] / scale[0]), float(100.0 * power.mean() / (3.6 * v.mean()))


def _power_unit(series: Mapping[str, Series], fitted: tuple[float, float] | None) -> Finding | None:
    """Power a thousand times too small: a car of some kilograms that drives on next to nothing."""
    if fitted is None or not (fitted[0] < 0.05 and abs(fitted[1]) < 1.0):
        return None
    text = (
        f"power fits a mass of {1000 * fitted[0]:.2g} kg and {fitted[1]:.2g} kWh/100 km: it looks a thousand times too small; "
        f"{_map('power_kw', 'MW')}"
    )
    return _suspicion("unit", "power_kw", series["power_kw"][0], text)
