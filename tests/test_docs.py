"""README and docs say what the result files say, link to what exists, and show code that runs."""

import re
import tomllib
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from evband.cli import command_line
from tiny_car import drives
from tools.docs import measured, tables
from tools.docs.goals import by_name, goal

ROOT = Path(__file__).resolve().parent.parent
HOME = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Homepage"]
RAW = HOME.replace("://github.com", "://raw.githubusercontent.com")


def test_tables_are_those_of_the_result_files():
    made = tables.tables()
    for page in tables.pages():
        text = page.read_text()
        assert tables.filled(text, made) == text, f"{page.name} differs from benchmarks/results: run make docs"


def test_every_mark_has_a_table():
    names = {m.group(3) for page in tables.pages() for m in tables.MARK.finditer(page.read_text())}
    assert names <= set(tables.tables())
    assert {"comparison", "every_model", "table1", "table2", "table3", "literal", "priors"} <= names


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/notes/reproduction.md", "docs/tutorial.md"])
def test_links_lead_somewhere(page):
    path = ROOT / page
    text = path.read_text()
    for target in (*re.findall(r"\]\(([^)#\s]+)", text), *re.findall(r"^\[\w+\]: ([^#\s]+)", text, re.MULTILINE)):
        here = re.sub(rf"^{HOME}/(?:blob|tree)/main/|^{RAW}/main/", "", target)
        start = ROOT if here != target else path.parent
        assert here.startswith("https://") or (start / here).exists(), f"{page} links to {target}"


def test_readme_links_are_absolute_and_all_defined():
    """The package page has no files beside it, and shows a link without a definition as text."""
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r"^\[\w+\]: (\S+)", text, re.MULTILINE)
    assert [link for link in links if not link.startswith((HOME, RAW))] == []
    defined = set(re.findall(r"^\[(\w+)\]:", text, re.MULTILINE))
    body = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.DOTALL)
    used = set(re.findall(r"\]\[(\w+)\]", body)) | set(re.findall(r"(?<!\])\[(\w+)\](?![\[(:])", body))
    assert used == defined


def test_commands_of_the_readme_exist():
    known = {c.name or c.callback.__name__ for c in command_line().registered_commands} | {
        g.name for g in command_line().registered_groups
    }
    named = set(re.findall(r"^evband (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert len(named) >= 6
    assert named <= known


def test_readme_example_runs(tmp_path, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "logs").mkdir()
    for trip in drives(4, seconds=120):
        trip.table.drop("segment").write_csv(tmp_path / "logs" / f"{trip.trip_id.replace(' ', '_')}.csv")
    monkeypatch.chdir(tmp_path)
    assert "members=30" in code
    quick = code.replace("members=30", "members=2, epochs=1, hidden=8, window=32, burn_in=8, device='cpu'")
    space = {}
    exec(quick, space)
    assert "coverage" in capsys.readouterr().out
    assert np.isfinite(space["band"].mean_kw)


def sums(model, crps, trips=12, n=100, rows=None):
    """Per-trip sums of a made-up model whose CRPS differs a little from trip to trip."""
    wiggle = np.random.default_rng(0).normal(0, 0.01, trips)
    return pl.DataFrame(
        {
            "task": "i3_torque", ("rival" if rows else "model"): model, "fold": 0, "seed": 0,
            "trip_id": [f"t{i}" for i in range(trips)], "n": n,
            ("squared_error" if rows else "sse"): [4.0 * n] * trips, ("absolute_error" if rows else "sae"): [1.5 * n] * trips,
            "crps": n * (crps + wiggle), "log_score": [1.2 * n] * trips, "covered": [0.9 * n] * trips, "width": [5.0 * n] * trips,
        } | ({"rows": rows} if rows else {})
    )  # fmt: skip


def test_comparison_marks_the_best_and_what_ties_with_it():
    noisy = sums("t-dropout", 1.0).with_columns(crps=pl.Series(100 * (1.001 + np.tile([0.05, -0.05], 6))))
    folds = pl.concat([sums("t-anchor", 1.0), noisy])
    rivals = pl.concat([sums("residual-boosting", 1.2, rows="after_warmup"), sums("ngboost", 0.5, n=90, rows="all")])
    trips = tables.measured(folds, rivals)
    assert set(trips["model"]) == {"t-anchor", "t-dropout", "residual-boosting"}  # ngboost was scored on other rows
    (line,) = [row for row in tables.comparison(trips).splitlines() if "BMW" in row]
    assert "**1.00" in line
    assert line.count("**") == 4
    assert " 1.2" in line
    assert "0.900 (0.90-0.90)" in line
    full = tables.every_model(trips)
    assert "worse" in full
    assert "tied" in full
    assert "| 2.00 | 1.50 |" in full


def test_difference_is_the_trip_paired_one():
    from evband.scores import mean_interval

    rng = np.random.default_rng(1)
    a, b = sums("a", 1.0), sums("b", 1.0).with_columns(crps=pl.Series(rng.normal(105, 5, 12)))
    mean, low, high = measured.difference(a, b)
    gap = (a["crps"] - b["crps"]).to_numpy() / 100
    expected = mean_interval(np.repeat(gap, 100), np.repeat(np.arange(12), 100))
    assert mean == pytest.approx(gap.mean())
    assert (low, high) == pytest.approx(expected)


def test_runs_with_other_seeds_are_averaged_trip_by_trip_and_shown_one_by_one():
    runs = [sums("t-anchor", 1.0), sums("t-ensemble", 1.1), *(
        sums(model, crps).with_columns(seed=pl.lit(1)) for model, crps in (("t-anchor", 1.2), ("t-ensemble", 1.1))
    )]  # fmt: skip
    folds = pl.concat(runs, how="vertical_relaxed")
    trips = tables.measured(folds, None)
    ours, other = (trips.filter(pl.col("model") == m) for m in ("t-anchor", "t-ensemble"))
    assert len(ours) == 12
    assert measured.difference(other, ours)[0] == pytest.approx(0.0, abs=1e-12)
    assert tables.cells(folds) == "1 better, 2 tied and 1 worse than t-anchor"
    assert tables.ahead(trips) == "CRPS: none; log score: none; RMSE: none; MAE: none"
    (line,) = [row for row in tables.seeds(folds).splitlines() if "CRPS" in row]
    assert "+0.100" in line
    assert "-0.100" in line


def test_without_results_the_tables_say_so():
    assert tables.comparison(tables.measured(None, None)) == tables.PENDING
    assert tables.literal(None) == tables.PENDING


def fits(method, factor=1.0, prior="flat 0.1"):
    """Made-up fits of the paper's recipe on two vehicles."""
    scores = {"rmse_kw": 3.0, "r2": 0.92, "crps_kw": 1.5, "width_at_90_kw": 8.0}
    bounds = {"coverage": 0.89, "ci_low": 0.87, "ci_high": 0.91, "honest_low": 0.79, "honest_high": 0.99}
    return [
        {"vehicle": v, "method": method, "preset": "paper", "prior": prior, "members": 30, "epochs": 300}
        | {k: factor * x for k, x in scores.items()}
        | bounds
        for v in ("sedan_1", "highway")
    ]


def test_claims_are_told_from_the_fits():
    sims = pl.DataFrame([*fits("t-anchor"), *fits("t-dropout", 1.25), *fits("quantile-anchor", 0.5)])
    assert tables.claim_accuracy(sims) == "RMSE 3.00 ± 0.00 kW, R2 0.92 ± 0.00 over 2 simulated vehicles"
    assert "holds 0.90 in 2 of 2 vehicles; the honest interval is 5.0 times" in tables.claim_coverage(sims)
    assert "lower in 2 of 2 simulated vehicles, 0.80 times" in tables.claim_against(
        sims, "t-dropout", "crps_kw", "CRPS"
    )
    assert "lower in 0 of 2" in tables.claim_against(sims, "quantile-anchor", "width_at_90_kw", "width")
    assert tables.claim_prior(sims, "flat 0.01") == tables.PENDING
    assert tables.claim_prior(sims, "flat 0.1") == "R2 0.92 to 0.92"
    trips = tables.measured(pl.concat([sums("t-anchor", 1.0), sums("t-dropout", 1.1)]), None)
    assert "ahead on 1, tied on 0, behind on 0" in tables.claim_measured(trips, "t-dropout")
    assert tables.claim_measured(trips, "ngboost") == tables.PENDING


def test_an_unfinished_file_leaves_dashes():
    sims = pl.DataFrame(fits("t-anchor")[:1])
    line = next(row for row in tables.priors(sims).splitlines() if "Sedan 1" in row)
    assert line == "| Sedan 1 | - | 0.92 / 3.00 / 1.50 / 0.89 | - |"


def test_quantile_methods_are_scored_on_equal_terms():
    folds = pl.concat(
        [sums("t-anchor", 1.0), sums("quantile-anchor", 1.04).with_columns(log_score=pl.lit(None, pl.Float64))]
    )
    folds = pl.concat([folds, sums("t-anchor", 3.0).with_columns(seed=pl.lit(1))], how="vertical_relaxed")
    nineteen = sums("t-anchor", 1.0).select("task", "trip_id", "n", crps19=pl.col("crps") * 1.04)  # of seed 0
    plain, fair = tables.measured(folds, None), tables.measured(folds, None, nineteen)
    crps = [measured.summary(part.filter(pl.col("model") == "quantile-anchor"))["crps"] for part in (plain, fair)]
    assert crps[1] == pytest.approx(crps[0] / 1.04)
    ours = [measured.summary(part.filter(pl.col("model") == "t-anchor"))["crps"] for part in (plain, fair)]
    assert ours[0] == ours[1]


def test_who_is_ahead_is_said():
    better = sums("t-dropout", 0.9).with_columns(sse=pl.Series([3.24 * 100] * 12))
    trips = tables.measured(pl.concat([sums("t-anchor", 1.0), better]), None)
    assert tables.ahead(trips).startswith(
        "CRPS: t-dropout on BMW i3, torque (-10.0 %); log score: none; RMSE: t-dropout"
    )
    assert "(-10.0 %); MAE: none" in tables.ahead(trips)


def test_each_step_of_the_search_is_told_against_the_best_before_it():
    tried = [
        (0.5, 0.5, 0.1, 1.0),
        (0.0, 0.5, 0.1, 0.9),
        (1.0, 0.5, 0.1, 1.1),
        (0.0, 0.8, 0.1, 0.99),
        (0.0, 0.5, 1.0, 0.45),
    ]
    rows = [("i3_torque", 0, *row) for row in tried]
    frame = pl.DataFrame(rows, schema=["task", "fold", "beta", "trip_effect", "temperature", "score"], orient="row")
    head, body = tables.tuning(frame, {"i3_torque": "i3"})
    cells = [cell.split()[0] for cell in body[0][1:]]
    assert head[1:] == ["beta 0", "beta 1", "trip effect 0.8", "temperature 1"]
    assert cells == ["-10.0", "+10.0", "+10.0", "-50.0"]


def test_contributing_names_files_that_exist():
    named = re.findall(r"`((?:src|benchmarks|tools|tests|docs)/[\w./]*)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_a_goal_is_met_missed_or_not_measured():
    rows = pl.DataFrame({"method": ["sheet"], "minutes": [0], "ratio": [1.3], "worst": [2.7]})
    assert goal(lambda name: rows, "cold_start", by_name) == ("1.30 x, worst car 2.70 x", "**no**")
    assert goal(lambda name: rows.with_columns(worst=2.5), "cold_start", by_name)[1] == "yes"
    assert goal(lambda name: rows.drop("worst"), "cold_start", by_name) == ("not measured yet", "-")
    assert goal(lambda name: None, "cold_start", by_name) == ("not measured yet", "-")


def test_lines_of_text_are_short():
    """Under 120 characters, where a line can be broken: not in code, tables, pictures and what is filled in."""
    long = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks" / "README.md"):
        code = False
        for number, line in enumerate(page.read_text().splitlines(), 1):
            code ^= line.lstrip().startswith("```")
            if len(line) >= 120 and not code and "<!--" not in line and not line.lstrip().startswith(("|", "!", "#")):
                long.append(f"{page.relative_to(ROOT)}:{number}")
    assert long == []
