"""The report's still pictures, each a function from a chapter to inline SVG."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evband.report.chapter import Chapter
from evband.report.svg import Array, Chart, nice_ticks, padded
from evband.report.thinning import extreme_rows

SCATTER_DOTS, PIT_BINS = 1500, 20
WIDE, SMALL = (1080, 320), (400, 290)
NARROW = 0.8  # of the widest: above that, nothing is narrow
NOTE_PX = 7.0  # of a letter


def stretch_picture(chapter: Chapter, rows: slice, width: int, height: int, css: str) -> str:
    """A short drive with its band: each value a dot, misses ringed, and what to see written where it is."""
    time = chapter.rows.time_s[rows] - chapter.rows.time_s[rows.start]
    lower, upper = (end[rows] for end in chapter.interval)
    y, missed = chapter.power[rows], chapter.missed[rows]
    chart = Chart(
        width, height, (0.0, float(time[-1]) or 1.0), padded(np.concatenate([lower, upper, y]), 0.03), top=40, right=10
    )
    chart.y_axis("battery power, kW")
    chart.x_axis("seconds")
    _band(chart, chapter, rows, time)
    chart.line(time, chapter.rows.mean[rows], "mean")
    chart.dots(time[~missed], y[~missed], "inside", 1.7)
    chart.dots(time[missed], y[missed], "miss", 3.0)
    _annotate(chart, time, lower, upper, y, missed, chapter.rows.outside[rows], chapter.scores["width_kw"])
    return chart.svg(f"{chapter.word.capitalize()} battery power of a short drive, with the band around its mean", css)


def _band(chart: Chart, chapter: Chapter, rows: slice | NDArray[np.intp], time: Array) -> None:
    """Two shades: what is left if all members agreed, and around it what their doubt adds."""
    mean, share = chapter.rows.mean[rows], chapter.data_share[rows]
    lower, upper = (end[rows] for end in chapter.interval)
    chart.area(time, lower, upper, "band-model")
    chart.area(time, mean - share * (mean - lower), mean + share * (upper - mean), "band-data")


def _annotate(
    chart: Chart,
    time: Array,
    lower: Array,
    upper: Array,
    y: Array,
    missed: NDArray[np.bool_],
    outside: NDArray[np.bool_],
    usual: float,
) -> None:
    """Say at the top, with a line down to it, where the band is wide, where it is narrow, and what a miss is.

    Wide and narrow are against the usual width over all rows.
    """
    width = upper - lower
    beyond = np.where(missed, np.maximum(lower - y, y - upper), -np.inf)
    widest = width.max()
    narrow = width < min(NARROW * widest, usual)
    unlike = ", unlike training" if outside[np.argmax(width)] else ""
    wanted = [
        (np.where((width == widest) & (widest > usual), 1.0, -np.inf), upper, f"wide: {widest:.1f} kW{unlike}"),
        (beyond, y, "a miss"),
        (np.where(narrow, -width, -np.inf), upper, "narrow: {:.1f} kW"),
    ]
    at = chart.px(time)
    taken: list[tuple[float, float]] = []  # where, and half how wide
    for merit, foot, text in wanted:
        half = NOTE_PX * len(text) / 2
        free = (at > chart.left + half - 20) & (at + half <= chart.width)
        for other, other_half in taken:
            free &= np.abs(at - other) > half + other_half + 12
        merit = np.where(free, merit, -np.inf)
        i = int(np.argmax(merit))
        if np.isfinite(merit[i]):
            taken.append((float(at[i]), half))
            chart.segment(at[i], chart.top - 16, at[i], float(chart.py(foot[i])) - 5, "leader")
            chart.text(at[i], chart.top - 22, text.format(width[i]), "note", "middle")


def drive_picture(chapter: Chapter) -> str:
    """The first trip whole, thinned; shown until the zoomable chart takes its place, and where scripts are off."""
    of_trip = np.flatnonzero(chapter.rows.trip_id == chapter.rows.trip_id[0])
    lower, upper = chapter.interval
    some = of_trip[extreme_rows([v[of_trip] for v in (chapter.power, lower, upper)], WIDE[0] // 3)]
    time = (chapter.rows.time_s[some] - chapter.rows.time_s[of_trip[0]]) / 60.0
    values = np.concatenate([lower[some], upper[some], chapter.power[some]])
    chart = Chart(*WIDE, (0.0, float(time[-1]) or 1.0), padded(values, 0.03))
    chart.y_axis("battery power, kW")
    chart.x_axis("minutes")
    _band(chart, chapter, some, time)
    chart.line(time, chapter.rows.mean[some], "mean")
    chart.line(time, chapter.power[some], "measured")
    return chart.svg(f"{chapter.word.capitalize()} power, mean and band over the first trip")


def scatter(chapter: Chapter) -> str:
    """Measured against mean, at most 1500 dots: the misses and an even pick of the rest."""
    which = np.flatnonzero(chapter.scored)
    far = which[np.argsort(-np.abs(chapter.power - chapter.rows.mean)[which])[: SCATTER_DOTS // 30]]
    even = which[:: max(1, len(which) // (SCATTER_DOTS - len(far)) + 1)]
    some = np.union1d(far, even)
    x, y = chapter.rows.mean[some], chapter.power[some]
    span = padded(np.concatenate([x, y]))
    chart = Chart(*SMALL, span, span)
    chart.y_axis(f"{chapter.word} power, kW")
    chart.x_axis("estimated mean, kW", nice_ticks(*span, 5))
    chart.line(np.array(span), np.array(span), "ideal")
    missed = chapter.missed[some]
    chart.dots(x[~missed], y[~missed], "cloud", 1.5)
    chart.dots(x[missed], y[missed], "cloud-miss", 1.5)
    return chart.svg(f"Scatter of {chapter.word} power against the estimated mean; on the diagonal they agree")


def calibration_curve(chapter: Chapter) -> str:
    """Share of measurements inside the central band of every level, against the level."""
    levels = np.linspace(0, 1, 101)
    rank = np.sort(np.abs(2 * chapter.pit - 1))
    observed = np.searchsorted(rank, levels, side="right") / len(rank)
    chart = Chart(*SMALL, (0.0, 1.0), (0.0, 1.0), left=68)
    ticks, texts = [0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"]
    chart.y_axis("values found inside", ticks, texts)
    chart.x_axis("band asked for", ticks, texts)
    chart.line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "ideal")
    chart.line(levels, observed, "mean strong")
    here = np.searchsorted(rank, chapter.level, side="right") / len(rank)
    chart.dots(np.array([chapter.level]), np.array([here]), "mark", 4.5)
    return chart.svg("Calibration curve: share of values inside the band of each level; ideal is the diagonal")


def pit_histogram(chapter: Chapter) -> str:
    """Histogram of F(y): flat when the distribution is right, a U when too narrow, a hill when too wide."""
    edges = np.linspace(0, 1, PIT_BINS + 1)
    share = np.histogram(chapter.pit, edges)[0] / len(chapter.pit) * PIT_BINS
    chart = Chart(*SMALL, (0.0, 1.0), (0.0, max(2.0, float(share.max()) * 1.08)))
    chart.y_axis("how often, 1 = as it should")
    chart.x_axis("rank in its own distribution", [0, 0.5, 1], ["lowest", "middle", "highest"])
    chart.bars(edges, share, "bar")
    chart.line(np.array([0.0, 1.0]), np.array([1.0, 1.0]), "ideal over")
    return chart.svg("Histogram of the probability integral transform; ideal is flat")


def autocorrelation(chapter: Chapter) -> str:
    """How alike the error is to itself some seconds later."""
    lags, r = chapter.autocorrelation
    longest, lowest = (float(lags[-1]), float(r.min())) if len(r) else (0.0, 0.0)
    chart = Chart(*SMALL, (0.0, max(longest, chapter.step_s)), (min(-0.2, lowest - 0.05), 1.0))
    chart.y_axis("correlation of the error")
    chart.x_axis("seconds later")
    chart.line(np.array(chart.x), np.zeros(2), "ideal")
    chart.line(lags, r, "mean strong")
    return chart.svg("Autocorrelation of the error over time")


def coverage_strip(coverage: float, interval: list[float] | None, level: float) -> str:
    """One line of a table: where coverage lies between 50 and 100 %, its honest interval, and the level asked for."""
    low = 0.5 if level >= 0.6 else 0.0
    chart = Chart(180, 20, (low, 1.0), (0.0, 1.0), left=4, right=4, top=0, bottom=0)
    chart.segment(4, 10, 176, 10, "track")
    goal = float(chart.px(level))
    chart.segment(goal, 2, goal, 18, "goal")
    if interval:
        ends = chart.px(np.clip(np.asarray(interval), low, 1.0))
        chart.segment(float(ends[0]), 10, float(ends[1]), 10, "spread")
    chart.dots(np.array([max(coverage, low)]), np.array([0.5]), "mark", 4.0)
    return chart.svg(f"coverage {coverage:.1%} where {level:.0%} was asked for", "strip")
