"""Bands as a picture and as a short table, for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from evband.channels import SIMULATED
from evband.errors import TripsError, require

if TYPE_CHECKING:
    from evband.bands.bands import Bands

BLUE = "#1f5fa8"


def new_axes(task: str, axes: Any = None) -> Any:
    """The axes given, or those of a new figure of matplotlib's current backend."""
    require("matplotlib", task)
    if axes is not None:
        return axes
    from matplotlib.pyplot import subplots

    return subplots(figsize=(8, 4), layout="constrained")[1]


def table(head: list[str], rows: list[list[str]], caption: str) -> str:
    """A small HTML table; every cell is escaped.

    >>> table(["a"], [["<b>"]], "")
    '<table><caption></caption><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    lines = [("th", head), *(("td", row) for row in rows)]
    body = "".join(f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in row)}</tr>" for tag, row in lines)
    return f"<table><caption>{escape(caption)}</caption>{body}</table>"


def draw(bands: Bands, trip_id: str | None, level: float, axes: Any) -> Any:
    """Mean, band and measured power of one trip over time."""
    names = bands.trip_id.astype(str)
    chosen = names[0] if trip_id is None and len(names) else trip_id
    here = np.flatnonzero(names == chosen)
    if not len(here):
        raise TripsError(f"There is no trip {chosen!r} in these bands; they hold {', '.join(dict.fromkeys(names))}.")
    part, axes = bands.rows(here), new_axes("a picture of bands", axes)
    minutes = (part.time_s - part.time_s[0]) / 60.0
    lower, upper = part.interval(level)
    axes.fill_between(minutes, lower, upper, color=BLUE, alpha=0.25, lw=0, label=f"{level:.0%} band")
    axes.plot(minutes, part.mean, color=BLUE, lw=1, label="mean")
    if part.power_kw is not None and np.isfinite(part.power_kw).any():
        word = "simulated" if str(chosen).startswith(SIMULATED) else "measured"
        axes.plot(minutes, part.power_kw, color="#222", lw=0.7, label=word)
    axes.set(xlabel="minutes", ylabel="power, kW", title=chosen)
    axes.legend(frameon=False)
    return axes


def summary(bands: Bands) -> str:
    """One line per trip: rows, mean power, width of the 90 % band, its two parts."""
    names = bands.trip_id.astype(str)
    lower, upper = bands.interval(0.9)
    values = np.stack([bands.mean, upper - lower, bands.aleatoric, bands.epistemic], axis=1)  # [rows, 4]
    shown = list(dict.fromkeys(names))[:20]
    rows = [[n, str((names == n).sum()), *(f"{x:.2f}" for x in values[names == n].mean(axis=0))] for n in shown]
    head = ["trip", "rows", "mean, kW", "90 % width, kW", "aleatoric, kW", "epistemic, kW"]
    return table(head, rows, repr(bands))
