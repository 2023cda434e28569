"""The prior term as the paper prints it, and divided by the number of samples as its derivation has it.

    python -m benchmarks.measured.literal [--data ../shared/data]

Printed: J = mean nll + sum ||W - A||^2 / (2 sigma^2). Derived: the second term over N. Three members of the paper's
4x32 on a simulated dynamometer run, and with --data on fold 0 of the BMW i3 (speed, acceleration, torque; 1 Hz).
"""

from __future__ import annotations

import argparse
import platform
import sys
from pathlib import Path

import evband
from benchmarks.common.tasks import TASKS, split
from evband.studies.cases import Case, simulated
from evband.studies.results import Results
from evband.studies.runs import KEY, Recipe, run

SCALES = (("literal", 0.01), ("posterior", 0.01), ("literal", 0.1), ("posterior", 0.1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="folder of the measured logs")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/literal.csv"))
    parser.add_argument("--members", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=300, help="of the simulated run; the i3 takes a fifth of them")
    given = parser.parse_args()
    runs = [(simulated("sedan_1"), given.epochs)]
    if given.data:
        train, test = split(TASKS["i3_torque"], given.data, 0)
        runs.append((Case("bmw_i3", train, test, "torque", 1.0), given.epochs // 5))
    header = (
        "python -m benchmarks.measured.literal --data DIR",
        f"evband {evband.__version__}, Python {platform.python_version()}, {platform.machine()}, 2 cores",
    )
    results = Results(given.out, KEY, header)
    for case, epochs in runs:
        for scale, variance in SCALES:
            recipe = Recipe("t-anchor", "paper", given.members, epochs, prior_variance=variance, prior_scale=scale)
            if not results.has(recipe.cell(case)):
                row, _ = run(case, recipe)
                results.add(row)
                print(f"{case.name} {scale} {variance}: R2 {row['r2']:.3f}, {row['fit_s']:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
