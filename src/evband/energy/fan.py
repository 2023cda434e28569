"""The fan: charge over distance with its band, the reserve and the route's end; a PNG, or an HTML page that opens offline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import wrap

import numpy as np

from evband.bands.picture import BLUE
from evband.energy.answers import in_percent, shares_line
from evband.energy.picture import FAN, GREY, RED, draw_range, fan, highest
from evband.energy.range import Range
from evband.errors import SettingsError, require
from evband.files import whole_file

WIDEST = 120  # letters of a line below the picture


def check_picture(path: Path) -> None:
    if path.suffix.lower() not in (".png", ".html", ".htm"):
        raise SettingsError(f"{path}: a fan is drawn as .html or .png; name the file so.")


def write_fan(plan: Range, path: Path, notes: Sequence[str] = ()) -> None:
    """Draw charge over distance with its bands; `notes` stand below."""
    check_picture(path)
    chance = in_percent(plan.arrival_probability, 0)
    title = f"{chance} chance to arrive after {plan.route_km:.0f} km with {plan.reserve_soc:g} % left"
    below = [piece for line in (*notes, f"doubt comes from: {shares_line(plan)}") for piece in wrap(line, WIDEST)]
    draw = _png if path.suffix.lower() == ".png" else _html
    with whole_file(path) as temporary:
        draw(plan, title, below, temporary)


def _png(plan: Range, title: str, below: list[str], path: Path) -> None:
    require("matplotlib", "a fan as .png")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = draw_range(plan, figure.add_subplot())
    axes.set(title=title)
    if (soc := plan.soc_needed()) is not None and soc > plan.soc:
        axes.plot([0.0], [min(soc, 100.0)], marker="^", ls="", color="#1b7f3b", clip_on=False, label="charge for 95 %")
        axes.set_ylim(top=highest(soc))
        axes.legend(frameon=False)
    figure.supxlabel("\n".join(below), fontsize=8, x=0.01, ha="left")
    figure.savefig(path, dpi=150, format="png")


def _html(plan: Range, title: str, below: list[str], path: Path) -> None:
    require("plotly", "a fan as .html")
    import plotly.graph_objects as go

    figure = go.Figure()
    km, lines = fan(plan)
    colour = ",".join(str(int(BLUE[i : i + 2], 16)) for i in (1, 3, 5))
    for level, opacity in FAN.items():
        figure.add_scatter(
            x=np.concatenate([km, km[::-1]]),
            y=np.concatenate([lines[0.5 + level / 2], lines[0.5 - level / 2][::-1]]),
            fill="toself",
            fillcolor=f"rgba({colour},{opacity})",
            line={"width": 0},
            name=f"{level:.0%} band",
            hoverinfo="skip",
        )
    figure.add_scatter(x=km, y=lines[0.5], line={"color": BLUE}, name="median")
    figure.add_hline(y=plan.reserve_soc, line={"color": RED, "dash": "dash"}, annotation_text="reserve")
    figure.add_vline(x=plan.route_km, line={"color": GREY}, annotation_text="route ends")
    figure.update_layout(
        title={"text": title + "<br><sub>" + "<br>".join(below) + "</sub>", "y": 0.97, "yanchor": "top"},
        margin={"t": 80 + 25 * len(below)}, height=480 + 25 * len(below), yaxis_range=[0.0, highest(plan.soc)],
        xaxis_title="distance, km", yaxis_title="state of charge, %", template="plotly_white",
    )  # fmt: skip
    figure.write_html(path, include_plotlyjs=True, full_html=True)
