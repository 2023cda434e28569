"""Energy and range as tables for a terminal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from evband.energy.answers import in_percent
from evband.energy.trip import Energies, EnergyBand
from evband.report.units import Units

if TYPE_CHECKING:
    from evband.energy.range import Range

SHOWN = (0.5, 0.05, 0.95)  # the middle, then the ends of a band


def energy_table(found: Energies, units: Units) -> Table:
    """A row for each trip, and their sum; no band of the sum, since errors of one model's trips are not independent."""
    table = Table("trip", units.value, "kWh", f"{found.level:.0%} band", "measured", units.of_use)

    def rate(band: EnergyBand, kwh: float) -> float:
        return band.miles_per_kwh(kwh) if units is Units.MI else band.per_100km(kwh)

    for band in found:
        lower, upper = band.interval(found.level)
        table.add_row(
            band.trip_id,
            *_sums([band], units),
            f"{lower:.2f} .. {upper:.2f}",
            _measured([band]),
            _with_ends(rate(band, band.mean_kwh), sorted((rate(band, lower), rate(band, upper))), 1),
        )
    if len(found) > 1:
        bands = list(found)
        km, kwh = sum(b.distance_km for b in bands), sum(b.mean_kwh for b in bands)
        whole = EnergyBand("total", km, 0.0, kwh, 0.0, 1.0)
        table.add_section()
        table.add_row("total", *_sums(bands, units), "-", _measured(bands), _or_dash(rate(whole, kwh), 1))
    return table


def range_table(found: Mapping[str, Range | str], units: Units) -> Table:
    """A column for each plan: reach, both chances of arrival with the reserve they mean, charge and energy there."""
    unit, per_km = units.value, units.per_km
    plans = {name: plan for name, plan in found.items() if not isinstance(plan, str)}
    first = next(iter(plans.values()))
    table = Table(f"route {first.route_km * per_km:.1f} {unit}", *plans)

    def add(what: str, cell: Callable[[Range], str]) -> None:
        table.add_row(what, *(cell(plan) for plan in plans.values()))

    add(f"reach, {unit} (5 .. 95 %)", lambda plan: _shown(lambda p: plan.distance_km(p) * per_km, 0))
    add(f"arrives with {first.reserve_soc:g} % left", lambda plan: in_percent(plan.arrival_probability))
    add("arrives at all", lambda plan: in_percent(plan.arrival_probability_empty))
    add("charge there, % (5 .. 95 %)", lambda plan: _shown(plan.soc_at_arrival, 0))
    add("energy, kWh (5 .. 95 %)", lambda plan: _shown(plan.energy_kwh, 2))
    return table


def _shown(quantile: Callable[[float], float], digits: int) -> str:
    """The middle and the ends of a band, of its quantile function."""
    middle, *ends = (quantile(p) for p in SHOWN)
    return _with_ends(middle, ends, digits)


def _sums(bands: Sequence[EnergyBand], units: Units) -> tuple[str, str]:
    distance = sum(band.distance_km for band in bands) * units.per_km
    return f"{distance:.1f}", f"{sum(band.mean_kwh for band in bands):.2f}"


def _measured(bands: Sequence[EnergyBand]) -> str:
    """What was measured, where it was in every one of these trips."""
    known = [band.energy_kwh for band in bands if band.energy_kwh is not None]
    return f"{sum(known):.2f}" if len(known) == len(bands) else "-"


def _with_ends(middle: float, ends: Sequence[float], digits: int) -> str:
    """`15.2 (13.0 .. 17.1)`; a dash where there is no such number, as of consumption over no distance."""
    if not all(map(math.isfinite, (middle, *ends))):
        return _or_dash(middle, digits)
    return f"{middle:.{digits}f} ({ends[0]:.{digits}f} .. {ends[1]:.{digits}f})"


def _or_dash(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if math.isfinite(value) else "-"
