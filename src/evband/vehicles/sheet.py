"""A vehicle's data sheet: each number with its unit, where it comes from, and how far it may be off.

In a file or dict a number is written plain (`crr = 0.009`, then it is the user's own), as `[value, source]` or as
`[value, source, spread]`; `spread` is one standard deviation relative to the value, and follows from the kind of source
where it is not given.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from evband.channels import KM_PER_MILE, conversion
from evband.errors import VehicleError

Body = Literal["car", "suv", "van", "bus", "truck"]
Source = Literal["maker", "epa", "wltp", "coast-down", "user", "estimate", "sharpened"]

LBF, _ = conversion("force_n", "lbf")

UNITS: dict[str, str] = {
    "kerb_kg": "kg", "load_kg": "kg", "cd": "", "area_m2": "m2", "cda_m2": "m2", "crr": "", "battery_kwh": "kWh",
    "regen_limit_kw": "kW", "max_power_kw": "kW", "epa_kwh_100km": "kWh/100 km", "wltp_kwh_100km": "kWh/100 km",
}  # fmt: skip
"""Every number of a sheet and its unit, in the order in which sheets are shown."""

# number -> (spread where a maker, an authority, a test or the user gives it, spread where it is estimated)
_SPREADS: dict[str, tuple[float, float]] = {
    "kerb_kg": (0.04, 0.08), "load_kg": (0.6, 0.6), "cd": (0.05, 0.08), "area_m2": (0.03, 0.06), "cda_m2": (0.08, 0.12),
    "crr": (0.10, 0.15), "battery_kwh": (0.03, 0.07), "regen_limit_kw": (0.10, 0.25), "max_power_kw": (0.03, 0.10),
    "epa_kwh_100km": (0.02, 0.10), "wltp_kwh_100km": (0.02, 0.10),
}  # fmt: skip

# body -> plausible (kerb mass kg, load kg, CdA m2, c_rr, usable battery kWh)
_PLAUSIBLE: dict[str, tuple[tuple[float, float], ...]] = {
    "car": ((300, 3500), (0, 1000), (0.3, 1.1), (0.004, 0.02), (4, 250)),
    "suv": ((800, 5000), (0, 1500), (0.4, 2.2), (0.004, 0.02), (10, 300)),
    "van": ((500, 5000), (0, 3000), (0.5, 3.0), (0.004, 0.02), (10, 250)),
    "bus": ((3000, 35000), (0, 15000), (2.0, 8.0), (0.004, 0.02), (40, 900)),
    "truck": ((1500, 30000), (0, 60000), (1.5, 10.0), (0.003, 0.02), (20, 1500)),
}
_CHECKED = ("kerb_kg", "load_kg", "cda_m2", "crr", "battery_kwh")
_USUAL_LOAD_KG = {"car": 100.0, "suv": 110.0, "van": 300.0, "bus": 1500.0, "truck": 8000.0}


@dataclass(frozen=True)
class Sheet:
    """One vehicle. `mass_kg` is kerb mass plus load; `cda_m2` is drag coefficient times frontal area.

    Consumption figures are those of the label, measured at the wall, charging loss included. `coast_down_n` is the road
    load F = A + B v + C v^2 in N with v in km/h, driven at `coast_down_mass_kg` (kerb mass + 136 kg unless given).
    """

    name: str
    body: Body
    kerb_kg: float
    cda_m2: float
    crr: float
    load_kg: float = 100.0
    make: str = ""
    model: str = ""
    years: str = ""
    cd: float | None = None
    area_m2: float | None = None
    battery_kwh: float | None = None
    regen_limit_kw: float | None = None
    max_power_kw: float | None = None
    drive: str = ""
    heat_pump: bool | None = None
    epa_kwh_100km: float | None = None
    wltp_kwh_100km: float | None = None
    coast_down_n: tuple[float, float, float] | None = None
    coast_down_mass_kg: float | None = None
    source: Mapping[str, Source] = field(default_factory=dict)  # number -> where it comes from; "user" if not given
    spread: Mapping[str, float] = field(default_factory=dict)  # number -> relative standard deviation, if not the usual
    note: str = ""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def title(self) -> str:
        """Its name, and the years in which it was made where these are known."""
        return f"{self.name} ({self.years})" if self.years else self.name

    @property
    def mass_kg(self) -> float:
        """Kerb mass and load."""
        return self.kerb_kg + self.load_kg

    def source_of(self, number: str) -> Source:
        """Where a number comes from; of CdA the weaker of its two factors' sources."""
        if number == "cda_m2" and number not in self.source and self.cd and self.area_m2:
            kinds = {self.source_of("cd"), self.source_of("area_m2")}
            return "estimate" if "estimate" in kinds else self.source_of("cd")
        return self.source.get(number, "user")

    def uncertainty(self, number: str) -> float:
        """One standard deviation relative to the value, of a number of the sheet or of `mass_kg`."""
        if number == "mass_kg":
            parts = (self.kerb_kg * self.uncertainty("kerb_kg"), self.load_kg * self.uncertainty("load_kg"))
            return math.hypot(*parts) / self.mass_kg
        if number in self.spread:
            return self.spread[number]
        if number == "cda_m2" and number not in self.source and self.cd and self.area_m2:
            return math.hypot(self.uncertainty("cd"), self.uncertainty("area_m2"))
        known, estimated = _SPREADS[number]
        return estimated if self.source_of(number) == "estimate" else known

    def sharpened(self) -> Sheet:
        """The same sheet with CdA and c_rr updated by its consumption figures and coast-down; see `sharpening`."""
        from evband.vehicles.sharpening import sharpened

        return sharpened(self)

    def with_numbers(self, **numbers: float | None) -> Sheet:
        """The same sheet with numbers of the user's own; None leaves one as it is. `mass_kg` sets the load."""
        given = {name: value for name, value in numbers.items() if value is not None}
        if "mass_kg" in given:
            mass = given.pop("mass_kg")
            if not mass > self.kerb_kg:
                raise VehicleError(
                    f"{self.name}: a mass of {mass:g} kg is not above the kerb mass of {self.kerb_kg:g} kg; "
                    f"give the mass with driver and load, or change kerb_kg."
                )
            given["load_kg"] = mass - self.kerb_kg
        unknown = sorted(set(given) - set(UNITS))
        if unknown:
            raise VehicleError(f"{self.name}: {unknown[0]} is not a number of a sheet; these are {', '.join(UNITS)}.")
        changes: dict[str, Any] = dict(given)
        if "cda_m2" in given:
            changes |= {"cd": None, "area_m2": None}
        elif {"cd", "area_m2"} & set(given):
            cd, area = given.get("cd", self.cd), given.get("area_m2", self.area_m2)
            if cd is None or area is None:
                raise VehicleError(f"{self.name}: it has no cd and area_m2 apart; give both, or cda_m2.")
            changes["cda_m2"] = cd * area
        touched = {*given, *({"cda_m2"} if "cda_m2" in changes else ())}
        source: dict[str, Source] = {name: kind for name, kind in self.source.items() if name not in touched}
        source |= dict.fromkeys(given, "user")
        spread = {name: value for name, value in self.spread.items() if name not in touched}
        if "load_kg" in given:
            spread["load_kg"] = 0.2  # a load that somebody states
        return replace(self, **changes, source=source, spread=spread)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it: every number as value, unit, source and spread."""
        found: dict[str, Any] = {}
        for name in (f.name for f in fields(self) if f.name not in ("source", "spread")):
            value = getattr(self, name)
            if value is None or value == "":
                continue
            if name in UNITS:
                value = {"value": value, "unit": UNITS[name], "source": self.source_of(name), "spread": self.uncertainty(name)}  # fmt: skip
            found[name] = list(value) if isinstance(value, tuple) else value
        return found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "The data sheet") -> Sheet:
        """The inverse of `to_dict`, also of the shorter forms that TOML files hold."""
        data = dict(data)
        coast_down = _coast_down(data, where)
        _check_keys(data, where)
        source: dict[str, Source] = {}
        spread: dict[str, float] = {}
        numbers = {name: _number(name, data.pop(name), source, spread, where) for name in UNITS if name in data}
        if {"cd", "area_m2"} <= set(numbers):
            numbers.setdefault("cda_m2", numbers["cd"] * numbers["area_m2"])
        data["body"] = data.get("body", "car")
        if "load_kg" not in numbers:
            numbers["load_kg"] = _USUAL_LOAD_KG.get(data["body"], 100.0)
            source["load_kg"] = "estimate"
        missing = [name for name in ("kerb_kg", "cda_m2", "crr") if name not in numbers]
        if missing:
            hint = " (or cd and area_m2)" if missing[0] == "cda_m2" else ""
            raise VehicleError(f"{where}: {missing[0]}{hint} is missing; a sheet needs kerb_kg, cda_m2 and crr.")
        name = data.pop("name", "") or " ".join(str(data.get(k, "")) for k in ("make", "model")).strip()
        parts: dict[str, Any] = {**data, **numbers}
        return cls(name=name, **parts, coast_down_n=coast_down, source=source, spread=spread)


def _check_keys(data: Mapping[str, Any], where: str) -> None:
    known = [f.name for f in fields(Sheet) if f.name not in ("source", "spread", "coast_down_n")]
    for key in data:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1, 0.5)
            hint = f"the nearest is {near[0]}" if near else f"a sheet has {', '.join(known)}"
            hint = "give kerb_kg and load_kg, whose sum it is" if key == "mass_kg" else hint
            raise VehicleError(f"{where}: {key} is not a part of a sheet; {hint}.")
    for key in ("name", "make", "model", "years", "body", "drive", "note"):
        if not isinstance(data.get(key, ""), str):
            raise VehicleError(f"{where}: {key} is {data[key]!r}; write it as a text.")
    if not isinstance(data.get("heat_pump"), bool | None):
        raise VehicleError(f"{where}: heat_pump is {data['heat_pump']!r}; write true or false.")
    mass = data.get("coast_down_mass_kg", 1.0)
    if not _is_number(mass) or not 0 < mass < 1e6:
        raise VehicleError(f"{where}: coast_down_mass_kg is {mass!r}; write the mass of the test in kg.")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12


def _number(name: str, given: Any, source: dict[str, Source], spread: dict[str, float], where: str) -> float:
    """A plain number, `[value, source]`, `[value, source, spread]` or a dict with these; what it says goes into the maps."""
    if isinstance(given, Mapping):
        given = [given.get("value"), given.get("source", "user"), given.get("spread")]
    value, kind, width = (*given, None)[:3] if isinstance(given, list | tuple) and len(given) > 1 else (given, "user", None)  # fmt: skip
    form = f'{where}: {name} is {given!r}; write {name} = 1.0, or [1.0, "maker"], or [1.0, "maker", 0.05].'
    if not _is_number(value):
        raise VehicleError(form)
    if kind not in get_args(Source):
        raise VehicleError(f"{where}: the source of {name} is {kind!r}; write one of {', '.join(get_args(Source))}.")
    source[name] = kind
    if width is not None:
        if not _is_number(width):
            raise VehicleError(form)
        spread[name] = float(width)
    return float(value)


def _coast_down(data: dict[str, Any], where: str) -> tuple[float, float, float] | None:
    """A, B, C in N and km/h; `coast_down_lbf` is the United States' form in lbf and mph."""
    given = data.pop("coast_down_n", None)
    imperial = data.pop("coast_down_lbf", None)
    if given is None and imperial is None:
        return None
    letters = given if imperial is None else imperial
    if not isinstance(letters, list | tuple) or len(letters) != 3 or not all(map(_is_number, letters)):
        raise VehicleError(
            f"{where}: a coast-down is three numbers [A, B, C] of F = A + B v + C v^2; it is {letters!r}."
        )
    a, b, c = (float(x) for x in letters)
    return (a, b, c) if imperial is None else (a * LBF, b * LBF / KM_PER_MILE, c * LBF / KM_PER_MILE**2)


def _check(sheet: Sheet) -> None:
    """Raise a VehicleError that names what cannot be and what is usual."""
    if not sheet.name:
        raise VehicleError("A data sheet has no name; give it one, or make and model.")
    if sheet.body not in get_args(Body):
        raise VehicleError(f"{sheet.name}: body is {sheet.body!r}; write one of {', '.join(get_args(Body))}.")
    for number, (low, high) in zip(_CHECKED, _PLAUSIBLE[sheet.body], strict=True):
        value = getattr(sheet, number)
        if value is not None and not low <= value <= high:
            raise VehicleError(
                f"{sheet.name}: {number} is {value:g} {UNITS[number]}".rstrip()
                + f"; a {sheet.body} has {low:g} to {high:g}, so correct it or the body."
            )
    for number in ("regen_limit_kw", "max_power_kw", "epa_kwh_100km", "wltp_kwh_100km", "coast_down_mass_kg"):
        value = getattr(sheet, number)
        if value is not None and not (math.isfinite(value) and 0 < value < 50_000):
            raise VehicleError(f"{sheet.name}: {number} is {value:g}; it must be above 0.")
    if sheet.cd and sheet.area_m2 and abs(sheet.cd * sheet.area_m2 / sheet.cda_m2 - 1) > 0.02:
        raise VehicleError(f"{sheet.name}: cda_m2 is {sheet.cda_m2:g}, but cd x area_m2 is {sheet.cd * sheet.area_m2:.3g}; give either.")  # fmt: skip
    for number, spread in sheet.spread.items():
        if not (math.isfinite(spread) and 0 < spread <= 1):
            raise VehicleError(f"{sheet.name}: the spread of {number} is {spread:g}; give a share from 0 to 1, as 0.05 for 5 %.")  # fmt: skip
    if sheet.coast_down_n is not None:
        a, b, c = sheet.coast_down_n
        if not all(a + b * v + c * v * v > 0 for v in (30.0, 80.0, 120.0)) or not c > 0:
            raise VehicleError(
                f"{sheet.name}: the coast-down [{a:g}, {b:g}, {c:g}] is not a road load (it must resist at 30, 80 and 120 km/h "
                f"and have C above 0); give A in N, B in N/(km/h), C in N/(km/h)^2, or the lbf form as coast_down_lbf."
            )
