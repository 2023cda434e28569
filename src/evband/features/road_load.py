"""Road-load terms: the physics a dozen coefficients of least squares can already explain.

Wheel power of a car is ``m a v + F0 v + F1 v^2 + (rho cd A / 2) v^3 + m g v grade``; a drive train loses a share of it
and gives back less when braking. Every term below is a plain expression in SI units that works on a float (one tick)
as on an array (a whole trip), so a stream and a file cannot disagree.

A coefficient of least squares in kW reads directly: of ``a*v`` tonnes, of ``v`` kN of rolling resistance, of ``v^3``
``rho cd A / 2`` in g/m, of ``v*grade`` tonnes times g.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from evband.errors import ChannelError
from evband.vehicles.physics import COOLING_ABOVE_C, HEATING_BELOW_C

Value = TypeVar("Value", float, np.ndarray)

FORCES = ("force_n", "road_load_n", "parasitic_n")

HINGE_SHARE = 0.003  # of a term's deviation, that each side of a knot must have; at 1 % of a Gaussian it is 0.03
MIDDLE = (0.1, 0.25, 0.5, 0.75, 0.9)
TAILS = (0.01, 0.03, *MIDDLE, 0.97, 0.99)  # hard braking and pulling, where regeneration and motor saturate
HINGED = {"a*v": TAILS, "v": MIDDLE, "a": TAILS, "T*v": TAILS, "k": TAILS}  # term -> levels of its knots

WEATHER_SPREAD_C, WIND_SPREAD_MS = 0.5, 0.5  # deviation in training that an effect of weather takes to be learned: from
# half a degree on one warm day least squares took slopes that made 160 kW of a cool one
OF_WEATHER = {  # effect -> terms and inputs that are made of it
    "cold": ("cold", "fade*cold"),
    "hot": ("hot", "fade*hot"),
    "wind": ("wind_ms", "v^2*wind"),
}

CLIMB = "v*grade"  # in m/s
OF_SLOPE = ("grade", CLIMB)
OF_TEMPERATURE = (*OF_WEATHER["cold"], *OF_WEATHER["hot"])

RIDGE = 1e-5  # of least squares on standardised terms
FEW_TRIPS = 9  # with fewer trips, rows are many but much alike: least squares and the terms' reach are more careful
GRADE_LENGTH_M = 25.0  # memory of the slope: averages 1 m steps, yet follows the road (60 m cost the Tesla 10 %)
GRADE_PRIOR_M2 = 10.0  # how much spread along the road it takes to believe a slope


KINETIC, CHANGE = "kinetic", "speed_change"  # signals made of the speeds at the bin's edges
FADE = "fade"  # signal of the time since the trip began
FADE_S = 300.0  # heater and cooling begin at full power and ease off as the cabin nears what was asked for


def edge_signals(start_kmh: Value, end_kmh: Value, hz: float) -> dict[str, Value]:
    """Kinetic power of a kilogram, (v_end^2 - v_start^2) / (2 D) in W, and the mean acceleration over the bin."""
    start, end = start_kmh / 3.6, end_kmh / 3.6
    return {KINETIC: 0.5 * hz * (end * end - start * start), CHANGE: hz * (end - start)}


def fades(rows: Value, hz: float) -> Value:
    """exp(-t / FADE_S), t = the time driven so far, of the number of grid rows so far: 1 at the start, then towards 0."""
    faded: Value = np.exp(-rows / (hz * FADE_S))
    return faded


def staleness(age_s: Value) -> Value:
    """What the network sees of the time since the last speed reading: log(1 + t), 0 where there is one."""
    stale: Value = np.log1p(age_s)
    return stale


def positive(x: Value) -> Value:
    """max(0, x) of a float or an array alike."""
    half: Value = 0.5 * (x + abs(x))
    return half


def ambient_hinges(ambient_c: Value) -> tuple[Value, Value]:
    """Degrees that call for heating and for cooling; linear ambient misleads as soon as the season changes."""
    return positive(HEATING_BELOW_C - ambient_c), positive(ambient_c - COOLING_ABOVE_C)


def air_density(ambient_c: Value) -> Value:
    """Relative to 15 C at the same pressure: drag is a tenth stronger in frost than on a summer's day."""
    density: Value = 288.15 / (273.15 + ambient_c)
    return density


def grades(elevation_m: np.ndarray, speed_ms: np.ndarray, start: np.ndarray, step_s: float) -> np.ndarray:
    """Past grade at every row of a trip (`evband.features.memory.slope`), anew at each `start`. A level road needs no running."""
    if len(elevation_m) and (elevation_m == elevation_m[0]).all():
        return np.zeros(len(elevation_m))
    from evband.features.memory import LAST, slopes

    out = np.empty(len(elevation_m))
    height, moved = np.ascontiguousarray(elevation_m, float), np.ascontiguousarray(speed_ms * step_s, float)
    slopes(height, moved, np.ascontiguousarray(start, bool), np.zeros(LAST), out)
    return out


def input_terms(signals: Mapping[str, Value]) -> dict[str, Value]:
    """What the network sees of each channel: itself, save elevation (its past grade) and ambient (two hinges)."""
    terms: dict[str, Value] = {}
    for name, value in signals.items():
        if name in (KINETIC, CHANGE, FADE):
            continue
        if name == "elevation_m":
            terms["grade"] = value
            if "speed_kmh" in signals:
                terms["climb_ms"] = value * signals["speed_kmh"] / 3.6
        elif name == "ambient_temp_c":
            terms["cold"], terms["hot"] = ambient_hinges(value)
        else:
            terms[name] = value
    return terms


def road_terms(signals: Mapping[str, Value], curved: bool = False) -> dict[str, Value]:
    """The road-load terms that these signals allow (elevation_m stands for the past grade here).

    `curved` adds the products that hinges of single terms cannot make: losses that grow with force times speed.
    """
    terms: dict[str, Value] = {}
    v = signals["speed_kmh"] / 3.6 if "speed_kmh" in signals else None
    a = signals.get("acceleration_ms2")
    if v is not None:
        terms.update({"v": v, "v^2": v * v, "v^3": v * v * v})
    if a is not None:
        terms["a"] = a
    if v is not None and a is not None:
        terms["a*v"] = a * v
        terms["min(a*v,0)"] = -positive(-(a * v))
        if curved:
            terms.update({"a*v^2": a * v * v, "a^2*v": a * a * v, "(a*v)^2": (a * v) * (a * v)})
    if KINETIC in signals:
        k = signals[KINETIC]
        terms.update({"k": k, "min(k,0)": -positive(-k), "dv": signals[CHANGE]})
    for channel, symbol in (("motor_torque_nm", "T"), *((force, force) for force in FORCES)):
        if channel in signals:
            terms[symbol] = signals[channel]
            if v is not None:
                terms[f"{symbol}*v"] = signals[channel] * v
    if v is None and {"motor_torque_nm", "motor_rpm"} <= signals.keys():
        terms["T*rpm"] = signals["motor_torque_nm"] * signals["motor_rpm"]
    for channel, scale in (("elevation_m", 1.0), ("grade_pct", 0.01)):
        if channel in signals:
            grade = signals[channel] * scale
            terms["grade"] = grade
            if v is not None:
                terms[CLIMB] = v * grade
    if "ambient_temp_c" in signals:
        terms["cold"], terms["hot"] = ambient_hinges(signals["ambient_temp_c"])
        if curved and v is not None:
            terms["v^3*air"] = v * v * v * air_density(signals["ambient_temp_c"])
    if FADE in signals:
        for name in ("cold", "hot"):
            if name in terms:
                terms[f"fade*{name}"] = signals[FADE] * terms[name]
        terms["fade"] = signals[FADE]
    if "wind_ms" in signals and v is not None:
        terms["v^2*wind"] = v * v * signals["wind_ms"]
    if "hvac_power_kw" in signals:
        terms["hvac"] = signals["hvac_power_kw"]
    if not terms:
        raise ChannelError(
            f"no road-load term can be made of {', '.join(signals)}; name speed_kmh or acceleration_ms2."
        )
    return terms


def hinge_knots(terms: Mapping[str, np.ndarray]) -> list[tuple[str, float]]:
    """Knots for ``max(0, term - knot)`` at training quantiles: losses and regeneration limits are not straight lines.

    A knot needs data on both sides: one at the very end of its term makes a column (or a difference of two) so small
    that, standardised, a value just outside the training range counts as millions.
    """
    knots = []
    for name, levels in HINGED.items():
        if name in terms:
            values = terms[name][np.isfinite(terms[name])]
            least = HINGE_SHARE * values.std()
            for knot in np.unique(np.round(np.quantile(values, levels), 6)):
                sides = positive(values - knot), positive(knot - values)
                if min(side.std() for side in sides) > least:
                    knots.append((name, float(knot)))
    return knots


def flat_weather(signals: Mapping[str, np.ndarray]) -> set[str]:
    """Names of terms and inputs made of weather that hardly varies in training."""
    flat: set[str] = set()
    if "ambient_temp_c" in signals:
        for name, degrees in zip(("cold", "hot"), ambient_hinges(signals["ambient_temp_c"]), strict=True):
            flat |= set(OF_WEATHER[name]) if degrees.std() < WEATHER_SPREAD_C else set()
    if "wind_ms" in signals and signals["wind_ms"].std() < WIND_SPREAD_MS:
        flat |= set(OF_WEATHER["wind"])
    return flat
