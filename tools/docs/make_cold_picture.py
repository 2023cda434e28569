"""Draw docs/cold_start.png: how nine cars that nobody had measured are learned, from benchmarks/results/cold_start_cars.csv.

python -m tools.docs.make_cold_picture
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import polars as pl

from tools.docs.make_band_picture import BLUE, INK, MISS, RULE, SOFT
from tools.docs.trips import LOGS

RESULTS, PICTURE = Path("benchmarks/results/cold_start_cars.csv"), Path("docs/cold_start.png")
LINES = {  # method -> (colour, label)
    "sheet": (BLUE, "evband"), "linear": ("#b7791f", "linear, same prior"), "alone": (MISS, "fit on the minutes alone"),
    "squares": (SOFT, "least squares on the minutes alone"),
}  # fmt: skip
PLACES = {0: 0, 5: 1, 15: 2, 60: 3}  # minutes -> where they are drawn
MOST = 3.0


def draw(frame: pl.DataFrame, path: Path) -> None:
    plt.rcParams.update({"font.size": 9, "axes.edgecolor": SOFT, "text.color": INK, "axes.labelcolor": SOFT})
    figure, panels = plt.subplots(3, 3, figsize=(9.6, 8.0), layout="constrained", sharex=True, sharey=True)
    for axes, car in zip(panels.flat, frame["car"].unique(maintain_order=True), strict=True):
        for method, (colour, label) in LINES.items():
            own = frame.filter((pl.col("car") == car) & (pl.col("method") == method)).sort("minutes")
            at = [PLACES[m] for m in own["minutes"]]
            low, high = (own[end].clip(upper_bound=2 * MOST) for end in ("ratio_low", "ratio_high"))
            axes.fill_between(at, low, high, color=colour, alpha=0.18, lw=0)
            axes.plot(at, own["ratio"].clip(upper_bound=2 * MOST), color=colour, lw=1.6, marker="o", ms=3, label=label)
        axes.axhline(1.0, color=INK, lw=0.8, ls=":", label="own fit on 70 % of all drives")
        axes.set_title(LOGS.get({"i3": "i3_motion"}.get(car, car), car), loc="left", fontsize=9.5)
        axes.set(ylim=(0.8, MOST), xticks=list(PLACES.values()), xticklabels=[f"{m}" for m in PLACES])
        axes.tick_params(colors=SOFT)
        axes.grid(axis="y", color=RULE, lw=0.8)
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.supxlabel("minutes of the car's own driving", fontsize=9)
    figure.supylabel("CRPS over that of the own fit; shaded: three orders of drives", fontsize=9)
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, frameon=False, fontsize=8.5)
    figure.savefig(path, dpi=110, facecolor="white", metadata={"Software": None})


def main() -> None:
    draw(pl.read_csv(RESULTS, comment_prefix="#"), PICTURE)
    print(PICTURE)


if __name__ == "__main__":
    main()
