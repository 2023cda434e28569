"""The paper's feature sets S1-S5 on a simulated dynamometer run: three members of its 4x32, 300 epochs.

python -m benchmarks.simulated.ablation [--vehicles sedan_1]
"""

from __future__ import annotations

import argparse
import platform
import sys
from dataclasses import replace
from pathlib import Path

import evband
from evband.studies.cases import simulated
from evband.studies.results import Results
from evband.studies.runs import KEY, Recipe, run

SETS = ("S1", "S2", "S3", "S4", "S5", "motion")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--vehicles", nargs="+", default=["sedan_1"])
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/ablation.csv"))
    given = parser.parse_args()
    header = (
        "python -m benchmarks.simulated.ablation",
        f"evband {evband.__version__}, Python {platform.python_version()}, {platform.machine()}, 2 cores",
    )
    results = Results(given.out, KEY, header)
    recipe = Recipe("t-anchor", "paper", members=3, epochs=300, prior_variance=0.1)
    for name in given.vehicles:
        for features in SETS:
            case = replace(simulated(name), features=features)
            if not results.has(recipe.cell(case)):
                row, _ = run(case, recipe)
                results.add(row)
                print(f"{name} {features}: RMSE {row['rmse_kw']:.2f} kW, {row['fit_s']:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
