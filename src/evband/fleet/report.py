"""The page on a fleet: who uses more than its data sheet and the base expect, and whose logs look broken."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from evband import __version__
from evband.files import whole_file
from evband.report.html import section, table, text

MOST_ROWS = 200


def write_fleet_report(path: Path, cars: pl.DataFrame) -> None:
    """One HTML file that loads nothing."""
    rows = cars.to_dicts()
    good = [row for row in rows if row["energy_kwh_100km"] is not None]
    more = sorted(good, key=lambda row: row["energy_kwh_100km"] / row["expected_kwh_100km"], reverse=True)
    body = _head(rows, good) + _consumers(more) + _broken([row for row in rows if row["warning"]])
    css = files("evband.report").joinpath("page.css").read_text(encoding="utf-8")
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<title>Fleet · evband</title><link rel="icon" href="data:,"><style>{css}</style></head><body><main>{body}</main>'
        f"<footer><p>Written by evband {__version__}. The file is complete in itself and loads nothing.</p></footer></body></html>"
    )
    with whole_file(path) as temporary:
        temporary.write_text(page, encoding="utf-8")


def _head(rows: list[dict[str, Any]], good: list[dict[str, Any]]) -> str:
    hours = sum(row["hours"] for row in good)
    scored = [row for row in good if row["coverage"] is not None]
    inside = sum(row["coverage"] for row in scored) / len(scored) if scored else float("nan")
    line = (
        f"{len(good)} of {len(rows)} cars were learned from, {hours:.1f} hours. On the last drive of each car, before it "
        f"was learned from, 90 % bands held {inside:.0%} of values."
    )
    return f"<h1>Fleet</h1><p>{text(line)}</p>"


def _consumers(rows: list[dict[str, Any]]) -> str:
    """The most first; marked only where the whole band is above what is expected."""
    lead = (
        "kWh/100 km on one made-up drive, alike for all cars, with a 90 % band of what is known; expected is what the "
        "data sheet and the base say without any log. Sure: the whole band lies above it."
    )
    cells = [
        (row["vehicle_id"], f"{row['energy_kwh_100km']:.1f}", f"{row['lower']:.1f} to {row['upper']:.1f}",
         f"{row['expected_kwh_100km']:.1f}", f"{row['energy_kwh_100km'] / row['expected_kwh_100km'] - 1:+.0%}",
         "yes" if row["lower"] > row["expected_kwh_100km"] else "", row["trips"])
        for row in rows[:MOST_ROWS]
    ]  # fmt: skip
    head = ("car", "uses", "90 %", "expected", "more by", "sure", "trips")
    return section("Who uses more than expected", lead, table(head, cells, (1, 2, 3, 4, 6)), "uses")


def _broken(rows: list[dict[str, Any]]) -> str:
    lead = f"{len(rows)} cars have a warning; those without numbers could not be learned from." if rows else "None."
    cells = [(row["vehicle_id"], row["warning"]) for row in rows[:MOST_ROWS]]
    return section("Logs that look broken", lead, table(("car", "what"), cells) if cells else "", "broken")
