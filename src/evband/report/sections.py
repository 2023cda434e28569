"""The report's sections, each a function from a chapter to HTML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evband.report import figures, timeline, words
from evband.report.card import model_card
from evband.report.chapter import Chapter
from evband.report.html import Html, figure, fold, section, table, text
from evband.report.journeys import SHOWN_TRIPS, energy_and_range
from evband.report.words import count, kw, percent
from evband.trips.quality import Quality


def legend(word: str) -> Html:
    """What the marks of both drive pictures mean."""
    keys = (
        ("key-measured", f"{word} power"),
        ("key-mean", "mean estimate"),
        ("key-data", "band: scatter of the data"),
        ("key-model", "band: doubt of the model"),
        ("key-miss", "outside the band"),
    )
    return Html('<ul class="legend">' + "".join(f'<li class="{css}">{text(what)}</li>' for css, what in keys) + "</ul>")


def drive(chapter: Chapter, number: int) -> Html:
    """The zoomable chart of any trip, on top of a still picture of the first one."""
    options = "".join(f'<option value="{i}">{text(name)}</option>' for i, name in enumerate(_trip_ids(chapter)))
    controls = (
        f'<div class="controls" hidden><label>Trip <select>{options}</select></label>'
        '<span class="buttons"><button type="button" data-span="0">whole trip</button>'
        '<button type="button" data-span="600">10 min</button><button type="button" data-span="120">2 min</button></span>'
        '<span class="buttons"><button type="button" data-move="-1" aria-label="earlier">←</button>'
        '<button type="button" data-move="1" aria-label="later">→</button></span></div>'
    )
    body = (
        f'<div class="timeline" id="timeline-{number}">{controls}<div class="plot">{figures.drive_picture(chapter)}</div>'
        f'{legend(chapter.word)}<script type="application/json">{timeline.pack(chapter)}</script></div>'
    )
    lead = Html(
        f"{text(chapter.word.capitalize())} power, the mean and the {words.asked(chapter.level)} band. Zoom with the buttons, or drag a mouse "
        "across the chart; a double-click shows the whole trip. Blue is the scatter that the data itself has, the amber "
        "rim what the members' disagreement adds to it."
    )
    return section("The drives", lead, body, f"drives-{number}")


def honesty(chapter: Chapter, number: int) -> Html:
    """Scatter, calibration curve, PIT and autocorrelation."""
    s, word = chapter.scores, chapter.word
    memory, lags = chapter.memory_s, chapter.autocorrelation[0]
    lasting = "is unknown, for too few rows"
    if len(lags):
        lasting = f"is still above 0.37 after {lags[-1]:.0f} s"
    if memory is not None:
        lasting = f"falls under 0.37 within {memory:.3g} s"
    gap = 100 * s["calibration_error"]
    pictures = [
        figure(
            figures.scatter(chapter),
            "Close to the truth?",
            f"Each dot is a row (at most {count(figures.SCATTER_DOTS)} are drawn, the farthest off among them). "
            f"On the diagonal, mean and {word} power agree; the typical miss (MAE) is {kw(s['mae_kw'])}.",
        ),
        figure(
            figures.calibration_curve(chapter),
            "Right at every level?",
            f"For each band from 0 to 100 %: how many values were inside. Under the diagonal bands are too narrow, above it too "
            f"wide. The dot is the {words.asked(chapter.level)} band; from 5 to 95 % the share below is off by {gap:.1f} points on average.",
        ),
        figure(
            figures.pit_histogram(chapter),
            "Spread as predicted?",
            "Where each value came in its own distribution (its PIT). Flat is right; heaped at both ends means bands too narrow, "
            f"in the middle too wide; a slope means a bias. Variance on a normal scale: {words.plain(s['pit_variance'])}, ideal 1.",
        ),
        figure(
            figures.autocorrelation(chapter),
            "How long does an error last?",
            f"Correlation of the error with itself some seconds later. It {lasting}. While errors last, "
            "neighbouring rows are not independent evidence, so coverage is judged over trips and not over rows.",
        ),
    ]  # fmt: skip
    lead = (
        "A band is useful if it holds the share that it promises, in every regime, and is no wider than that requires."
    )
    return section("Can it be trusted?", lead, f'<div class="figures">{"".join(pictures)}</div>', f"trust-{number}")


def by_regime(chapter: Chapter, number: int) -> Html:
    s = chapter.scores
    parts = [(name, words.REGIMES[name], part) for name, part in s["by_regime"].items()]
    if s["warmup"]["n"]:
        parts.append(("warm-up", "first seconds after a start or gap, scored apart", s["warmup"]))
    absent = [name for name in words.REGIMES if name not in s["by_regime"]]
    note = f" No driving here was {_listed(absent)}." if absent and s["by_regime"] else ""
    lead = (
        "A band can be right on average and wrong when braking. Regimes come from speed and acceleration, never from power. "
        f"The line is the honest 95 % interval, the upright mark the {words.asked(chapter.level)} asked for.{note}"
    )
    scored = [(Html(f"<b>{text(name)}</b> <small>{text(what)}</small>"), part) for name, what, part in parts]
    return section("By kind of driving", lead, _score_table("regime", scored), f"regimes-{number}")


def by_trip(chapter: Chapter, number: int, opened: bool) -> Html:
    trips = chapter.scores["by_trip"]
    lead = "Each trip by itself. Trips differ in weather, load and driver, so a single one may well be off."
    if len(trips) > SHOWN_TRIPS:
        lead += f" Of {len(trips)} trips, the {SHOWN_TRIPS} with the lowest coverage."
        trips = sorted(trips, key=lambda trip: trip["coverage"])[:SHOWN_TRIPS]
    body = _score_table("trip", [(trip["trip_id"], trip) for trip in trips])
    return fold("Trip by trip", lead, body, f"trips-{number}", opened)


def _score_table(what: str, parts: Sequence[tuple[object, dict[str, Any]]]) -> Html:
    rows = []
    for name, s in parts:
        strip = Html(figures.coverage_strip(s["coverage"], s["coverage_trips"], s["level"]))
        rows.append((name, strip, percent(s["coverage"]), kw(s["width_kw"]), kw(s["rmse_kw"]), count(s["n"])))
    return table((what, "coverage", "", "width", "RMSE", "rows"), rows, (2, 3, 4, 5), (4, 5))


def worst(chapter: Chapter, number: int) -> Html:
    """The moments to look at first, each a button that shows it in the chart."""
    order = {name: i for i, name in enumerate(_trip_ids(chapter))}
    lower, upper = chapter.interval
    rows = []
    for m in chapter.worst_moments():
        button = Html(
            f'<button type="button" class="jump" data-chapter="{number}" data-trip="{order[m.trip_id]}" data-time="{m.time_s!r}">'
            f"{_clock(m.since_s)}</button>"
        )
        speed = "" if chapter.rows.speed_kmh is None else f"{chapter.rows.speed_kmh[m.row]:.0f} km/h"
        regime = "" if chapter.regime is None else str(chapter.regime[m.row])
        rows.append(
            (
                button, m.trip_id, kw(m.beyond_kw), kw(chapter.power[m.row]),
                f"{words.rounded(lower[m.row], 2)} to {kw(upper[m.row])}", f"{regime}, {speed}" if speed else regime,
                _outside(chapter, m.row),
            )
        )  # fmt: skip
    if not rows:
        return section("Worst moments", "Every value lay inside its band.", "", f"worst-{number}")
    lead = "Where power was farthest outside the band. Look at these first: a glitch in the log, or something the model does not know?"
    head = ("at", "trip", "beyond band", f"{chapter.word} power", "band", "driving", "input outside training")
    return section("Worst moments", lead, table(head, rows, (2, 3, 4), (1, 3, 5, 6)), f"worst-{number}")


def _outside(chapter: Chapter, row: int) -> str:
    if not chapter.rows.outside[row]:
        return "none"
    names = chapter.rows.outside_channel
    return "yes" if names is None else str(names[row])


def all_scores(chapter: Chapter, number: int, opened: bool) -> Html:
    level, s = words.asked(chapter.level), chapter.scores
    rows = [
        f"<dt>{text(label)}</dt><dd class=num>{text(form(s[key]))}</dd><dd>{text(sentence.format(word=chapter.word, level=level))}</dd>"
        for key, label, form, sentence in words.SCORES
        if s[key] is not None
    ]
    lead = f"Over {count(s['n'])} rows of {_trips(s['trips'])}, warm-up left out. Power from the battery is positive, regeneration negative."
    body = f'<dl class="scores">{"".join(rows)}</dl>'
    return fold("Every score, in a sentence", lead, body, f"scores-{number}", opened)


def quality(chapter: Chapter, number: int, opened: bool) -> Html:
    """What reading the logs found and did."""
    outside = float(chapter.rows.outside.mean())
    lead = f"What was found while reading the logs and what was done about it. {percent(outside)} of rows had an input outside its training range."
    rows: list[tuple[object, ...]] = []
    for trip in chapter.trips:
        report = trip.report
        found = _findings(report) if report else []
        source = f"{report.format} {Path(report.source).name}".strip() if report else ""
        what = Html("<br>".join(text(line) for line in found)) if found else "nothing found"
        rows.append((trip.trip_id, f"{trip.duration_s / 60:.0f} min", _km(trip.distance_km), source, what))
    if len(rows) > SHOWN_TRIPS:
        rows = sorted(rows, key=lambda row: row[-1] == "nothing found")[:SHOWN_TRIPS]
        lead += f" {SHOWN_TRIPS} of {len(chapter.trips)} trips are shown, those with findings first."
    body = table(("trip", "lasts", "distance", "read as", "found"), rows, (1, 2), (3,))
    return fold("The data's quality", lead, body, f"quality-{number}", opened)


def _findings(report: Quality) -> list[str]:
    """Findings and notes, a line each; gaps, which a lost link leaves in every channel, in one."""
    gaps = report.of("gap")
    lines = [f"{f.channel + ': ' if f.channel else ''}{f.text}; {f.action}" for f in report.findings if f.kind != "gap"]
    if gaps:
        longest = max(gaps, key=lambda f: f.end_s - f.start_s)
        lines.append(longest.text + (f", in {len(gaps)} channels" if len(gaps) > 1 else ""))
    return [*lines, *report.notes]


def about_model(chapter: Chapter, number: int, opened: bool) -> Html:
    lines = "".join(f"<dt>{text(what)}</dt><dd>{text(answer)}</dd>" for what, answer in model_card(chapter.model))
    return fold("The model", "How it was made, on what, and what its calibration rests on.", f'<dl class="card">{lines}</dl>', f"model-{number}", opened)  # fmt: skip


def whole(chapter: Chapter, number: int, opened: bool) -> str:
    """All sections of a chapter."""
    return "".join(
        (
            drive(chapter, number),
            honesty(chapter, number),
            energy_and_range(chapter, number),
            by_regime(chapter, number),
            worst(chapter, number),
            by_trip(chapter, number, opened),
            all_scores(chapter, number, opened),
            quality(chapter, number, opened),
            about_model(chapter, number, opened),
        )
    )


def _trip_ids(chapter: Chapter) -> list[str]:
    return [str(name) for name in dict.fromkeys(chapter.rows.trip_id.tolist())]


def _trips(n: int) -> str:
    return "1 trip" if n == 1 else f"{count(n)} trips"


def _km(distance: float) -> str:
    return "" if math.isnan(distance) else f"{distance:.1f} km"


def _clock(seconds: float) -> str:
    """h:mm:ss, rounded as the zoomable chart does."""
    whole_s = int(np.floor(seconds + 0.5))
    return f"{whole_s // 3600}:{whole_s // 60 % 60:02d}:{whole_s % 60:02d}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
