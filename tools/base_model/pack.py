"""Put what training found into the file that ships with evband.

    python -m tools.base_model.pack .carry/base/network.npz -o src/evband/adaptation/base.safetensors

Needs NumPy only. `SCALE_SHIFT`, `SCALE_SD`, `STANDING`, `CABIN_BETWEEN`, `WIDER` and `ERRORS` are the constants that measured logs had a say in: simulated
logs are less noisy, and less different from each other, than those of real loggers (docs/explanation/cold-start.md).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from evband.adaptation.base import Base
from evband.features.wheel import CABIN, INPUTS, ROADS
from evband.settings import Settings

SCALE_SHIFT, SCALE_SD = 0.2, 0.4  # five makes: 0.20 with deviation 0.14, and the next one is from outside
# Stretch of bands at a standstill until the car's own trips tell it: 0.35 to 0.7 would suit nine measured cars, simulated ones,
# whose pumps, lamps and cabins differ more, about 1.
STANDING = 0.7
# Deviation between vehicles of what a cabin draws, over what four trips each seem to show, whose own use of it is in that.
CABIN_BETWEEN = 0.7
# Variance that a car's weights may take as it learns, over that between simulated cars: nine measured cars learn sooner. What
# a cabin draws is let no looser: a first trip's heater is less the car's than the trip's.
WIDER = 2.0
TRIP_EFFECT = (0.7, 0.15, 1.0)  # W/kg of offset, share of drag, share of rolling resistance
ERRORS = {
    "bias": 0.0, "tau2": 0.35, "slow": 0.6, "slow_s": 60.0, "fast": 4.0, "share": 0.5, "noise": 6.0, "most": 60.0,
    "trips": 20.0, "lasting": 0.8,
}  # fmt: skip
LEAST_SPREAD = 1e-6
CARS, FARTHEST = 60, 4.0  # of the population that the base remembers; deviations that one may be off


def pack(path: Path) -> Base:
    with np.load(path, allow_pickle=False) as file:
        found = {name: file[name] for name in file.files}
    members, _, hidden = found["head_w"].shape
    roads = len(ROADS)
    weights = {name: found[name].copy() for name in found if name in _shapes(hidden)}
    weights["road_w"] += found["mean"][:, :roads]
    weights["head_w"][:, 0] += found["mean"][:, roads:]
    theta = np.concatenate([weights[name].reshape(members, -1) for name in _shapes(hidden)], 1)
    noisy = found["own_scale"].mean(0)  # [cars]
    order = np.argsort(noisy)[np.linspace(0, len(noisy) - 1, CARS).round().astype(int)]
    cabin = np.array([name in CABIN for name in ROADS] + [False] * hidden)
    wider, share = np.where(cabin, 1.0, WIDER**0.5), np.where(cabin, CABIN_BETWEEN, 1.0)
    spread = np.outer(wider * share, wider * share) * found["spread"] + LEAST_SPREAD * np.eye(roads + hidden)
    root = np.linalg.cholesky(found["spread"].astype(float))[:, None]
    drawn = np.linalg.solve(root, (root @ found["cars"][:, order, :, None]) / wider[:, None])[..., 0]
    levels = np.broadcast_to(((noisy - noisy.mean()) / noisy.std())[order, None], (members, CARS, 1))
    cars = np.clip(np.concatenate([drawn, levels], 2), -FARTHEST, FARTHEST)
    return Base(
        hidden=hidden, theta=theta.astype(np.float32), spread=spread.astype(np.float32), cars=cars.astype(np.float32),
        x_shift=found["x_shift"], x_scale=found["x_scale"], r_scale=found["r_scale"], unit=float(found["unit"]),
        scale_shift=SCALE_SHIFT, scale_sd=SCALE_SD, trip_effect=TRIP_EFFECT, errors=ERRORS,
        about=f"{len(noisy)} simulated vehicles, no measured log", standing=STANDING,
    )  # fmt: skip


def _shapes(hidden: int) -> dict[str, tuple[int, ...]]:
    return Settings(hidden=hidden).architecture(len(INPUTS), len(ROADS)).shapes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trained", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    args = parser.parse_args()
    pack(args.trained).save(args.output)
    print(f"{args.output}: {args.output.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
