"""All parts of a fleet at once, as arrays on one base: for whoever runs thousands of cars with one engine.

The recurrent weights of all cars are the base's, and so are the head's rows for the scale but for one level. So one
pass of the base's network over the inputs of all cars (each car's by its own `Fleet.feature_map`) gives every hidden
state h, and member m of car c has, in units of ``feature_map.y_std`` kW,

    location  weights[c, m] . (r, h) + head_b[m, 0]        scale  softplus(h . head_w[m, 1] + level[c, m]) + SCALE_FLOOR

with the base's head_w and head_b (`Base.views`); r are the road-load terms by the same feature map.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evband.adaptation.base import Base
from evband.adaptation.groups import kinds_of
from evband.adaptation.location import location
from evband.adaptation.part import find_base, part_meta, part_tensors
from evband.adaptation.starting import sheet_map
from evband.calibration.value import Calibration
from evband.errors import ArtifactError, EvbandError
from evband.features.wheel import SheetMap

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Fleet:
    """Cars in the order of their files."""

    base: Base
    files: tuple[Path, ...]  # [cars]
    weights: Floats  # [cars, members, Q] of (road_w, head_w of the location)
    level: Floats  # [cars, members] bias of the log scale
    wheels: NDArray[np.float64]  # [cars, 3] mass in kg, CdA in m2, c_rr
    stretch: NDArray[np.float64]  # [cars, factors] of bands (`Calibration.factors`)
    kwh_100km: NDArray[np.float64]  # [cars] on the drive that all cars are compared on; NaN where it is not known
    bad: tuple[tuple[Path, str], ...]  # parts that could not be read, and why
    scales: NDArray[np.float64] | None = None  # [cars, 2] mean and deviation of the log scale's offset
    kinds: tuple[tuple[str, ...], ...] = ()  # [cars], groups that each belongs to

    def __len__(self) -> int:
        return len(self.files)

    def feature_map(self, car: int) -> SheetMap:
        """From signals of this car to x and r."""
        mass, cda, crr = map(float, self.wheels[car])
        return sheet_map(self.base, (mass, cda, crr), 1.0)


def read_parts(files: Iterable[Path], base: Base | None = None) -> Fleet:
    """The parts of many cars on one base, 0.2 ms each; one that is damaged, or rests on another base, is named in `bad`."""
    from evband.vehicles import Sheet

    good: list[tuple[Path, Floats, Floats, tuple[str, ...], tuple[float, ...]]] = []  # weights, level, kinds, numbers
    bad: list[tuple[Path, str]] = []
    ground = base
    for file in files:
        try:
            data = file.read_bytes()
            meta, tensors = part_meta(data), part_tensors(data)
            ground = ground or find_base(file, str(meta["base"]))
            if meta["base"] != ground.digest:
                raise ArtifactError("it rests on another base than the others.")
            sheet = Sheet.from_dict(meta["sheet"])
            numbers = (sheet.mass_kg, sheet.cda_m2, sheet.crr, *_rest(meta), *_scale(meta["scale"]))
            good.append((file, *_checked(tensors, ground), kinds_of(sheet), numbers))
        except (EvbandError, OSError, LookupError, TypeError, ValueError) as problem:
            bad.append((file, str(problem)))
    if ground is None:
        why = f"; the first, {bad[0][0]}: {bad[0][1]}" if bad else "; run evband fleet fit first."
        raise ArtifactError(f"none of {len(bad)} parts of cars can be read{why}")
    views = ground.views
    weights = np.broadcast_to(location(views).astype(np.float32), (len(good), *ground.spread.shape[:2])).copy()
    level = np.broadcast_to(views["head_b"][:, 1], (len(good), ground.members)).copy()
    for k, (_, difference, own, *_) in enumerate(good):
        weights[k] += difference
        level[k] += own
    table = np.array([each for *_, each in good]).reshape(-1, 6 + len(Calibration().factors))
    wheels, stretch, kwh, scales = table[:, :3], table[:, 3:-3], table[:, -3], table[:, -2:]
    paths, kinds = tuple(file for file, *_ in good), tuple(each for *_, each, _ in good)
    return Fleet(ground, paths, weights, level, wheels, stretch, kwh, tuple(bad), scales, kinds)


def _checked(tensors: dict[str, NDArray], ground: Base) -> tuple[Floats, Floats]:
    weights, level = (tensors[name].astype(np.float32) for name in ("weights", "level"))
    if weights.shape != ground.spread.shape[:2] or level.shape != (ground.members,):
        raise ArtifactError("the car's part does not fit its base; make it again with evband fleet fit.")
    if not (np.isfinite(weights).all() and np.isfinite(level).all()):
        raise ArtifactError("the car's part holds numbers that are not finite; make it again with evband fleet fit.")
    return weights, level


def _scale(saved: Any) -> tuple[float, ...]:
    mean, sd = map(float, saved)
    if not (abs(mean) <= 10 and 0 < sd < 10):
        raise ArtifactError("the car's part is out of bounds; make it again with evband fleet fit.")
    return mean, sd


def _rest(meta: dict[str, Any]) -> tuple[float, ...]:
    """Stretches, and what the car uses."""
    calibration, used = Calibration.from_dict(meta["calibration"]), (meta.get("row") or {}).get("energy_kwh_100km")
    return *calibration.factors, math.nan if used is None else float(used)
