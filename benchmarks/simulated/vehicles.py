"""The paper's study on the simulated vehicles: four methods, the default model, thirty members each, and the rivals.

The flat prior's variance is 0.1, the upper end of the range that the paper searched; its own choice of 0.01 learns nothing
from one short run and is kept beside it for the main method (`t-anchor-0.01`).

    python -m benchmarks.simulated.vehicles [--vehicles sedan_1 ...] [--recipes t-anchor ...] [--members 30]

One row for every vehicle and recipe, written as soon as it is there; rows already in the result file are kept, so that
the run can be stopped and continued. `--prepare DIR` and `--trained DIR`: see `evband.studies.remote`.
"""

from __future__ import annotations

import argparse
import platform
import sys
from dataclasses import replace
from pathlib import Path

import evband
from evband import rivals
from evband.simulation import NAMES
from evband.studies.cases import simulated
from evband.studies.remote import prepare_case
from evband.studies.results import Results
from evband.studies.runs import KEY, Recipe, run

PAPER = {"preset": "paper", "epochs": 300}
METHODS = ("t-anchor", "t-dropout", "quantile-anchor", "quantile-dropout")
RECIPES = {
    "default": Recipe("t-anchor"),
    **{name: Recipe(name, prior_variance=0.1, **PAPER) for name in METHODS},  # type: ignore[arg-type]
    "t-anchor-0.01": Recipe("t-anchor", prior_variance=0.01, **PAPER),  # type: ignore[arg-type]
    **{name: Recipe(name) for name in rivals.NAMES},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/simulated.csv"))
    parser.add_argument("--vehicles", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES), choices=list(RECIPES))
    parser.add_argument("--members", type=int, default=30)
    parser.add_argument("--dropout", type=float, help="rate of the dropout methods; tuned if not given")
    parser.add_argument("--prepare", type=Path, help="only write arrays to train elsewhere")
    parser.add_argument("--trained", type=Path, help="take the weights trained elsewhere")
    parser.add_argument("--work", type=Path, default=Path(".bench/simulated"), help="folder of checkpoints")
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    header = (
        "python -m benchmarks.simulated.vehicles",
        f"evband {evband.__version__}, Python {platform.python_version()}, {platform.machine()}, 2 cores; "
        "one drive a vehicle, the last 30 % (60 s apart) tested; warm-up left out",
    )
    results = Results(given.out, KEY, header)
    cases = [simulated(name) for name in given.vehicles]
    for case in cases:
        for name in given.recipes:
            recipe = replace(RECIPES[name], members=given.members, dropout=given.dropout)
            if given.prepare:
                print(prepare_case(case, recipe, given.prepare))
            elif not results.has(recipe.cell(case)):
                row, _ = run(case, recipe, work=given.work, trained=given.trained)
                results.add(row)
                print(
                    f"{case.name} {name}: RMSE {row['rmse_kw']:.2f} kW, coverage {row['coverage']:.3f}, {row['fit_s']:.0f} s",
                    file=sys.stderr, flush=True,
                )  # fmt: skip


if __name__ == "__main__":
    main()
