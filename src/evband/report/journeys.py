"""The report's section on whole trips: their energy against what was measured, and how far a charge reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from evband.errors import EvbandError
from evband.report import words
from evband.report.chapter import Chapter
from evband.report.figures import SMALL
from evband.report.html import Html, figure, section, table, text
from evband.report.svg import Chart, padded
from evband.report.words import percent
from evband.routes.flat import flat_profile

if TYPE_CHECKING:
    from evband.energy import Energies

SHOWN_TRIPS = 50
CHARGE_KWH = 10.0  # of which the picture says how far it reaches
WAY_KM = 30.0
SPEEDS_KMH = (30.0, 130.0, 10.0)  # from, to, step
USUAL_C = 15.0


@dataclass(frozen=True)
class Reach:
    """Kilometres that `CHARGE_KWH` reach on the level at each speed: the 5, 50 and 95 % points."""

    speed_kmh: np.ndarray
    low: np.ndarray
    middle: np.ndarray
    high: np.ndarray
    ambient_c: float | None


def energy_and_range(chapter: Chapter, number: int) -> Html:
    """Trip energy as measured and as predicted, and the reach over speed; in words what cannot be shown."""
    title, anchor = "Energy and range", f"energy-{number}"
    if chapter.model.energy_ is None:
        lead = "There are no bands of trip energy: too few trips could be left out in turn. evband calibrate makes them, from 9 new trips."
        return section(title, lead, "", anchor)
    found = chapter.model.energy(chapter.trips, chapter.level)
    try:
        reach = reach_over_speed(chapter)
        far = figure(reach_picture(reach), f"How far do {CHARGE_KWH:g} kWh reach?", _far(reach))
    except EvbandError as problem:
        far = Html(f"<figure><h4>How far does a charge reach?</h4><p>{text(problem)}</p></figure>")
    near = figure(energy_picture(found, chapter.word), "Right over whole trips?", _near(found, chapter.word))
    lead = (
        "Errors of neighbouring seconds add up, so a trip's energy has a band of its own, found on trips that members never saw. "
        "It assumes that the next trip is drawn like those."
    )
    return section(title, lead, f'<div class="figures">{near}{far}</div>{_table(found, chapter.word)}', anchor)


def reach_over_speed(chapter: Chapter) -> Reach:
    """Plans of a level way at every speed that the training trips had, in the middle temperature of these trips."""
    model = chapter.model
    channels = model.feature_map_.channels
    ranges = dict(zip(channels, zip(model.feature_map_.low, model.feature_map_.high, strict=True), strict=True))
    first, last, step = SPEEDS_KMH
    speeds = np.arange(first, min(last, float(ranges.get("speed_kmh", (0.0, last))[1])) + 0.5, step)
    ambient = _middle_temperature(chapter) if "ambient_temp_c" in channels else None
    ends = []
    for speed in speeds:
        way = model.range(100.0, CHARGE_KWH, flat_profile(WAY_KM, float(speed)), reserve_soc=0.0, ambient_c=ambient)
        ends.append([CHARGE_KWH * WAY_KM / max(way.energy_kwh(p), 0.1) for p in (0.95, 0.5, 0.05)])
    low, middle, high = np.array(ends).reshape(-1, 3).T
    return Reach(speeds, low, middle, high, ambient)


def _middle_temperature(chapter: Chapter) -> float:
    known = [
        trip.table["ambient_temp_c"].drop_nulls().to_numpy() for trip in chapter.trips if trip.has("ambient_temp_c")
    ]
    values = np.concatenate(known) if known else np.array([])
    return float(np.median(values)) if len(values) else USUAL_C


def reach_picture(reach: Reach) -> str:
    """A fan over speed."""
    speed = reach.speed_kmh
    chart = Chart(
        *SMALL,
        (float(speed[0]), float(speed[-1]) if len(speed) > 1 else float(speed[0]) + 1.0),
        (0.0, 1.05 * float(reach.high.max())),
    )
    chart.y_axis(f"km with {CHARGE_KWH:g} kWh")
    chart.x_axis("steady speed, km/h")
    chart.area(speed, reach.low, reach.high, "band-data")
    chart.line(speed, reach.middle, "mean strong")
    return chart.svg(f"Kilometres that {CHARGE_KWH:g} kWh reach over steady speed, with the band from 5 to 95 percent")


def energy_picture(found: Energies, word: str) -> str:
    """Measured energy against predicted, each with its band as an upright line; on the diagonal they agree."""
    known = [band for band in found if band.energy_kwh is not None]
    mean = np.array([band.mean_kwh for band in known])
    energy = np.array([band.energy_kwh for band in known], dtype=float)
    ends = np.array([band.interval(found.level) for band in known]).reshape(-1, 2)
    span = padded(np.concatenate([mean, energy, ends.ravel()]))
    chart = Chart(*SMALL, span, span)
    chart.y_axis("predicted, kWh")
    chart.x_axis(f"{word}, kWh")
    chart.line(np.array(span), np.array(span), "ideal")
    for x, (lower, upper) in zip(energy, ends, strict=True):
        at = float(chart.px(x))
        chart.segment(at, float(chart.py(lower)), at, float(chart.py(upper)), "spread")
    inside = (ends[:, 0] <= energy) & (energy <= ends[:, 1])
    chart.dots(energy[inside], mean[inside], "mark", 3.0)
    chart.dots(energy[~inside], mean[~inside], "miss", 3.0)
    return chart.svg(f"Predicted energy of each trip with its band, against {word} energy; on the diagonal they agree")


def _near(found: Energies, word: str) -> str:
    known = [band for band in found if band.energy_kwh is not None]
    if not known:
        return "No trip has enough measured power to compare with."
    total, predicted_kwh = sum(float(band.energy_kwh or 0.0) for band in known), sum(band.mean_kwh for band in known)
    return (
        f"A dot for each trip, its upright line the {words.asked(found.level)} band; red where the {word} energy is outside. "
        f"{percent(found.coverage or 0.0)} of {len(known)} trips are inside. All together: {total:.1f} kWh {word}, {predicted_kwh:.1f} predicted."
    )


def _far(reach: Reach) -> str:
    """The same at one usual speed, in numbers."""
    k = int(np.argmin(np.abs(reach.speed_kmh - 80.0)))
    weather = "" if reach.ambient_c is None else f" at {reach.ambient_c:.0f} °C"
    return (
        f"On the level at a steady speed{weather}; the band holds 9 of 10 drives. At {reach.speed_kmh[k]:.0f} km/h: "
        f"{reach.middle[k]:.0f} km, 5 to 95 %: {reach.low[k]:.0f} to {reach.high[k]:.0f}. evband range answers for any route."
    )


def _table(found: Energies, word: str) -> Html:
    rows: list[Sequence[object]] = []
    for band in list(found)[:SHOWN_TRIPS]:
        lower, upper = band.interval(found.level)
        energy = "" if band.energy_kwh is None else f"{band.energy_kwh:.2f}"
        use = band.per_100km(band.mean_kwh)
        predicted = f"{band.mean_kwh:.2f} ({lower:.2f} to {upper:.2f})"
        rows.append(
            (
                band.trip_id,
                f"{band.distance_km:.1f} km",
                energy,
                predicted,
                f"{use:.1f}" if np.isfinite(use) else "",
            )
        )
    head = ("trip", "distance", f"{word}, kWh", "predicted, kWh", "kWh/100 km")
    return table(head, rows, (1, 2, 3, 4), (1, 4))
