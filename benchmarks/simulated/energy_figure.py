"""The figure of docs/explanation/energy.md: coverage of 90 % energy bands over stretch length, on made-up errors whose truth is known.

    python -m benchmarks.simulated.energy_figure --out docs/energy_coverage.png

Every drive has a trip effect of 0.5 kW, a slow error of 0.8 kW that lasts 80 s, and fast noise; each band rests on 30 other drives.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from scipy.signal import lfilter

from evband.energy import Drive, fit_errors, stretch_energy

LENGTHS_S = (30, 60, 120, 300, 600, 1200, 1800)


def made_up(rng: np.random.Generator, seconds: int = 1800) -> Drive:
    rho = np.exp(-1 / 80)
    slow = 0.8 * lfilter([np.sqrt(1 - rho**2)], [1, -rho], rng.normal(size=seconds + 800))[800:]
    error = 0.5 * rng.normal() + slow + 3.0 * rng.normal(size=seconds)
    flat = np.full(seconds, 10.0)
    return Drive("made up", 1.0, flat, flat[None], flat, flat < 0, 6 * flat, flat + error)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=Path("docs/energy_coverage.png"))
    given = parser.parse_args()
    rng = np.random.default_rng(0)
    inside: dict[str, list[list[bool]]] = {"evband": [], "independent seconds": [], "no trip effect": []}
    for _ in range(40):
        train, test = [made_up(rng) for _ in range(30)], [made_up(rng) for _ in range(10)]
        errors = fit_errors(train)
        row = float(np.std(np.concatenate([d.power_kw - d.mean for d in train])))
        for drive in test:
            bands = [stretch_energy(drive, slice(0, length), errors) for length in LENGTHS_S]
            miss = [abs(b.energy_kwh - b.mean_kwh) for b in bands if b.energy_kwh is not None]
            hours = [length / 3600 for length in LENGTHS_S]
            inside["evband"].append([m <= b.interval(0.9)[1] - b.mean_kwh for m, b in zip(miss, bands, strict=True)])
            alone = [1.645 * row * np.sqrt(n) / 3600 for n in LENGTHS_S]
            inside["independent seconds"].append([m <= w for m, w in zip(miss, alone, strict=True)])
            within = [1.645 * np.sqrt(errors.of_mean(n) - errors.trip_effect) * h for n, h in zip(LENGTHS_S, hours, strict=True)]  # fmt: skip
            inside["no trip effect"].append([bool(m <= w) for m, w in zip(miss, within, strict=True)])
    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.add_subplot()
    for name, rows in inside.items():
        axes.plot(LENGTHS_S, np.mean(rows, axis=0), marker="o", label=name)
    axes.axhline(0.9, color="#444", lw=1, ls="--")
    axes.set(xscale="log", xlabel="stretch, s", ylabel="covered by the 90 % band", ylim=(0, 1))
    axes.set_xticks(LENGTHS_S, [str(s) for s in LENGTHS_S])
    axes.legend(frameon=False)
    figure.savefig(given.out, dpi=120)


if __name__ == "__main__":
    main()
