"""What `evband inspect` prints: one trip in full, or many in a line each, and what they used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from evband.logs.consumption import SPEED_STEP_KMH, TEMPERATURE_STEP_C, Use, by_class, minutes, total
from evband.report.units import Units

if TYPE_CHECKING:
    from evband.trips import Trips

MOST = 500  # lines of trips
MANY = 3  # more trips than this are shown in a line each


def show_trip(page: Console, summary: dict[str, Any], units: Units) -> None:
    """Format, channels, notes and findings of one trip."""
    page.print(
        f"[bold]{escape(summary['trip_id'])}[/bold]  {escape(summary['format'])}, {escape(summary['source'])}\n"
        f"{summary['rows']} rows, {_number(summary['rate_hz'], 3)} Hz, {summary['duration_s'] / 60:.1f} min, "
        f"{summary['distance_km'] * units.per_km:.2f} {units.value}, {_consumption(summary['kwh_100km'], units)}, {summary['segments']} unbroken stretch{'' if summary['segments'] == 1 else 'es'}"
    )
    table = Table("channel", "readings", "Hz", "least", "median", "most", "unit", box=None)
    for channel in summary["channels"]:
        numbers = (_number(channel[key], 4) for key in ("rate_hz", "min", "median", "max"))
        table.add_row(channel["name"], str(channel["readings"]), *numbers, channel["unit"])
    page.print(table)
    for note in summary["notes"]:
        page.print(f"  note: {escape(note)}", soft_wrap=True)
    for finding in summary["findings"]:
        of = f" of {finding['channel']}" if finding["channel"] else ""
        page.print(f"  {finding['kind']}{of} ({finding['action']}): {escape(finding['text'])}", soft_wrap=True)
    page.print()


def show_many(page: Console, summaries: Sequence[dict[str, Any]], units: Units) -> None:
    """A line for each trip, up to `MOST`."""
    trip = Column("trip", overflow="fold")
    table = Table(trip, "format", "min", units.value, "kWh", units.of_use, "Hz", "findings")
    for s in summaries[:MOST]:
        table.add_row(
            escape(s["trip_id"]), escape(s["format"]), f"{s['duration_s'] / 60:.1f}",
            f"{s['distance_km'] * units.per_km:.2f}", "-" if s["energy_kwh"] is None else f"{s['energy_kwh']:.2f}",
            _rate(s["kwh_100km"], units), _number(s["rate_hz"], 3), str(len(s["findings"])),
        )  # fmt: skip
    page.print(table)
    if len(summaries) > MOST:
        page.print(f"and {len(summaries) - MOST} more trips; --json lists all")


def show_use(page: Console, trips: Trips, units: Units) -> None:
    """Measured consumption of all trips, and by speed and temperature where there is more than one class."""
    parts = [minutes(trip) for trip in trips]
    whole = total(parts)
    if whole.kwh_100km is None:
        page.print("no consumption: power is not measured, or over less than 1 km")
        return
    page.print(
        f"measured in all: {whole.distance_km * units.per_km:.1f} {units.value}, {whole.energy_kwh:.2f} kWh, "
        f"{_consumption(whole.kwh_100km, units)}"
    )
    for what, channel, step, end in (
        ("speed", "speed_kmh", SPEED_STEP_KMH, "km/h"),
        ("temperature", "ambient_temp_c", TEMPERATURE_STEP_C, "C"),
    ):
        classes = by_class(parts, channel, step)
        if len(classes) > 1:
            page.print(f"by {what}: " + "; ".join(_class(use, step, end, units) for use in classes), soft_wrap=True)


def _class(use: Use, step: float, unit: str, units: Units) -> str:
    begins = use.begins or 0.0
    return f"{begins:g} to {begins + step:g} {unit} {_rate(use.kwh_100km, units)}"


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"


def _rate(kwh_100km: float | None, units: Units) -> str:
    if kwh_100km is None or (units is Units.MI and kwh_100km <= 0):
        return "-"
    return f"{100.0 * units.per_km / kwh_100km:.2f}" if units is Units.MI else f"{kwh_100km:.1f}"


def _consumption(kwh_100km: float | None, units: Units) -> str:
    return "no consumption" if kwh_100km is None else f"{_rate(kwh_100km, units)} {units.of_use}"
