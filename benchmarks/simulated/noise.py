"""Aleatoric estimates against the truth: simulated dynamometer runs whose noise scale and nu are known.

    python -m benchmarks.simulated.noise      # -> benchmarks/results/simulated_noise.csv

The default preset, uncalibrated (a stretch would mix the epistemic part in), is fitted on some runs and asked on others: rank
correlation of the aleatoric deviation with the true one, median of their ratio, and the members' nu beside the true one.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy.stats import spearmanr

import evband
from benchmarks.common.results_file import write
from evband.card import degrees_of_freedom


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vehicles", nargs="+", default=["sedan_1", "sedan_2", "truck", "hatchback"])
    parser.add_argument("--members", type=int, default=10)
    parser.add_argument("--runs", type=int, default=24)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/simulated_noise.csv"))
    given = parser.parse_args()
    rows = []
    for name in given.vehicles:
        trips = evband.simulate(name, hz=1, seed=0, trips=given.runs)
        train, test = trips.split(test=0.25, seed=0)
        began = time.perf_counter()
        model = evband.PowerModel(members=given.members, calibrate=False).fit(train)
        seconds = time.perf_counter() - began
        bands = model.predict(test)
        table = pl.concat([trip.table for trip in test.on_grid(1.0)], how="diagonal")
        nu, scale = table["true_nu"].to_numpy(), table["true_scale_kw"].to_numpy()
        truth = scale * np.sqrt(nu / (nu - 2))
        use = ~bands.warmup & np.isfinite(truth)
        learned = degrees_of_freedom(model)
        assert learned is not None
        rows.append(
            {
                "vehicle": name,
                "runs": len(train),
                "test_rows": int(use.sum()),
                "rank_correlation": float(spearmanr(bands.aleatoric[use], truth[use]).statistic),
                "ratio": float(np.median(bands.aleatoric[use] / truth[use])),
                "nu": float(learned.mean()),
                "true_nu": float(nu[0]),
                "seconds": seconds,
            }
        )
        print(rows[-1], flush=True)
    write(
        given.out,
        [{k: f"{v:.4f}" if isinstance(v, float) else v for k, v in row.items()} for row in rows],
        "simulated, 1 Hz, seed 0",
    )


if __name__ == "__main__":
    main()
