"""The page on a fleet: who uses more than its sheet and the base expect, what changed, whose logs look broken."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from evband import __version__
from evband.files import write_whole
from evband.fleet.drift import ALARM
from evband.report.html import Html, section, table, text

MOST_ROWS, MOST_LETTERS = 200, 32  # of a table; of an id
FARTHEST = 0.5  # share above and below what is expected that a picture shows
WIDE, HIGH = 168.0, 14.0  # of it, in pixels


Before = tuple[str, pl.DataFrame]  # month and table of the last one with a fleet


def write_fleet_report(path: Path, cars: pl.DataFrame, before: Before | None = None) -> None:
    """One HTML file that loads nothing."""
    rows = cars.to_dicts()
    good = [row for row in rows if row["energy_kwh_100km"] is not None]
    more = sorted(good, key=lambda row: row["energy_kwh_100km"] / row["expected_kwh_100km"], reverse=True)
    body = _head(rows, good) + _consumers(more) + _changed(good, before) + _drifting(good)
    body += _broken([row for row in rows if row["warning"]])
    css = files("evband.report").joinpath("page.css").read_text(encoding="utf-8")
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<title>Fleet · evband</title><link rel="icon" href="data:,"><style>{css}</style></head><body><main>{body}</main>'
        f"<footer><p>Written by evband {__version__}. The file is complete in itself and loads nothing.</p></footer></body></html>"
    )
    write_whole(path, page)


def _head(rows: list[dict[str, Any]], good: list[dict[str, Any]]) -> str:
    hours = sum(row["hours"] for row in good)
    scored = [row for row in good if row["coverage"] is not None]
    line = f"{len(good)} of {len(rows)} cars were learned from, {hours:.1f} hours."
    if scored:
        inside = sum(row["coverage"] for row in scored) / len(scored)
        line += (
            f" On the last drive of each car, before it was learned from, 90\N{NO-BREAK SPACE}% bands held {inside:.0%} of "
            "values."
        )
    sure = sum(row["lower"] > row["expected_kwh_100km"] for row in good)
    harder, broken = sum(ALARM in row["warning"] for row in good), sum(bool(row["warning"]) for row in rows)
    links = (
        f'<a href="#uses">{sure} surely use more than expected</a>, <a href="#drift">{harder} changed against themselves</a>, '
        f'<a href="#broken">{broken} have a warning</a>.'
    )
    return f"<h1>Fleet</h1><p>{text(line)} Of {len(rows)} cars {links}</p>"


def _name(row: dict[str, Any]) -> str:
    """A car's id, however long or empty it is."""
    name = row["vehicle_id"] or "(no id)"
    return name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def _first(rows: Sequence[Any]) -> str:
    """A sentence where a table does not hold them all."""
    return f" The first {MOST_ROWS} of {len(rows)} cars; all are in cars.parquet." if len(rows) > MOST_ROWS else ""


def _picture(row: dict[str, Any]) -> Html:
    """Band and mean about what is expected, which is the line in the middle."""

    def x(kwh: float) -> float:
        off = kwh / float(row["expected_kwh_100km"]) - 1.0
        return WIDE / 2.0 * (1.0 + max(-1.0, min(1.0, off / FARTHEST)))

    low, mid, high = (x(row[name]) for name in ("lower", "energy_kwh_100km", "upper"))
    return Html(
        f'<svg width="{WIDE:.0f}" height="{HIGH:.0f}" aria-hidden="true">'
        f'<rect x="{low:.1f}" y="2" width="{max(1.0, high - low):.1f}" height="{HIGH - 4:.0f}" fill="var(--band-data)"/>'
        f'<path d="M{mid:.1f} 1V{HIGH - 1:.0f}" stroke="var(--blue)" stroke-width="2.4"/>'
        f'<path d="M{WIDE / 2:.1f} 0V{HIGH:.0f}" stroke="var(--soft)" stroke-dasharray="2 2"/></svg>'
    )


def _consumers(rows: list[dict[str, Any]]) -> str:
    """The most first; marked only where the whole band is above what is expected."""
    lead = (
        "kWh/100 km on one made-up drive, alike for all cars, with a 90 % band of what is known; expected is what the "
        f"data sheet and the base say without any log. Sure: the whole band lies above it.{_first(rows)}"
    )
    cells = [
        (_name(row), _picture(row), f"{row['energy_kwh_100km']:.1f}", f"{row['lower']:.1f} to {row['upper']:.1f}",
         f"{row['expected_kwh_100km']:.1f}", f"{row['energy_kwh_100km'] / row['expected_kwh_100km'] - 1:+.0%}",
         "yes" if row["lower"] > row["expected_kwh_100km"] else "", row["trips"])
        for row in rows[:MOST_ROWS]
    ]  # fmt: skip
    head = (
        "car",
        f"expected \N{PLUS-MINUS SIGN} {FARTHEST:.0%}",
        "uses",
        "90 %",
        "expected",
        "more by",
        "sure",
        "trips",
    )
    return section("Who uses more than expected", lead, table(head, cells, (2, 3, 4, 5, 7), (1, 4, 7)), "uses")


def _changed(rows: list[dict[str, Any]], before: Before | None) -> str:
    """Largest change first; sure where the two bands do not meet."""
    if before is None:
        return section("What changed", "This is the fleet's first month.", "", "changed")
    month, table_then = before
    then = {row["vehicle_id"]: row for row in table_then.to_dicts() if row["energy_kwh_100km"] is not None}
    both = [(row, then[row["vehicle_id"]]) for row in rows if row["vehicle_id"] in then]
    both = [(now, old) for now, old in both if now["trips"] != old["trips"]]
    both.sort(key=lambda pair: abs(pair[0]["energy_kwh_100km"] / pair[1]["energy_kwh_100km"] - 1), reverse=True)
    cells = [
        (_name(now), f"{old['energy_kwh_100km']:.1f}", f"{now['energy_kwh_100km']:.1f}",
         f"{now['energy_kwh_100km'] / old['energy_kwh_100km'] - 1:+.0%}",
         "yes" if now["lower"] > old["upper"] or now["upper"] < old["lower"] else "", now["trips"] - old["trips"])
        for now, old in both[:MOST_ROWS]
    ]  # fmt: skip
    fresh = sum(row["vehicle_id"] not in then for row in rows)
    lead = f"kWh/100 km on the same made-up drive, against {month}; sure: the bands do not meet. {fresh} cars are new.{_first(both)}"
    head = ("car", "was", "is", "change", "sure", "new trips")
    return section(f"What changed since {month}", lead, table(head, cells, (1, 2, 3, 5)) if cells else "", "changed")


def _drifting(rows: list[dict[str, Any]]) -> str:
    """Cars with an alarm, then those whose readings rise most."""
    known = [row for row in rows if row.get("drift") is not None]
    lead = (
        "Rolling resistance of late against the car's own earlier trips. Alarm: a rise that is there by chance about once in "
        "ten car-years of 1,000 trips each."
    )
    if not known:
        return section("Cars against themselves", "Nothing can be told before ten trips or so.", "", "drift")
    lead += _first(known)
    known.sort(key=lambda row: (ALARM not in row["warning"], -abs(row["drift"])))
    cells = [
        (_name(row), f"{row['drift']:+.0%}", "yes" if ALARM in row["warning"] else "", row["trips"])
        for row in known[:MOST_ROWS]
    ]
    return section("Cars against themselves", lead, table(("car", "rolls", "alarm", "trips"), cells, (1, 3)), "drift")


def _broken(rows: list[dict[str, Any]]) -> str:
    """Cars that could not be learned from come first."""
    rows = sorted(rows, key=lambda row: row["trips"] > 0)
    lost = sum(row["trips"] == 0 for row in rows)
    lead = f"{len(rows)} cars have a warning; {lost} could not be learned from.{_first(rows)}" if rows else "None."
    cells = [(_name(row), row["trips"], row["warning"]) for row in rows[:MOST_ROWS]]
    head = ("car", "trips", "what")
    return section("Logs that look broken", lead, table(head, cells, (1,)) if cells else "", "broken")
