"""Energies and ranges as pictures and short tables, for notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evband.bands.picture import BLUE, new_axes, table

if TYPE_CHECKING:
    from evband.energy.range import Range
    from evband.energy.trip import Energies

Array = NDArray[np.float64]
FAN = {0.9: 0.18, 0.5: 0.35}  # level of a band -> its opacity
RED, GREY = "#b3261e", "#444"
POINTS = 400  # of a line


def draw_energies(energies: Energies, axes: Any) -> Any:
    """The band of each trip as a bar, its mean and what was measured as marks."""
    axes, at = new_axes("a picture of energies", axes), np.arange(len(energies))
    ends = np.array([band.interval(energies.level) for band in energies]).reshape(-1, 2)
    axes.vlines(at, ends[:, 0], ends[:, 1], color=BLUE, alpha=0.35, lw=8, label=f"{energies.level:.0%} band")
    axes.plot(at, [band.mean_kwh for band in energies], "_", color=BLUE, ms=12, label="mean")
    known = [(i, band.energy_kwh) for i, band in enumerate(energies) if band.energy_kwh is not None]
    if known:
        axes.plot(*zip(*known, strict=True), "o", color="#222", ms=4, label="measured")
    axes.set_xticks(at, [band.trip_id for band in energies], rotation=45, ha="right")
    axes.set(ylabel="energy, kWh")
    axes.legend(frameon=False)
    return axes


def energies_table(energies: Energies) -> str:
    """One line per trip."""
    rows = []
    for band in energies:
        lower, upper = band.interval(energies.level)
        known = "" if band.energy_kwh is None else f"{band.energy_kwh:.2f}"
        per = f"{band.per_100km(band.mean_kwh):.1f}"
        rows.append(
            [band.trip_id, f"{band.distance_km:.1f}", f"{band.mean_kwh:.2f}", f"{lower:.2f} .. {upper:.2f}", known, per]
        )
    head = ["trip", "km", "kWh", f"{energies.level:.0%} band", "measured", "kWh/100 km"]
    return table(head, rows, f"{len(rows)} trips")


def fan(plan: Range) -> tuple[Array, dict[float, Array]]:
    """(km, charge in percent there by its quantile): to the farthest distance worth showing, a little beyond the route or the battery."""
    end = max(1.1 * plan.route_km, min(1.05 * plan.distance_km(0.95), 3.0 * plan.route_km))
    km = np.append(0.0, plan.way.km[plan.way.km <= end])
    at = np.unique(np.linspace(0, len(km) - 1, min(POINTS, len(km))).astype(int))
    shown = (0.5, *(0.5 + side * level / 2 for level in FAN for side in (-1, 1)))
    return km[at], {p: np.clip(np.append(plan.soc, plan.soc_along(p))[at], 0.0, 100.0) for p in shown}


def draw_range(plan: Range, axes: Any) -> Any:
    """Charge over distance: median, 50 % and 90 % bands, the reserve and the route's end."""
    axes = new_axes("a picture of range", axes)
    km, line = fan(plan)
    for level, opacity in FAN.items():
        low, high = line[0.5 - level / 2], line[0.5 + level / 2]
        axes.fill_between(km, low, high, color=BLUE, alpha=opacity, lw=0, label=f"{level:.0%} band")
    axes.plot(km, line[0.5], color=BLUE, label="median")
    axes.axhline(plan.reserve_soc, color=RED, ls="--", label="reserve")
    axes.axvline(plan.route_km, color=GREY, lw=1, label="route ends")
    axes.set(xlabel="distance, km", ylabel="state of charge, %", xlim=(0, km[-1]), ylim=(0, highest(plan.soc)))
    axes.legend(frameon=False)
    return axes


def highest(soc: float) -> float:
    """Where an axis of charge ends."""
    return min(100.0, soc + 5.0)


def range_html(plan: Range) -> str:
    """Reach, chances and charge at the end."""
    from evband.energy.answers import in_percent

    reach, left = ([ask(p) for p in (0.05, 0.5, 0.95)] for ask in (plan.distance_km, plan.soc_at_arrival))
    rows = [
        ["reach", f"{reach[1]:.0f} km ({reach[0]:.0f} .. {reach[2]:.0f})"],
        [f"arrives with {plan.reserve_soc:g} % left", in_percent(plan.arrival_probability, 0)],
        ["arrives at all", in_percent(plan.arrival_probability_empty, 0)],
        ["charge there", f"{left[1]:.0f} % ({left[0]:.0f} .. {left[2]:.0f})"],
    ]
    return table(["", "median (5 .. 95 %)"], rows, f"{plan.route_km:.0f} km from {plan.soc:g} %")
