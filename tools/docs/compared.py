"""Models beside each other on the measured logs: tables and sentences from `measured`."""

from __future__ import annotations

from itertools import product

import numpy as np
import polars as pl

from tools.docs.measured import by_model, difference, over_seeds, summary
from tools.docs.written import PENDING, markdown, number

Gap = tuple[float, float, float]  # a difference and the ends of its interval
TASKS = {
    "i3_torque": "BMW i3, torque",
    "i3_motion": "BMW i3, no torque",
    "tesla_road": "Tesla Model 3, road",
    "tesla_dyno": "Tesla Model 3, dynamometer",
    "e208": "Peugeot e-208, phone app",
}
MODELS = {
    "t-anchor": "evband (t-anchor)",
    "gaussian-anchor": "Gaussian head",
    "t-ensemble": "no anchor",
    "t-anchor trips": "trip bootstrap",
    "t-dropout": "t-dropout",
    "quantile-anchor": "quantile-anchor",
    "quantile-dropout": "quantile-dropout",
    "least-squares": "least squares",
    "least-squares-ours": "least squares, our features",
    "least-squares-hinges": "least squares, our features and hinges",
    "boosting": "boosting",
    "residual-boosting": "least squares + boosting",
    "residual-boosting-ours": "least squares + boosting, our features",
    "ngboost": "NGBoost",
    "catboost": "CatBoost",
    "fastsim": "FASTSim fitted",
}
SCORES = {
    "crps": "CRPS",
    "log_score": "log score",
    "sse": "RMSE",
    "sae": "MAE",
    "interval_score": "interval score",
}
README_MODELS = (
    "least-squares",
    "boosting",
    "residual-boosting",
    "least-squares-hinges",
    "t-dropout",
    "quantile-anchor",
    "t-ensemble",
    "t-anchor",
)


def comparison(trips: pl.DataFrame) -> str:
    """README: CRPS of the strongest models; the best bold, and with it whoever is tied with it."""
    present = [m for m in README_MODELS if m in trips["model"].to_list()]
    if "t-anchor" not in present:
        return PENDING
    rows = []
    for task, title in TASKS.items():
        models = by_model(trips, task, tuple(MODELS))
        if "t-anchor" not in models:
            continue
        crps = {m: summary(part)["crps"] for m, part in models.items() if m in present}
        best = min(crps, key=crps.__getitem__)
        tied = {m for m in crps if m == best or difference(models[m], models[best])[1] <= 0}
        cells = ["-" if m not in crps else f"**{crps[m]:.3f}**" if m in tied else f"{crps[m]:.3f}" for m in present]
        ours = summary(models["t-anchor"])
        rows.append(
            [title, str(ours["trips"]), *cells, f"{ours['coverage']:.3f} ({ours['low']:.2f}-{ours['high']:.2f})"]
        )
    return markdown(["log", "trips", *(MODELS[m] for m in present), "evband's 90 % coverage"], rows)


def every_model(trips: pl.DataFrame) -> str:
    """All models on all measured logs, with the trip-paired difference in CRPS to the default model."""
    rows = []
    for task, title in TASKS.items():
        models = by_model(trips, task, tuple(MODELS))
        for name, part in models.items():
            s = summary(part)
            gaps = ["-", "-"]
            if name != "t-anchor" and "t-anchor" in models:
                gaps[0] = told_apart(difference(part, models["t-anchor"]))
                gaps[1] = told_apart(difference(part, models["t-anchor"], "log_score"))
            numbers = [number(s[k]) for k in ("rmse", "mae")] + [number(s[k], 3) for k in ("crps", "log_score")]
            cover = f"{s['coverage']:.3f} ({s['low']:.2f}-{s['high']:.2f})"
            rows.append([title, MODELS.get(name, name), *numbers, cover, number(s["width"]), *gaps])
    head = ["log", "model", "RMSE", "MAE", "CRPS", "log score", "coverage (95 %)", "width"]
    head += [f"{score} less evband's" for score in ("CRPS", "log score")]
    return markdown(head, rows, left=2) if rows else PENDING


def verdict(gap: Gap) -> str:
    """What a difference to the default, with its interval, says: "" where it is not known."""
    mean, low, high = gap
    if not np.isfinite(gap).all():
        return ""
    return "tied" if low <= 0 <= high else "worse" if mean > 0 else "better"


def told_apart(gap: Gap) -> str:
    mean, low, high = gap
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}] {verdict(gap)}" if verdict(gap) else "-"


def ahead(trips: pl.DataFrame) -> str:
    """Who is ahead of the default, its trip-paired interval off zero, score by score."""
    said = []
    for score in ("crps", "log_score", "sse", "sae"):
        found = []
        for task, title in TASKS.items():
            models = by_model(trips, task, tuple(MODELS))
            for model, part in models.items() if "t-anchor" in models else ():
                if verdict(difference(part, models["t-anchor"], score)) == "better":
                    ratio = (float(part[score].sum()) / float(models["t-anchor"][score].sum())) ** (
                        0.5 if score == "sse" else 1.0
                    )
                    found.append(f"{MODELS[model]} on {title} ({100 * (ratio - 1):+.1f} %)")
        said.append(f"{SCORES[score]}: {', '.join(found) or 'none'}")
    return "; ".join(said)


def runs(folds: pl.DataFrame | None) -> list[tuple[str, str, str, list[Gap]]]:
    """(log, model, score, difference to t-anchor in each run) of methods with a density that were trained with every seed."""
    if folds is None:
        return []
    each = [over_seeds(part) for _, part in folds.sort("seed").group_by("seed", maintain_order=True)]
    rows = []
    for task, title in TASKS.items():
        models = [by_model(trips, task, tuple(MODELS)) for trips in each]
        for name, score in product(models[0], ("crps", "log_score")):
            if name != "t-anchor" and all(name in m and m[name]["log_score"].is_finite().all() for m in models):
                gaps = [difference(m[name], m["t-anchor"], score) for m in models]
                rows.append((title, MODELS[name], SCORES[score], gaps))
    return rows


def seeds(folds: pl.DataFrame | None) -> str:
    rows = [[title, model, score, *map(told_apart, gaps)] for title, model, score, gaps in runs(folds)]
    head = ["log", "model", "score", *(f"run {k}" for k in range(len(rows[0]) - 3 if rows else 0))]
    return markdown(head, rows, left=3) if rows else PENDING


def cells(folds: pl.DataFrame | None) -> str:
    """How often a single run says better or worse."""
    told = [verdict(gap) for *_, gaps in runs(folds) for gap in gaps]
    return f"{told.count('better')} better, {told.count('tied')} tied and {told.count('worse')} worse than t-anchor"


def diversity(folds: pl.DataFrame | None) -> str:
    """The members' spread over that of the same ensemble without anchors."""
    if folds is None:
        return PENDING
    spread = folds.group_by("task", "model").agg((pl.sum("epistemic2") / pl.sum("n")).sqrt().alias("eu"))
    ours, plain = (spread.filter(pl.col("model") == m).sort("task")["eu"] for m in ("t-anchor", "t-ensemble"))
    ratio = (ours / plain).to_numpy()
    return f"the epistemic part is {ratio.min():.2f} to {ratio.max():.2f} times as large"


def claim_measured(trips: pl.DataFrame, other: str, score: str = "crps") -> str:
    """On how many measured logs the default model is ahead of another, tied with it, behind it."""
    said, more = [], []
    for task in TASKS:
        models = by_model(trips, task, tuple(MODELS))
        if "t-anchor" in models and other in models:
            said.append(verdict(difference(models[other], models["t-anchor"], score)))
            more.append(100 * (float(models[other][score].sum()) / float(models["t-anchor"][score].sum()) - 1))
    if not any(said):
        return PENDING
    counts = [
        f"{words} on {said.count(word)}" for words, word in (("ahead", "worse"), ("tied", "tied"), ("behind", "better"))
    ]
    return f"on measured logs t-anchor is {', '.join(counts)} ({SCORES[score]} {min(more):+.1f} to {max(more):+.1f} % over ours)"
