"""Draw docs/band.png: a stretch of a simulated drive with its band, from the demonstration's first vehicle.

    python -m tools.docs.make_band_picture

The drive is simulated (nothing in it is measured), and the model never saw it.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from evband.demo import VEHICLES, chapter
from evband.report.chapter import Chapter

INK, SOFT, RULE, BLUE, DATA, MODEL, MISS = "#1d2227", "#57606a", "#dfe1dd", "#1b5a9c", "#b5cfe9", "#f0d7ae", "#b42318"
SECONDS = 150


def draw(shown: Chapter, path: Path) -> None:
    rows = shown.typical_stretch(SECONDS)
    time = shown.rows.time_s[rows] - shown.rows.time_s[rows.start]
    mean, power, missed, share = shown.rows.mean[rows], shown.power[rows], shown.missed[rows], shown.data_share[rows]
    lower, upper = (end[rows] for end in shown.interval)
    plt.rcParams.update({"font.size": 10, "axes.edgecolor": SOFT, "text.color": INK, "axes.labelcolor": SOFT})
    figure, axes = plt.subplots(figsize=(9.6, 3.6), layout="constrained")
    axes.fill_between(time, lower, upper, color=MODEL, lw=0, label="90 % band: doubt of the model")
    inner = mean - share * (mean - lower), mean + share * (upper - mean)
    axes.fill_between(time, *inner, color=DATA, lw=0, label="90 % band: scatter of the data")
    axes.plot(time, mean, color=BLUE, lw=1.6, label="mean estimate")
    axes.plot(time[~missed], power[~missed], "o", ms=2.6, color=INK, label="simulated power")
    axes.plot(time[missed], power[missed], "o", ms=5, color=MISS, label="outside the band")
    axes.set(xlabel="seconds", ylabel="battery power, kW", xlim=(0, time[-1]))
    axes.set_title(
        f"{1 - missed.mean():.0%} of the values in this stretch fall inside the 90 % band; "
        f"{shown.scores['coverage']:.1%} over all held-out simulated drives",
        loc="left",
        fontsize=11,
    )
    axes.tick_params(colors=SOFT)
    axes.grid(axis="y", color=RULE, lw=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    figure.legend(loc="outside lower left", ncols=5, frameon=False, fontsize=9, handlelength=1.4, columnspacing=1.4)
    figure.savefig(path, dpi=160, facecolor="white", metadata={"Software": None})


if __name__ == "__main__":
    draw(chapter(VEHICLES[0], lambda now: None), Path(__file__).parents[2] / "docs" / "band.png")
