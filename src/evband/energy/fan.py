"""The fan: charge over distance with its band, the reserve and the route's end; a PNG, or an HTML page that opens offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import numpy as np

from evband.energy.answers import in_percent, shares_line
from evband.energy.range import Range
from evband.errors import SettingsError, require
from evband.files import whole_file

BANDS = ((0.9, 0.18), (0.5, 0.35))  # level, opacity
BLUE = "#1f5fa8"
POINTS = 400
WIDEST = 120  # letters of a line below the picture


def check_picture(path: Path) -> None:
    if path.suffix.lower() not in (".png", ".html", ".htm"):
        raise SettingsError(f"{path}: a fan is drawn as .html or .png; name the file so.")


def write_fan(plan: Range, path: Path, notes: Sequence[str] = ()) -> None:
    """Draw to the farthest distance worth showing, a little beyond the route or the battery; `notes` stand below."""
    check_picture(path)
    end = max(1.1 * plan.route_km, min(1.05 * plan.distance_km(0.95), 3.0 * plan.route_km))
    shown = np.append(0.0, plan.way.km[plan.way.km <= end])
    at = np.unique(np.linspace(0, len(shown) - 1, min(POINTS, len(shown))).astype(int))
    lines = {  # a battery is empty at 0
        p: np.clip(np.append(plan.soc, plan.soc_along(p))[: len(shown)][at], 0.0, 100.0)
        for p in (0.5, *(0.5 + side * level / 2 for level, _ in BANDS for side in (-1, 1)))
    }
    chance = in_percent(plan.arrival_probability, 0)
    title = f"{chance} chance to arrive after {plan.route_km:.0f} km with {plan.reserve_soc:g} % left"
    below = [piece for line in (*notes, f"doubt comes from: {shares_line(plan)}") for piece in wrap(line, WIDEST)]
    draw = _png if path.suffix.lower() == ".png" else _html
    with whole_file(path) as temporary:
        draw(plan, shown[at], lines, title, below, temporary)


def _png(plan: Range, km: Any, lines: dict[float, Any], title: str, below: list[str], path: Path) -> None:
    require("matplotlib", "a fan as .png")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for level, opacity in BANDS:
        low, high = lines[0.5 - level / 2], lines[0.5 + level / 2]
        axes.fill_between(km, low, high, color=BLUE, alpha=opacity, lw=0, label=f"{level:.0%} band")
    axes.plot(km, lines[0.5], color=BLUE, label="median")
    axes.axhline(plan.reserve_soc, color="#b3261e", ls="--", label="reserve")
    axes.axvline(plan.route_km, color="#444", lw=1, label="route ends")
    axes.set(xlabel="distance, km", ylabel="state of charge, %", title=title, xlim=(0, km[-1]))
    axes.set_ylim(0.0, min(100.0, plan.soc + 5.0))
    axes.legend(loc="best", frameon=False)
    if (soc := plan.soc_needed()) is not None and soc > plan.soc:
        axes.plot([0.0], [min(soc, 100.0)], marker="^", ls="", color="#1b7f3b", clip_on=False, label="charge for 95 %")
        axes.set_ylim(top=min(100.0, soc + 5.0))
        axes.legend(loc="best", frameon=False)
    figure.supxlabel("\n".join(below), fontsize=8, x=0.01, ha="left")
    figure.savefig(path, dpi=150, format="png")


def _html(plan: Range, km: Any, lines: dict[float, Any], title: str, below: list[str], path: Path) -> None:
    require("plotly", "a fan as .html")
    import plotly.graph_objects as go

    figure = go.Figure()
    for level, opacity in BANDS:
        low, high = lines[0.5 - level / 2], lines[0.5 + level / 2]
        figure.add_scatter(
            x=np.concatenate([km, km[::-1]]),
            y=np.concatenate([high, low[::-1]]),
            fill="toself",
            fillcolor=f"rgba(31,95,168,{opacity})",
            line={"width": 0},
            name=f"{level:.0%} band",
            hoverinfo="skip",
        )
    figure.add_scatter(x=km, y=lines[0.5], line={"color": BLUE}, name="median")
    figure.add_hline(y=plan.reserve_soc, line={"color": "#b3261e", "dash": "dash"}, annotation_text="reserve")
    figure.add_vline(x=plan.route_km, line={"color": "#444"}, annotation_text="route ends")
    figure.update_layout(
        title={"text": title + "<br><sub>" + "<br>".join(below) + "</sub>", "y": 0.97, "yanchor": "top"},
        margin={"t": 80 + 25 * len(below)}, height=480 + 25 * len(below), yaxis_range=[0.0, min(100.0, plan.soc + 5.0)],
        xaxis_title="distance, km", yaxis_title="state of charge, %", template="plotly_white",
    )  # fmt: skip
    figure.write_html(path, include_plotlyjs=True, full_html=True)
