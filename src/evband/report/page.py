"""The page around the sections: first screen, overview of several models, style, script, and the plotting library."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evband import __version__
from evband.errors import require
from evband.files import write_whole
from evband.report import figures, sections, words
from evband.report.chapter import Chapter
from evband.report.html import Html, table, text
from evband.report.words import count, kw, percent

if TYPE_CHECKING:
    from evband.bands import Bands
    from evband.model import PowerModel
    from evband.scores import Scores
    from evband.trips import Trips

STRETCH_ROWS = 150
NOTICE_OUTSIDE = 0.05  # share of rows


def write_report(path: str | Path, model: PowerModel, bands: Bands, scores: Scores, trips: Trips) -> None:
    """Write one HTML file that opens offline: how well the bands of one model held on these trips.

    >>> import evband, polars as pl
    >>> drive = pl.DataFrame({"time_s": [float(t) for t in range(90)], "speed_kmh": [50.0 + t % 7 for t in range(90)]})
    >>> trips = evband.read_trips(drive.with_columns(power_kw=pl.col("speed_kmh") * 0.2 + 3.0))
    >>> bands = evband.start("Renault Zoe 52 kWh").predict(trips)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report(f"{folder}/report.html", evband.start("Renault Zoe 52 kWh"), bands, evband.evaluate(bands), trips)
    """
    write_page(path, [Chapter(model, bands, scores, trips)])


def write_page(path: str | Path, chapters: Sequence[Chapter], title: str = "Battery power from motion") -> None:
    """Write one page on several models: what a band is, an overview, then a chapter each."""
    page = html_page(chapters, title)
    write_whole(path, page)


def html_page(chapters: Sequence[Chapter], title: str) -> str:
    """The whole page. Script and library stand last, so that the first screen is painted before they are read."""
    single = len(chapters) == 1
    body = [_first_screen(chapters, title)]
    if not single:
        body.append(_overview(chapters))
    for number, chapter in enumerate(chapters):
        head = (
            ""
            if single
            else f"<h2>{text(chapter.name)}</h2><p>{text(chapter.about)} {text(_headline(chapter))}</p>{_notice(chapter)}"
        )
        inside = sections.whole(chapter, number, opened=single)
        body.append(f'<article id="chapter-{number}">{head}{inside}</article>')
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">'
        f'<title>{text(title)} · evband</title><link rel="icon" href="data:,"><style>{_asset("page.css")}</style></head>'
        f'<body><main>{"".join(body)}</main>{_footer(chapters)}'
        f'<script type="text/plain" id="plotly">{_plotly()}</script><script>{_asset("page.js")}</script></body></html>'
    )  # fmt: skip


def _first_screen(chapters: Sequence[Chapter], title: str) -> str:
    """What a band is, shown on a short drive, and whether the bands held."""
    first = chapters[0]
    word, level = first.word, first.level
    hits = sum(c.scores["coverage"] * c.scores["n"] for c in chapters)
    coverage = hits / sum(c.scores["n"] for c in chapters)
    badge = '<span class="badge">simulated data, nothing here was measured</span>' if first.simulated else ""
    stretch = first.typical_stretch(STRETCH_ROWS * first.step_s)
    tiles = _tiles(first) + _notice(first) if len(chapters) == 1 else ""
    return (
        f'<header><p class="eyebrow">{text(title)}{badge}</p>'
        f"<h1>{words.of_ten(level)} {word} values should fall inside the band. <em>{percent(coverage)} did.</em></h1>"
        f'<p class="intro">{_intro(first)}</p></header>'
        f"{_hero(first, stretch) if stretch.stop - stretch.start > 1 else ''}{tiles}"
    )


def _hero(chapter: Chapter, stretch: slice) -> str:
    """A short drive of at least two rows, its first part on narrow screens."""
    short = slice(stretch.start, stretch.start + max(2, (stretch.stop - stretch.start) * 2 // 5))
    narrow = ' <span class="for-narrow">Its first part is shown.</span>'
    return (
        f'<figure class="hero">{figures.stretch_picture(chapter, stretch, 1080, 330, "for-wide")}'
        f"{figures.stretch_picture(chapter, short, 360, 280, 'for-narrow')}{sections.legend(chapter.word)}"
        f"<figcaption>{_caption(chapter, stretch)}{narrow}</figcaption></figure>"
    )


def _intro(chapter: Chapter) -> str:
    """A band in plain words."""
    return text(
        "From the car's motion the model predicts the power of its battery: a mean, and a band that shows how certain it is, narrow "
        "where power follows from the motion and wide where it does not. "
        f"A {words.asked(chapter.level)} band promises to hold {words.of_ten(chapter.level)} values; {_rest(chapter.level)} should lie "
        "outside, or it would be too wide."
    )


def _rest(level: float) -> str:
    part, of, whole = words.of_ten(level).partition(" of ")
    return f"{int(whole) - int(float(part))}{of}{whole}" if part.isdigit() else f"{100 * (1 - level):.3g}{of}{whole}"


def _caption(chapter: Chapter, stretch: slice) -> str:
    lower, upper = chapter.interval
    inside, width = 1 - float(chapter.missed[stretch].mean()), float((upper - lower)[stretch].mean())
    seconds = (stretch.stop - stretch.start) * chapter.step_s
    driver = f" of {chapter.name}" if chapter.name else ""
    return text(
        f"{seconds:.0f} seconds{driver} from trip {chapter.rows.trip_id[stretch.start]}, {percent(inside)} of values inside, mean width {kw(width)}: "
        "lively driving, picked so that the band holds about as often, and is about as wide, as over all the trips."
    )


def _tiles(chapter: Chapter) -> str:
    s, level = chapter.scores, chapter.level
    variance = s["aleatoric_kw"] ** 2 + s["epistemic_kw"] ** 2
    doubt = s["epistemic_kw"] ** 2 / variance if variance else 0.0
    honest = s["coverage_trips"]
    tiles = (
        (percent(s["coverage"]), f"inside the {words.asked(level)} band", words.verdict(s["coverage"], honest, level, s["trips"])),
        (kw(s["width_kw"]), "mean width of the band", "From its lower to its upper end. Narrower is better, at equal coverage."),
        (kw(s["mae_kw"]), "typical miss of the mean", f"Mean distance to {chapter.word} power (MAE); RMSE is {kw(s['rmse_kw'])}, R² {words.plain(s['r2'])}."),
        (percent(doubt), "of the variance is doubt", "What the model does not know (its members disagree). The rest is scatter in the data itself."),
    )  # fmt: skip
    return (
        '<div class="tiles">'
        + "".join(f"<div><b>{value}</b><span>{text(what)}</span><p>{text(why)}</p></div>" for value, what, why in tiles)
        + "</div>"
    )


def _notice(chapter: Chapter) -> str:
    """Warnings: trips that the model was trained on, and much driving that is unlike the training trips."""
    notices = []
    seen = len(chapter.trips.among(chapter.model.fingerprints_))
    if seen:
        notices.append(
            f"{seen} of {len(chapter.trips)} trips were in the training data, or calibrated the model, so every number here flatters."
        )
    share, channel = chapter.outside_most()
    if share >= NOTICE_OUTSIDE:
        which = f", most often {channel}" if channel else ""
        notices.append(
            f"{percent(share)} of the rows have an input outside the range it had in training{which}. "
            "There the model guesses, its doubt grows, and no calibration holds."
        )
    return "".join(f'<p class="notice">{text(notice)}</p>' for notice in notices)


def _headline(chapter: Chapter) -> str:
    s = chapter.scores
    return f"{percent(s['coverage'])} of {count(s['n'])} values fell inside. {words.verdict(s['coverage'], s['coverage_trips'], chapter.level, s['trips'])}"


def _overview(chapters: Sequence[Chapter]) -> str:
    rows = []
    for number, c in enumerate(chapters):
        s = c.scores
        strip = Html(figures.coverage_strip(s["coverage"], s["coverage_trips"], c.level))
        link = Html(f'<a href="#chapter-{number}">{text(c.name)}</a>')
        rows.append((link, strip, percent(s["coverage"]), kw(s["width_kw"]), kw(s["mae_kw"]), kw(s["crps_kw"]), words.plain(s["r2"]), s["trips"]))  # fmt: skip
    head = ("vehicle", "coverage", "", "width", "MAE", "CRPS", "R²", "trips")
    lead = (
        f"One model each, scored on trips that it never saw. The upright mark is the {words.asked(chapters[0].level)} asked for, the dot what came, "
        "the line its honest 95 % interval over trips: long, because the trips are few. Width is that of the band, MAE the typical "
        "miss of the mean, CRPS judges mean and band together (both in kW, lower is better)."
    )
    return f'<section id="overview"><h2>{count(len(chapters))} vehicles</h2><p class="lead">{text(lead)}</p>{table(head, rows, (2, 3, 4, 5, 6, 7), (4, 5, 6, 7))}</section>'


def _footer(chapters: Sequence[Chapter]) -> str:
    rows = sum(len(c.rows) for c in chapters)
    hours = sum(len(c.rows) * c.step_s for c in chapters) / 3600.0
    km = float(np.nansum([trip.distance_km for c in chapters for trip in c.trips]))
    return (
        f"<footer><p>Written by evband {__version__} from {count(rows)} rows, {hours:.1f} h and {count(km)} km of "
        f"{'simulated ' if chapters[0].simulated else ''}driving. The file is complete in itself and loads nothing. "
        "The zoomable charts are drawn by plotly.js (MIT licence).</p></footer>"
    )


def _asset(name: str) -> str:
    return files("evband.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """plotly.js as the Python package ships it, gzip and base64: two megabytes instead of five, unpacked when first needed."""
    require("plotly", "a report")
    from plotly.offline import get_plotlyjs

    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()
