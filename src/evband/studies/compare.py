"""Methods x vehicles: the paper's Tables II and III; feature sets x vehicles: its Table I."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

import polars as pl

from evband.channels import FEATURE_SETS, VALUES
from evband.errors import SettingsError
from evband.studies import figures
from evband.studies.cases import Case, file_name
from evband.studies.results import TABLE_1, TABLE_2, TABLE_3, Results, write_table
from evband.studies.runs import KEY, Recipe, run
from evband.training.loop import Progress

SHOWN = 10  # progress messages of a fit
Report = Callable[[int, int, str], None]


def compare(
    cases: Sequence[Case],
    recipes: Sequence[Recipe],
    out: Path,
    trained: Path | None = None,
    report: Report | None = None,
    say: Callable[[str], None] | None = None,
    header: Sequence[str] = (),
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Run what is not yet in `out/runs.csv`; write `table2.csv`, `table3.csv` and the figures."""
    results = _run_all([(c, r) for c, r in product(cases, recipes)], out, trained, report, say, header)
    rows = results.rows()
    accuracy = write_table(rows, TABLE_2, KEY, out / "table2.csv")
    calibration = write_table(rows, TABLE_3, KEY, out / "table3.csv")
    figures.accuracy(accuracy, out / "accuracy.png")
    figures.calibration(calibration, out / "calibration.png")
    return accuracy, calibration


def ablation(
    cases: Sequence[Case],
    sets: Sequence[str],
    recipes: Sequence[Recipe],
    out: Path,
    report: Report | None = None,
    say: Callable[[str], None] | None = None,
    header: Sequence[str] = (),
) -> pl.DataFrame:
    """One recipe on several feature sets (names, or channels joined by +); writes `table1.csv` and its figure."""
    _check_sets(sets, cases)
    cells = [(replace(c, features=s.replace("+", ",")), r) for c, s, r in product(cases, sets, recipes)]
    results = _run_all(cells, out, None, report, say, header)
    rows = [row | {"channels": " ".join(FEATURE_SETS.get(row["features"], ()))} for row in results.rows()]
    features = write_table(rows, TABLE_1, KEY, out / "table1.csv")
    figures.features(features, out / "features.png")
    return features


def _check_sets(sets: Sequence[str], cases: Sequence[Case]) -> None:
    if not sets:
        raise SettingsError(f"--sets names no feature set; choose from {', '.join(FEATURE_SETS)}.")
    for name in (part for s in sets if s not in (*FEATURE_SETS, "auto") for part in s.split("+")):
        if (name := name.strip()) not in VALUES and not any(trip.has(name) for case in cases for trip in case.train):
            known = ", ".join(("auto", *FEATURE_SETS))
            raise SettingsError(f"--sets {name}: it is not a known set or channel; the sets are {known}.")


def _run_all(
    cells: Sequence[tuple[Case, Recipe]],
    out: Path,
    trained: Path | None,
    report: Report | None,
    say: Callable[[str], None] | None,
    header: Sequence[str],
) -> Results:
    out.mkdir(parents=True, exist_ok=True)
    results = Results(out / "runs.csv", KEY, header)
    for number, (case, recipe) in enumerate(cells, 1):
        what = f"{case.name} {recipe.method} {case.features} seed {recipe.seed}"
        if results.has(recipe.cell(case)):
            if say:
                say(f"{what}: kept from an earlier run")
            continue

        def show(now: Progress, number: int = number, what: str = what) -> None:
            if report and (now.epoch == now.epochs or now.epoch % max(1, now.epochs // SHOWN) == 0):
                report(number - 1, len(cells), f"{what}: epoch {now.epoch}/{now.epochs}, {now.seconds_left:.0f} s left")

        row, bands = run(case, recipe, work=out, trained=trained, progress=show, say=say)
        results.add(row)
        if recipe.seed == min(r.seed for _, r in cells):
            name = file_name(f"band-{case.name}-{recipe.method}-{recipe.preset}-{case.features}")
            figures.band(bands, out / f"{name}.png", f"{case.name}, {recipe.method}, {case.features}")
        if report:
            report(number, len(cells), f"{what}: RMSE {row['rmse_kw']:.2f} kW, coverage {row['coverage']:.3f}")
    return results
