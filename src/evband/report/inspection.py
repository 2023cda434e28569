"""What `evband inspect` prints: one trip in full, or many in a line each, and what they used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from evband.channels import KM_PER_MILE
from evband.logs.consumption import SPEED_STEP_KMH, TEMPERATURE_STEP_C, Use, by_class, minutes, total

if TYPE_CHECKING:
    from evband.trips import Trips

MOST = 500  # lines of trips
MANY = 3  # more trips than this are shown in a line each


def show_trip(page: Console, summary: dict[str, Any], miles: bool = False) -> None:
    """Format, channels, notes and findings of one trip."""
    distance, unit = _distance(summary["distance_km"], miles)
    page.print(
        f"[bold]{escape(summary['trip_id'])}[/bold]  {escape(summary['format'])}, {escape(summary['source'])}\n"
        f"{summary['rows']} rows, {_number(summary['rate_hz'], 3)} Hz, {summary['duration_s'] / 60:.1f} min, "
        f"{distance:.2f} {unit}, {_consumption(summary['kwh_100km'], miles)}, {summary['segments']} unbroken stretch{'' if summary['segments'] == 1 else 'es'}"
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


def show_many(page: Console, summaries: Sequence[dict[str, Any]], miles: bool = False) -> None:
    """A line for each trip, up to `MOST`."""
    trip = Column("trip", overflow="fold")
    table = Table(trip, "format", "min", "mi" if miles else "km", "kWh", _rate_unit(miles), "Hz", "findings")
    for s in summaries[:MOST]:
        table.add_row(
            escape(s["trip_id"]), escape(s["format"]), f"{s['duration_s'] / 60:.1f}",
            f"{_distance(s['distance_km'], miles)[0]:.2f}", "-" if s["energy_kwh"] is None else f"{s['energy_kwh']:.2f}",
            _rate(s["kwh_100km"], miles), _number(s["rate_hz"], 3), str(len(s["findings"])),
        )  # fmt: skip
    page.print(table)
    if len(summaries) > MOST:
        page.print(f"and {len(summaries) - MOST} more trips; --json lists all")


def show_use(page: Console, trips: Trips, miles: bool = False) -> None:
    """Measured consumption of all trips, and by speed and temperature where there is more than one class."""
    parts = [minutes(trip) for trip in trips]
    whole = total(parts)
    if whole.kwh_100km is None:
        page.print("no consumption: power is not measured, or over less than 1 km")
        return
    distance, unit = _distance(whole.distance_km, miles)
    page.print(
        f"measured in all: {distance:.1f} {unit}, {whole.energy_kwh:.2f} kWh, {_consumption(whole.kwh_100km, miles)}"
    )
    for what, channel, step, end in (
        ("speed", "speed_kmh", SPEED_STEP_KMH, "km/h"),
        ("temperature", "ambient_temp_c", TEMPERATURE_STEP_C, "C"),
    ):
        classes = by_class(parts, channel, step)
        if len(classes) > 1:
            page.print(f"by {what}: " + "; ".join(_class(use, step, end, miles) for use in classes), soft_wrap=True)


def _class(use: Use, step: float, unit: str, miles: bool) -> str:
    begins = use.begins or 0.0
    return f"{begins:g} to {begins + step:g} {unit} {_rate(use.kwh_100km, miles)}"


def _number(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}g}"


def _distance(km: float, miles: bool) -> tuple[float, str]:
    return (km / KM_PER_MILE, "mi") if miles else (km, "km")


def _rate_unit(miles: bool) -> str:
    return "mi/kWh" if miles else "kWh/100 km"


def _rate(kwh_100km: float | None, miles: bool) -> str:
    if kwh_100km is None or (miles and kwh_100km <= 0):
        return "-"
    return f"{100.0 / KM_PER_MILE / kwh_100km:.2f}" if miles else f"{kwh_100km:.1f}"


def _consumption(kwh_100km: float | None, miles: bool) -> str:
    return "no consumption" if kwh_100km is None else f"{_rate(kwh_100km, miles)} {_rate_unit(miles)}"
