"""A study's figures (Matplotlib): accuracy and calibration by method and vehicle, features, one band, a search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from evband.calibration.value import LEVEL
from evband.studies.runs import KEY

if TYPE_CHECKING:
    from evband.bands import Bands

COLOURS = ("#2364aa", "#e07a1f", "#3a9d5d", "#a23b72", "#7a6c5d", "#c9a227", "#4f5d75", "#d1495b")
SHOWN_S = 300.0


def accuracy(table: pl.DataFrame, path: Path) -> None:
    """RMSE, and the two parts of uncertainty, by vehicle and method."""
    panels = {"rmse_kw": "RMSE in kW", "au_kw": "aleatoric, kW", "eu_kw": "epistemic, kW"}
    figure = Figure(figsize=(11, 3.6), layout="constrained")
    for axis, (column, label) in zip(np.atleast_1d(figure.subplots(1, 3)), panels.items(), strict=True):
        _bars(axis, table, column, "method")
        axis.set_ylabel(label)
    _legend(figure)
    _save(figure, path)


def calibration(table: pl.DataFrame, path: Path) -> None:
    """Coverage with both intervals (thick: independent samples, thin: honest), and width at equal coverage."""
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, part, at, _, colour in _groups(left, table, "method"):
        left.vlines(at, _array(part, "honest_low"), _array(part, "honest_high"), color=colour, lw=1)
        left.vlines(at, _array(part, "ci_low"), _array(part, "ci_high"), color=colour, lw=4, alpha=0.5)
        left.plot(at, _array(part, "coverage"), "o", ms=5, color=colour, label=name)
    left.axhline(LEVEL, color="#888888", lw=1, ls="--")
    left.set_ylabel("coverage of the 90 % band")
    _bars(right, table, "width_at_90_kw", "method")
    right.set_ylabel("width at 90 % coverage, kW")
    _legend(figure, left)
    _save(figure, path)


def features(table: pl.DataFrame, path: Path) -> None:
    """RMSE and MAE of each feature set."""
    figure = Figure(figsize=(8, 3.4), layout="constrained")
    for axis, (column, label) in zip(figure.subplots(1, 2), {"rmse_kw": "RMSE in kW", "mae_kw": "MAE in kW"}.items(), strict=True):  # fmt: skip
        _bars(axis, table, column, "features")
        axis.set_ylabel(label)
    _legend(figure)
    _save(figure, path)


def band(bands: Bands, path: Path, title: str) -> None:
    """The first minutes of the first trip: measured power in its band."""
    rows = np.flatnonzero((bands.trip_id == bands.trip_id[0]) & (bands.time_s < bands.time_s[0] + SHOWN_S))
    part = bands.rows(rows)
    lower, upper = part.interval(LEVEL)
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    axis = figure.subplots()
    axis.fill_between(part.time_s, lower, upper, color=COLOURS[0], alpha=0.25, lw=0, label=f"{LEVEL:.0%} band")
    axis.plot(part.time_s, part.mean, color=COLOURS[0], lw=1.2, label="estimate")
    if part.power_kw is not None:
        axis.plot(part.time_s, part.power_kw, color="#222222", lw=0.7, label="measured")
    axis.set(xlabel="time in s", ylabel="power in kW", title=title)
    axis.legend(loc="upper right", frameon=False, ncols=3)
    _save(figure, path)


def search(trials: pl.DataFrame, parameters: Sequence[str], path: Path) -> None:
    """Held-out log score of every finished trial over time, and against each parameter."""
    figure = Figure(figsize=(11, 5.4), layout="constrained")
    axes = figure.subplots(2, 4).ravel()
    done = trials.filter(pl.col("log_score").is_finite())
    score = _array(done, "log_score")
    axes[0].plot(_array(done, "trial"), score, ".", color="#999999")
    if len(score):
        axes[0].step(_array(done, "trial"), np.minimum.accumulate(score), where="post", color=COLOURS[0])
    axes[0].set(xlabel="trial", ylabel="held-out log score")
    for axis, name in zip(axes[1:], parameters, strict=False):
        finished = (done["state"] == "complete").to_numpy()
        values = done[name].cast(pl.String).to_numpy() if done[name].dtype == pl.String else _array(done, name)
        axis.plot(values[~finished], score[~finished], ".", color="#bbbbbb")
        axis.plot(values[finished], score[finished], ".", color=COLOURS[0])
        axis.set(xlabel=name)
        if name == "rate":
            axis.set(xscale="log", xlim=(8e-6, 1.2e-2))
        elif name in ("layers", "hidden", "epochs"):
            axis.set_xticks(np.unique(values))
    for axis in axes[1 + len(parameters) :]:
        axis.set_axis_off()
    _save(figure, path)


def _bars(axis: Any, table: pl.DataFrame, column: str, by: str) -> None:
    for name, part, at, width, colour in _groups(axis, table, by):
        axis.bar(at, _array(part, column), width, color=colour, label=name)


def _groups(axis: Any, table: pl.DataFrame, by: str) -> Iterator[tuple[str, pl.DataFrame, Any, float, str]]:
    """Lines of each method (or feature set) and the settings in the table: named by what differs, where each stands on an
    axis of vehicles, how wide it may be there, and its colour."""
    varied = [c for c in KEY if c in table.columns and c not in (by, "vehicle") and table[c].n_unique() > 1]
    places = {vehicle: n for n, vehicle in enumerate(table["vehicle"].unique(maintain_order=True))}
    axis.set_xticks(list(places.values()), list(places), rotation=20)
    groups = list(table.group_by([by, *varied], maintain_order=True))
    for n, (values, part) in enumerate(groups):
        more = ", ".join(_setting(c, v) for c, v in zip(varied, values[1:], strict=True))
        shift = (n - (len(groups) - 1) / 2) * 0.8 / len(groups)
        at = np.array([places[vehicle] for vehicle in part["vehicle"]]) + shift
        name = f"{values[0]} ({more})" if more else str(values[0])
        yield name, part, at, 0.8 / len(groups), COLOURS[n % len(COLOURS)]


def _setting(column: str, value: Any) -> str:
    return str(value) if column in ("preset", "prior", "features") else f"{column} {value}"


def _array(part: pl.DataFrame, column: str) -> Any:
    return part[column].cast(pl.Float64).fill_null(np.nan).to_numpy()


def _legend(figure: Figure, axis: Any = None) -> None:
    handles, labels = (axis or figure.axes[0]).get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(4, max(1, len(labels))), frameon=False)


def _save(figure: Figure, path: Path) -> None:
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=120)
